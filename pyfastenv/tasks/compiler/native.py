"""Tasks in C++, compiled while Python runs, with the compiler that is there.

A file that includes ``<pyfastenv/task.h>`` declares what a class declares in Python; its functions
have the interface of compiled Python (csrc/envs/task_frame.h). Shared libraries are kept beside
compiled Python tasks, keyed by compiler, flags and all files that they include.
"""

from __future__ import annotations

import ctypes
import hashlib
import json
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import mujoco
import numpy as np

from pyfastenv import _core
from pyfastenv.errors import TaskCodeError
from pyfastenv.tasks.compiler import cache
from pyfastenv.tasks.language.fields import command, memory
from pyfastenv.tasks.language.layout import Layout, Part
from pyfastenv.tasks.language.task import Task

_FLAGS = (
    *("-std=c++20", "-O3", "-march=native", "-ffp-contract=off", "-Wall"),
    *("-fPIC", "-shared", "-Wl,-z,defs"),
    "-fvisibility=hidden",  # two tasks in one process share nothing
)
# in the order of Services in csrc/envs/task.h
_SERVICES = (
    "pyfastenv_simulate",
    "pyfastenv_load_state",
    "pyfastenv_mj_forward",
    "pyfastenv_run",
    "pyfastenv_uniform",
    "pyfastenv_standard_normal",
    "pyfastenv_integers",
)
_SHOWN_LINES = 20  # of a compiler's complaints


@dataclass
class NativeCode:
    """A shared library in this process, and what its file declares."""

    source: Path
    identity: str  # of its machine code
    addresses: dict[str, int]
    layout: Layout
    parameters: dict[str, float] = field(default_factory=dict)
    reads: tuple[str, ...] = ()  # of mjData; ("*",): anything


class NativeTask(Task):
    """The base of :func:`compile_task`'s tasks: methods are C++, so ``debug`` cannot run them."""

    _native: NativeCode

    def reset(self) -> None:
        raise RuntimeError(f"{self._native.source.name}: it is C++; it has no plain Python")

    control = step = observation = reset

    def _check_spelling(self) -> None:
        """The compiler has done it."""


def compile_task(source: str | os.PathLike[str], *, flags: Sequence[str] = ()) -> type[Task]:
    """Compiles a task from a C++ file, once; later calls take it from the cache.

    Args:
        source: A file that includes ``<pyfastenv/task.h>`` and ends with ``PYFASTENV_TASK``.
        flags: More options for the compiler, which is ``$CXX``, ``c++``, ``g++`` or ``clang++``.

    Returns:
        A class for :func:`pyfastenv.make_vec`, named as the file. Other processes find it where it
        is assigned to a name of its module: ``cart = pyfastenv.compile_task("cart.cc")``.

    Raises:
        FileNotFoundError: No such file.
        ImportError: There is no compiler.
        TaskCodeError: It cannot be compiled (the message has the compiler's), or declares nothing.
    """
    path = Path(source).expanduser().resolve()
    if not path.is_file():
        raise FileNotFoundError(f"compile_task: {os.fspath(source)!r} is no file")
    library, identity = _library(path, [*_FLAGS, *flags])
    code, attributes = _connect(path, library, identity)
    name = path.stem
    caller = sys._getframe(1).f_globals.get("__name__", "__main__")
    return type(name, (NativeTask,), {**attributes, "_native": code, "__module__": caller})


# ---- compiling ---------------------------------------------------------------------------------


def _compiler() -> list[str]:
    given = shlex.split(os.environ.get("CXX", ""))
    for compiler in [given] if given else [["c++"], ["g++"], ["clang++"]]:
        if shutil.which(compiler[0]):
            return compiler
    raise ImportError(
        f"compile_task needs a C++ compiler, and there is no {' '.join(given) or 'c++'} here: "
        f"install one, set CXX, or write the task in Python (pyfastenv.Task)"
    )


def _paths() -> list[str]:
    """Where headers are, and MuJoCo's library."""
    engine = Path(mujoco.__file__).parent
    folders = [Path(_core.__file__).parent / "include", engine / "include"]
    library = next(engine.glob("libmujoco.so.*"))
    return [*(f"-isystem{f}" for f in folders), str(library), f"-Wl,-rpath,{engine}"]


def _library(source: Path, flags: list[str]) -> tuple[Path, str]:
    """The shared library of a file, and its hash; compiled if the cache has none."""
    compiler = _compiler()
    version = subprocess.run([*compiler, "--version"], capture_output=True, text=True, check=False)
    facts = [str(source), *compiler, version.stdout, *flags, mujoco.__version__, cache.host()]
    key = "native-" + hashlib.sha256("\n".join(facts).encode()).hexdigest()[:32]
    found = _cached(key)
    if found is not None:
        return found
    try:
        cache.folder().mkdir(parents=True, exist_ok=True)
        folder = Path(tempfile.mkdtemp(dir=cache.folder(), prefix=f".{key}."))
    except OSError:  # it costs a compilation in every process
        folder = Path(tempfile.mkdtemp(prefix="pyfastenv-"))
    library, depends = folder / "task.so", folder / "depends"
    done = subprocess.run(
        [*compiler, *flags, "-MD", "-MF", depends, source, *_paths(), "-o", library],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        shutil.rmtree(folder, ignore_errors=True)
        said = done.stderr.strip().splitlines()
        shown = "\n".join(f"    {line}" for line in said[:_SHOWN_LINES])
        more = f"\n    … {len(said) - _SHOWN_LINES} lines more" if len(said) > _SHOWN_LINES else ""
        raise TaskCodeError(f"{source.name} cannot be compiled:\n{shown}{more}")
    files = depends.read_text().replace("\\\n", " ").split()[1:]
    sums = {name: _sum(Path(name)) for name in files}
    identity = hashlib.sha256(json.dumps([key, sums], sort_keys=True).encode()).hexdigest()[:32]
    kept = cache.folder() / f"{key}-{identity}.so"
    with suppress(OSError):
        library.replace(kept)
        own = folder / "index"
        own.write_text(json.dumps({"identity": identity, "files": sums}))
        own.replace(cache.folder() / f"{key}.json")
        shutil.rmtree(folder, ignore_errors=True)
        return kept, identity
    return library, identity


def _cached(key: str) -> tuple[Path, str] | None:
    """A library whose files are all as they were."""
    try:
        index = json.loads((cache.folder() / f"{key}.json").read_text())
        library = cache.folder() / f"{key}-{index['identity']}.so"
        if not library.is_file():
            return None
        if all(_sum(Path(name)) == was for name, was in index["files"].items()):
            return library, index["identity"]
    except (OSError, ValueError, KeyError):
        pass
    return None


def _sum(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


# ---- what it declares --------------------------------------------------------------------------


def _connect(source: Path, library: Path, identity: str) -> tuple[NativeCode, dict[str, Any]]:
    """Loads a library; returns its code, and the class attributes that its file stands for."""
    loaded = ctypes.CDLL(str(library))
    if not hasattr(loaded, "pyfastenv_describe"):
        raise TaskCodeError(f"{source.name}: expected PYFASTENV_TASK({{…}}) at its end")
    symbols = _core.task_symbols()
    loaded.pyfastenv_connect((ctypes.c_void_p * len(_SERVICES))(*(symbols[n] for n in _SERVICES)))
    loaded.pyfastenv_describe.restype = ctypes.c_char_p
    lines, _, model = loaded.pyfastenv_describe().decode().partition("\nmodel\t")
    attributes: dict[str, Any] = {"model": _model(model, source.parent)}
    obs: dict[str, Part] = {}
    infos: dict[str, Part] = {}
    settings: dict[str, int] = {}
    code = NativeCode(source, identity, {}, Layout(obs, infos))
    sizes = {"obs": 0, "info": 0}
    for line in lines.splitlines():
        kind, name, *numbers = line.split("\t")
        if name in attributes or (kind in sizes and name in (obs if kind == "obs" else infos)):
            raise TaskCodeError(f"{source.name}: {kind} {name!r} is declared twice")
        if kind == "parameter":
            attributes[name] = code.parameters[name] = float(numbers[0])
        elif kind == "memory":
            attributes[name] = memory(int(numbers[0]))
        elif kind == "command":
            low, high = float(numbers[1]), float(numbers[2])
            attributes[name] = command(int(numbers[0]), low=low, high=high)
        elif kind in sizes:
            size = int(numbers[0])
            always = kind == "obs" or numbers[1] == "1"
            shape = (size,) if size > 0 else ()
            parts = obs if kind == "obs" else infos
            parts[name] = Part(sizes[kind], shape, always=always)
            sizes[kind] += max(size, 1)
        elif kind == "setting":
            settings[name] = int(numbers[0])
        elif kind == "reads":
            code.reads += (name,)
    attributes |= _settings(settings)
    if not obs:
        raise TaskCodeError(f'{source.name}: expected an observation, const Obs name("name", size)')
    hooks = ("reset", "step", "observation", *(["control"] if settings["has_control"] else []))
    for hook in hooks:
        address = ctypes.cast(loaded[f"pyfastenv_{hook}"], ctypes.c_void_p).value
        assert address is not None
        code.addresses[hook] = address
    return code, attributes


def _settings(given: dict[str, int]) -> dict[str, Any]:
    import gymnasium

    attributes: dict[str, Any] = {
        "frame_skip": given["frame_skip"],
        "control_every": given["control_every"] or None,
        "max_episode_steps": given["max_episode_steps"],
        "external_forces": bool(given["external_forces"]),
    }
    if given["num_actions"] > 0:
        attributes["action_space"] = gymnasium.spaces.Discrete(given["num_actions"])
    elif given["action_size"] >= 0:
        shape = (given["action_size"],)
        attributes["action_space"] = gymnasium.spaces.Box(-np.inf, np.inf, shape, np.float64)
    return attributes


def _model(given: str, folder: Path) -> str:
    beside = folder / given if len(given) < 4096 and "<" not in given else None
    return str(beside) if beside is not None and beside.is_file() else given
