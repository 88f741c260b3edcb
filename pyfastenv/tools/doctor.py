"""``pyfastenv doctor``: what this machine and this installation are, and what to mend.

Of a model (``--model``) it says what costs most.

Each check is a function that yields what it found, how bad that is and what to do about it; none of
them changes anything. What a check tries and might crash (OpenGL) runs in a process of its own.
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
from typing import Literal

import pyfastenv
from pyfastenv import _core
from pyfastenv.tools.contestants import first_difference
from pyfastenv.vector.cpus import available_cpus, cgroup_quota

_ROBOT = "HalfCheetah-v5"
_EXACT_STEPS = 100
_FIRST_MUJOCO_WITH_LANES = (4, 0)
_GL_TIMEOUT_S = 60
_WORTH_SAYING = 1.1
_GL_BACKENDS = ("egl", "osmesa")
_DRAW = """
import pyfastenv
looks = dict(render_mode="rgb_array", renderer="mujoco", width=64, height=64)
envs = pyfastenv.make_vec("Hopper-v5", 1, **looks)
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

State = Literal["ok", "note", "mend"]
Found = Iterator[tuple[State, str, str]]  # state, what and advice of findings


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
    state: State
    what: str
    advice: str = ""

    def __str__(self) -> str:
        label = {"ok": "ok  ", "note": "note", "mend": "MEND"}[self.state]
        advice = f"\n{'':18}→ {self.advice}" if self.advice else ""
        return f"{label}  {self.subject:12}{self.what}{advice}"


def examine() -> Iterator[Finding]:
    """Looks at everything, one thing after the other."""
    for subject, check in _CHECKS.items():
        for found in check():
            yield Finding(subject, *found)


def examine_model(file: Path) -> Iterator[Finding]:
    """Measures how fast a model steps, and what of it costs most.

    Args:
        file: A model in MuJoCo's XML or URDF, or an .mjb file.

    Raises:
        FileNotFoundError: There is none.
        ValueError: It is no model; the message is MuJoCo's.
    """
    from pyfastenv.physics.costs import measure_costs
    from pyfastenv.tasks.language.models import read_model_file

    if not file.is_file():
        raise FileNotFoundError(f"{file}: no such file")
    costs = measure_costs(read_model_file(file, f"model: {file}"))
    rate = f"{costs.steps_per_second:,.0f} steps/s on one thread"
    if costs.refusal is None:
        yield Finding("speed", "ok", f"{rate} in lanes, {costs.times_mj_step:.1f} times mj_step")
    else:
        yield Finding("speed", "note", f"{rate} by mj_step", costs.refusal)
    for saving in costs.savings:
        if saving.ratio >= _WORTH_SAYING:
            what = f"{saving.ratio:.1f} times as fast if {saving.what}"
            yield Finding("costs", "note", what, saving.advice)


def _platform() -> Found:
    system, machine = platform.system(), platform.machine()
    what = f"{system} {machine}, Python {platform.python_version()}, {_cpu_name()}"
    if (system, machine) == ("Linux", "x86_64"):
        yield "ok", what, ""
    else:
        yield "note", what, "only Linux on x86-64 is tested"


def _cpu_name() -> str:
    from pyfastenv.experiments.measure import machine

    return str(machine()["cpu"])


def _versions() -> Found:
    versions = [f"{name} {_version(name)}" for name in ("pyfastenv", "numpy", "gymnasium")]
    yield "ok", ", ".join(versions), ""


def _mujoco() -> Found:
    built, installed = _core.MUJOCO_VERSION, _version("mujoco")
    if built == installed:
        yield "ok", f"{installed}, the one that the core was built against", ""
        return
    what = f"the core was built against {built}, and the installed package says {installed}"
    yield "mend", what, f"pip install --force-reinstall mujoco=={built}"


def _version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return pyfastenv.__version__ if package == "pyfastenv" else "?"


def _instruction_sets() -> Found:
    width = _core.lane_width()
    by = {8: "AVX-512", 4: "AVX2"}.get(width, "128-bit vectors")
    matrix = f", bfloat16 by {unit}" if (unit := _core.bfloat16_unit()) else ""
    what = f"physics of {width} environments at once ({by}){matrix}"
    limit = os.environ.get("PYFASTENV_LANES")
    if limit:
        yield "note", what, f"PYFASTENV_LANES={limit} says so; unset it for the widest"
    elif tuple(map(int, _core.MUJOCO_VERSION.split("."))) < _FIRST_MUJOCO_WITH_LANES:
        yield "ok", "any: there are no lanes with this MuJoCo, mj_step runs the physics", ""
    elif width < 4 and platform.machine() in ("x86_64", "AMD64"):
        yield "note", what, "choose a machine (or a virtual CPU model) with AVX2"
    else:
        yield "ok", what, ""


def _engine() -> Found:
    with closing(pyfastenv.make_vec(_ROBOT, 1)) as envs:
        stats = envs.stats()
    what = f"{_ROBOT} runs by {stats['engine']}"
    if stats["engine"] == "lanes":
        yield "ok", what, ""
    elif chosen := os.environ.get("PYFASTENV_ENGINE"):
        yield "note", what, f"PYFASTENV_ENGINE={chosen} says so; unset it for lanes"
    else:
        advice = "results are the same, only slower; `pyfastenv envs` says it for every environment"
        yield "note", f"{what}: {stats['engine_reason']}", advice


def _exactness() -> Found:
    try:
        difference = first_difference(_ROBOT, num_steps=_EXACT_STEPS)
    except ModuleNotFoundError as error:
        what = f"not looked at: gymnasium's robots lack something: {error}"
        yield "note", what, "pip install 'gymnasium[mujoco]'"
        return
    if difference is None:
        yield "ok", f"{_EXACT_STEPS} steps of {_ROBOT} equal gymnasium's", ""
        return
    advice = "report it with this output; PYFASTENV_ENGINE=mujoco tells whether lanes are at fault"
    yield "mend", f"{_ROBOT} and gymnasium's differ in {difference}", advice


def _threads() -> Found:
    cpus, quota, all_of_them = available_cpus(), cgroup_quota(), os.cpu_count() or 1
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else all_of_them
    what = f"{cpus} of {all_of_them} CPUs"
    if quota is not None and quota < allowed:
        advice = "raise the container's limit (docker --cpus, Kubernetes' limits.cpu) for more"
        yield "note", f"{what}: the cgroup's quota is {quota:g} CPUs", advice
    elif allowed < all_of_them:
        yield "note", f"{what}: the affinity mask", "taskset or the scheduler set it"
    else:
        yield "ok", what, ""


def _load() -> Found:
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0
    if load > available_cpus() / 2:
        advice = "measure on an idle machine, or give num_threads less than its CPUs"
        yield "note", f"{load:.1f} threads are running already", advice


def _opengl() -> Found:
    chosen = os.environ.get("MUJOCO_GL", "")
    name = f"MUJOCO_GL={chosen}" if chosen else "MUJOCO_GL not set"
    error = _draws({})
    if error is None:
        yield "ok", f"draws ({name})", ""
        return
    for backend in _GL_BACKENDS:
        if backend != chosen and _draws({"MUJOCO_GL": backend}) is None:
            yield "mend", f"{name}: {error}", f"export MUJOCO_GL={backend}"
            return
    advice = (
        "install a driver, or Mesa (apt install libegl1 libegl-mesa0 libgl1-mesa-dri), and export "
        "MUJOCO_GL=egl; only renderer='mujoco', skins and flexes need it"
    )
    yield "mend", f"no picture can be drawn ({name}): {error}", advice


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


def _torch() -> Found:
    if importlib.util.find_spec("torch") is None:
        what = "not installed: no training, no rollouts; stepping works"
        yield "note", what, "pip install 'pyfastenv[train]'"
        return
    import torch

    what = f"{torch.__version__}, {torch.get_num_threads()} threads of its own"
    if torch.cuda.is_available():
        yield "ok", f"{what}, {torch.cuda.get_device_name()}", ""
    elif torch.version.cuda is not None:
        advice = "check nvidia-smi and the driver's version; a container needs --gpus"
        yield "note", f"{what}; built for CUDA {torch.version.cuda}, but finds no GPU", advice
    elif shutil.which("nvidia-smi"):
        advice = "install PyTorch with CUDA (pytorch.org, get started)"
        yield "note", f"{what}; built without CUDA, and there seems to be a GPU", advice
    else:
        yield "ok", f"{what}, no CUDA", ""


def _optional() -> Found:
    for package, (purpose, advice) in _OPTIONAL.items():
        if importlib.util.find_spec(package) is None:
            yield "note", f"no {package}: {purpose}", advice


def _disk() -> Found:
    folder = Path.cwd()
    if not os.access(folder, os.W_OK):
        yield "note", f"{folder} cannot be written into", "trainings need --run-dir"


# what is looked at, in this order
_CHECKS: dict[str, Callable[[], Found]] = {
    "platform": _platform,
    "versions": _versions,
    "MuJoCo": _mujoco,
    "processor": _instruction_sets,
    "engine": _engine,
    "exactness": _exactness,
    "threads": _threads,
    "load": _load,
    "OpenGL": _opengl,
    "PyTorch": _torch,
    "optional": _optional,
    "disk": _disk,
}
