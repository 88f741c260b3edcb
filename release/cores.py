"""Compiles the extension for a platform, a Python and a MuJoCo, by Zig's clang.

MuJoCo's and NumPy's files for a platform come from their own wheels. What does not depend on MuJoCo
or Python is compiled once: Zig keeps objects by their contents.
"""

from __future__ import annotations

import importlib.metadata
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pybind11
import ziglang
from targets import Platform

ROOT = Path(__file__).parents[1]
BUILD = ROOT / "build" / "wheels"


def compile_core(platform: Platform, python: Path, mujoco: str) -> Path:
    """Compiles the extension; returns the build folder, from which CMake installs it."""
    installed = packages(platform, mujoco)
    folder = BUILD / f"{platform.tag}-{python_tag(python)}-{mujoco}"
    # a cache from another interpreter makes pybind11 name the module after this machine
    (folder / "CMakeCache.txt").unlink(missing_ok=True)
    run(
        "cmake", "-G", "Ninja", "-S", ROOT, "-B", folder, "-DCMAKE_BUILD_TYPE=Release",
        f"-DCMAKE_CXX_COMPILER={compiler(platform)}", f"-DCMAKE_SYSTEM_NAME={platform.system}",
        f"-DCMAKE_SYSTEM_PROCESSOR={platform.processor}",
        # this machine's know its own platform's archives and libraries alone
        f"-DCMAKE_AR={_zig('ar')}", f"-DCMAKE_RANLIB={_zig('ranlib')}", "-DCMAKE_STRIP=",
        f"-DCMAKE_USER_MAKE_RULES_OVERRIDE={ROOT / 'release' / 'zig.cmake'}",
        f"-DPython_EXECUTABLE={python}",
        f"-DPYFASTENV_PACKAGES={installed}",
        f"-DPYTHON_MODULE_EXTENSION={extension_suffix(platform, python)}",
        f"-Dpybind11_DIR={pybind11.get_cmake_dir()}",
    )  # fmt: skip
    run("cmake", "--build", folder)
    return folder


def compiler(platform: Platform) -> Path:
    """A compiler for a platform."""
    # the same flags for CMake's trials as for the rest: Zig builds its C++ library once for each
    return _zig(f"c++ -target {platform.target} -O3 -s")


def _zig(command: str) -> Path:
    """A script, since CMake wants one word."""
    BUILD.mkdir(parents=True, exist_ok=True)
    path = BUILD / f"zig-{re.sub(r'[^a-z0-9_.+]+', '-', command)}"
    zig = Path(ziglang.__file__).with_name("zig")
    script = f'#!/bin/sh\nexec "{zig}" {command} "$@"\n'
    # untouched where nothing has changed: caches of objects look at a compiler's age
    if not path.exists() or path.read_text() != script:
        path.write_text(script)
        path.chmod(0o755)
    return path


def packages(platform: Platform, mujoco: str) -> Path:
    """MuJoCo and NumPy as they are installed on a platform; neither depends on the Python here."""
    folder = BUILD / "packages" / f"{platform.tag}-{mujoco}"
    if not folder.exists():
        folder.parent.mkdir(parents=True, exist_ok=True)
        numpy = importlib.metadata.version("numpy")
        with tempfile.TemporaryDirectory(dir=BUILD) as unfinished:
            run(
                sys.executable, "-m", "pip", "install", "--quiet", "--no-deps",
                "--disable-pip-version-check", "--only-binary=:all:",
                *(f"--platform={tag}" for tag in platform.pip_tags), f"--target={unfinished}",
                f"numpy=={numpy}", *mujoco_packages(mujoco),
            )  # fmt: skip
            shutil.copytree(unfinished, folder)
    return folder


def mujoco_packages(version: str) -> list[str]:
    """The packages that make MuJoCo: since 4.0 the library has one of its own."""
    parts = ["mujoco"] if int(version.split(".")[0]) < 4 else ["mujoco", "mujoco-core"]
    return [f"{part}=={version}" for part in parts]


def found(interpreter: str) -> Path:
    """Where an interpreter is."""
    path = shutil.which(interpreter)
    if path is None:
        sys.exit(f"expected an interpreter, got {interpreter!r}, which is not there")
    return Path(path)


def python_tag(*python: str | Path) -> str:
    """An interpreter, or the command that runs it, in the words of wheels: ``cp311``."""
    return _ask(*python, "import sys; print('cp%d%d' % sys.version_info[:2])")


def extension_suffix(platform: Platform, python: Path) -> str:
    """The end of an extension's name: ``.cpython-311-aarch64-linux-gnu.so``."""
    soabi = _ask(python, "import sysconfig; print(sysconfig.get_config_var('SOABI'))")
    return f".{soabi.rsplit('-', 3)[0]}-{platform.abi}"


def _ask(*command: str | Path) -> str:
    *python, program = command
    return output(*python, "-c", program).strip()


def output(*command: str | Path) -> str:
    """Runs a tool of this environment and returns its output; ends the program if it fails."""
    return _finish(command, subprocess.PIPE)


def run(*command: str | Path) -> None:
    """Runs a tool of this environment; ends the program if it fails."""
    _finish(command)


def _finish(command: tuple[str | Path, ...], stdout: int | None = None) -> str:
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    environment = {**os.environ, "PATH": path}
    done = subprocess.run(command, check=False, env=environment, stdout=stdout, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}: status {done.returncode}")
    return done.stdout
