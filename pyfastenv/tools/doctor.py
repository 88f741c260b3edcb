"""``pyfastenv doctor``: what this machine and this installation are, and what to mend.

Each check is a function that yields findings; none of them changes anything. What a check tries and
might crash (OpenGL) runs in a process of its own.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import pyfastenv
from pyfastenv import _core
from pyfastenv.tools.contestants import first_difference
from pyfastenv.vector.cpus import available_cpus, cgroup_quota

_ROBOT = "HalfCheetah-v5"
_EXACT_STEPS = 100
_FIRST_MUJOCO_WITH_LANES = (4, 0)
_GL_TIMEOUT_S = 60
_GL_BACKENDS = ("egl", "osmesa")
_DRAW = """
import pyfastenv
envs = pyfastenv.make_vec("Hopper-v5", 1, render_mode="rgb_array", width=64, height=64)
envs.reset(seed=0)
assert envs.render()[0].std() > 0, "the picture is empty"
"""
# what is optional: what it is for, and what installs it
_OPTIONAL = {
    "numba": ("own tasks", "pip install 'pyfastenv[tasks]'"),
    "matplotlib": ("learning curves", "pip install 'pyfastenv[train]'"),
    "imageio_ffmpeg": ("films", "pip install 'pyfastenv[train]'"),
    "tensorboard": ("TensorBoard's event files", "pip install 'pyfastenv[train]'"),
    "jinja2": ("pyfastenv report", "pip install 'pyfastenv[train]'"),
    "pygame": ("pictures of classic control", "pip install 'pyfastenv[classic-control]'"),
}


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at.

    Attributes:
        subject: What was looked at.
        state: ``"mend"`` stops something from working, ``"note"`` makes it slower or is missing
            but optional.
        what: What was found.
        advice: What to do about it; empty if nothing.
    """

    subject: str
    state: Literal["ok", "note", "mend"]
    what: str
    advice: str = ""

    def __str__(self) -> str:
        label = {"ok": "ok  ", "note": "note", "mend": "MEND"}[self.state]
        advice = f"\n{'':18}→ {self.advice}" if self.advice else ""
        return f"{label}  {self.subject:12}{self.what}{advice}"


def examine() -> Iterator[Finding]:
    """Looks at everything, one thing after the other."""
    for check in _CHECKS:
        yield from check()


def _check_platform() -> Iterator[Finding]:
    system, machine = platform.system(), platform.machine()
    what = f"{system} {machine}, Python {platform.python_version()}, {_cpu_name()}"
    if (system, machine) == ("Linux", "x86_64"):
        yield Finding("platform", "ok", what)
    else:
        yield Finding("platform", "note", what, "only Linux on x86-64 is tested")


def _cpu_name() -> str:
    from pyfastenv.experiments.measure import machine

    return str(machine()["cpu"])


def _check_versions() -> Iterator[Finding]:
    versions = [f"{name} {_version(name)}" for name in ("pyfastenv", "numpy", "gymnasium")]
    yield Finding("versions", "ok", ", ".join(versions))
    built, installed = _core.MUJOCO_VERSION, _version("mujoco")
    if built == installed:
        yield Finding("MuJoCo", "ok", f"{installed}, the one that the core was built against")
    else:
        yield Finding(
            "MuJoCo",
            "mend",
            f"the core was built against {built}, and the installed package says {installed}",
            f"pip install --force-reinstall mujoco=={built}",
        )


def _version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return pyfastenv.__version__ if package == "pyfastenv" else "?"


def _check_instruction_sets() -> Iterator[Finding]:
    width = _core.lane_width()
    by = {8: "AVX-512", 4: "AVX2"}.get(width, "128-bit vectors")
    matrix = f", bfloat16 by {unit}" if (unit := _core.SacUpdate.unit()) else ""
    what = f"physics of {width} environments at once ({by}){matrix}"
    limit = os.environ.get("PYFASTENV_LANES")
    if limit:
        yield Finding(
            "processor", "note", what, f"PYFASTENV_LANES={limit} says so; unset it for the widest"
        )
    elif tuple(map(int, _core.MUJOCO_VERSION.split("."))) < _FIRST_MUJOCO_WITH_LANES:
        yield Finding(
            "processor", "ok", "any: there are no lanes with this MuJoCo, mj_step runs the physics"
        )
    elif width < 4 and platform.machine() in ("x86_64", "AMD64"):
        yield Finding(
            "processor", "note", what, "choose a machine (or a virtual CPU model) with AVX2"
        )
    else:
        yield Finding("processor", "ok", what)


def _check_engine() -> Iterator[Finding]:
    with closing(pyfastenv.make_vec(_ROBOT, 1)) as envs:
        stats = envs.stats()
    what = f"{_ROBOT} runs by {stats['engine']}"
    if stats["engine"] == "lanes":
        yield Finding("engine", "ok", what)
    elif os.environ.get("PYFASTENV_ENGINE"):
        chosen = os.environ["PYFASTENV_ENGINE"]
        yield Finding(
            "engine", "note", what, f"PYFASTENV_ENGINE={chosen} says so; unset it for lanes"
        )
    else:
        yield Finding(
            "engine",
            "note",
            f"{what}: {stats['engine_reason']}",
            "results are the same, only slower; `pyfastenv envs` says it for every environment",
        )


def _check_exactness() -> Iterator[Finding]:
    try:
        difference = first_difference(_ROBOT, num_steps=_EXACT_STEPS)
    except ModuleNotFoundError as error:
        yield Finding(
            "exactness",
            "note",
            f"not looked at: gymnasium's robots lack something: {error}",
            "pip install 'gymnasium[mujoco]'",
        )
        return
    if difference is None:
        yield Finding("exactness", "ok", f"{_EXACT_STEPS} steps of {_ROBOT} equal gymnasium's")
    else:
        yield Finding(
            "exactness",
            "mend",
            f"{_ROBOT} and gymnasium's differ in {difference}",
            "report it with this output; PYFASTENV_ENGINE=mujoco tells whether lanes are at fault",
        )


def _check_threads() -> Iterator[Finding]:
    cpus, quota, all_of_them = available_cpus(), cgroup_quota(), os.cpu_count() or 1
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else all_of_them
    what = f"{cpus} of {all_of_them} CPUs"
    if quota is not None and quota < allowed:
        yield Finding(
            "threads",
            "note",
            f"{what}: the cgroup's quota is {quota:g} CPUs",
            "raise the container's limit (docker --cpus, Kubernetes' limits.cpu) for more",
        )
    elif allowed < all_of_them:
        yield Finding(
            "threads", "note", f"{what}: the affinity mask", "taskset or the scheduler set it"
        )
    else:
        yield Finding("threads", "ok", what)
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0
    if load > cpus / 2:
        yield Finding(
            "load",
            "note",
            f"{load:.1f} threads are running already",
            "measure on an idle machine, or give num_threads less than its CPUs",
        )


def _check_opengl() -> Iterator[Finding]:
    chosen = os.environ.get("MUJOCO_GL", "")
    name = f"MUJOCO_GL={chosen}" if chosen else "MUJOCO_GL not set"
    error = _draws({})
    if error is None:
        yield Finding("OpenGL", "ok", f"draws ({name})")
        return
    for backend in _GL_BACKENDS:
        if backend != chosen and _draws({"MUJOCO_GL": backend}) is None:
            yield Finding("OpenGL", "mend", f"{name}: {error}", f"export MUJOCO_GL={backend}")
            return
    yield Finding(
        "OpenGL",
        "mend",
        f"no picture can be drawn ({name}): {error}",
        "install a driver, or Mesa (apt install libegl1 libegl-mesa0 libgl1-mesa-dri), and export "
        "MUJOCO_GL=egl; only pictures and films need it",
    )


def _draws(environment: dict[str, str]) -> str | None:
    """The error of a process of its own that drew a picture; None: it drew one."""
    variables = {**os.environ, **environment}
    if "MUJOCO_GL" in environment:
        variables["PYOPENGL_PLATFORM"] = environment["MUJOCO_GL"]
    try:
        done = subprocess.run(
            [sys.executable, "-P", "-c", _DRAW],
            env=variables,
            capture_output=True,
            text=True,
            timeout=_GL_TIMEOUT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"nothing after {_GL_TIMEOUT_S} s"
    if done.returncode == 0:
        return None
    return (done.stderr.strip().splitlines() or [f"exit status {done.returncode}"])[-1]


def _check_torch() -> Iterator[Finding]:
    if importlib.util.find_spec("torch") is None:
        yield Finding(
            "PyTorch",
            "note",
            "not installed: no training, no rollouts; stepping works",
            "pip install 'pyfastenv[train]'",
        )
        return
    import torch

    what = f"{torch.__version__}, {torch.get_num_threads()} threads of its own"
    if torch.cuda.is_available():
        yield Finding("PyTorch", "ok", f"{what}, {torch.cuda.get_device_name()}")
    elif torch.version.cuda is not None:
        yield Finding(
            "PyTorch",
            "note",
            f"{what}; built for CUDA {torch.version.cuda}, but finds no GPU",
            "check nvidia-smi and the driver's version; a container needs --gpus",
        )
    elif shutil.which("nvidia-smi"):
        yield Finding(
            "PyTorch",
            "note",
            f"{what}; built without CUDA, and there seems to be a GPU",
            "install PyTorch with CUDA (pytorch.org, get started)",
        )
    else:
        yield Finding("PyTorch", "ok", f"{what}, no CUDA")


def _check_optional() -> Iterator[Finding]:
    for package, (purpose, advice) in _OPTIONAL.items():
        if importlib.util.find_spec(package) is None:
            yield Finding("optional", "note", f"no {package}: {purpose}", advice)


def _check_disk() -> Iterator[Finding]:
    folder = Path.cwd()
    if not os.access(folder, os.W_OK):
        yield Finding(
            "disk", "note", f"{folder} cannot be written into", "trainings need --run-dir"
        )


_CHECKS: tuple[Callable[[], Iterator[Any]], ...] = (
    _check_platform,
    _check_versions,
    _check_instruction_sets,
    _check_engine,
    _check_exactness,
    _check_threads,
    _check_opengl,
    _check_torch,
    _check_optional,
    _check_disk,
)
