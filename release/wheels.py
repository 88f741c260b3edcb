"""``make wheels``: wheels for Linux that need no compiler and run on every distribution of 2018 on.

Cross-compiled by Zig's clang against glibc 2.28 (the ziglang package), for x86-64 and aarch64, with
a core for each MuJoCo in VERSIONS. MuJoCo's and NumPy's files for a platform come from their own
wheels.

    python release/wheels.py [--platforms x86_64 aarch64] [--mujoco 4.0.0 3.11.0]
"""

from __future__ import annotations

import argparse
import importlib.metadata
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

import pyproject_hooks

ROOT = Path(__file__).parents[1]
BUILD = ROOT / "build" / "wheels"
GLIBC = "2.28"
PLATFORMS = ("x86_64", "aarch64")
VERSIONS = ("4.0.0", "3.17.0", "3.11.0", "3.3.0")  # of MuJoCo; the first is the default core
MOST_BYTES = 5 * 10**6


def main() -> None:
    """Builds the wheels that are asked for into dist/."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--platforms", nargs="+", default=PLATFORMS, choices=PLATFORMS)
    parser.add_argument("--mujoco", nargs="+", default=VERSIONS, metavar="VERSION")
    arguments = parser.parse_args()
    for platform in arguments.platforms:
        compiler = zig(platform)
        cores = [compile_core(platform, version, compiler) for version in arguments.mujoco]
        wheel = assemble(platform, dict(zip(arguments.mujoco, cores, strict=True)))
        run("auditwheel", "show", wheel)
        size = wheel.stat().st_size
        print(f"{wheel.relative_to(ROOT)}: {size / 1e6:.2f} MB", flush=True)
        if size > MOST_BYTES:
            sys.exit(f"{wheel.name}: expected at most {MOST_BYTES / 1e6:g} MB")


def run(*command: str | Path) -> None:
    """Runs a tool of this environment; ends the program if it fails."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    done = subprocess.run(command, check=False, env={**os.environ, "PATH": path})
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}: status {done.returncode}")


def zig(platform: str) -> Path:
    """A compiler for a platform: a script, since CMake wants one word."""
    BUILD.mkdir(parents=True, exist_ok=True)
    script = BUILD / f"{platform}-c++"
    # Zig's default in builds without optimisation, and what CMake's tests of the compiler are
    flags = "-fno-sanitize=undefined"
    script.write_text(
        f'#!/bin/sh\nexec "{sys.executable}" -m ziglang c++ '
        f'-target {platform}-linux-gnu.{GLIBC} {flags} "$@"\n'
    )
    script.chmod(0o755)
    return script


def packages(platform: str, version: str) -> Path:
    """MuJoCo and NumPy as they are installed on a platform."""
    folder = BUILD / "packages" / f"{platform}-{version}"
    if not folder.exists():
        numpy = importlib.metadata.version("numpy")
        tags = [f"--platform=manylinux_2_{minor}_{platform}" for minor in (17, 27, 28)]
        with tempfile.TemporaryDirectory(dir=BUILD) as unfinished:
            run(
                sys.executable, "-m", "pip", "install", "--quiet", "--no-deps",
                "--only-binary=:all:", f"--platform=manylinux2014_{platform}", *tags,
                f"--target={unfinished}", f"numpy=={numpy}", *mujoco_packages(version),
            )  # fmt: skip
            folder.parent.mkdir(exist_ok=True)
            shutil.copytree(unfinished, folder)
    return folder


def mujoco_packages(version: str) -> list[str]:
    """The packages that make MuJoCo: since 4.0 the library has one of its own."""
    parts = ["mujoco"] if int(version.split(".")[0]) < 4 else ["mujoco", "mujoco-core"]
    return [f"{part}=={version}" for part in parts]


def compile_core(platform: str, version: str, compiler: Path) -> Path:
    """Compiles the extension against one MuJoCo."""
    installed = packages(platform, version)
    folder = BUILD / f"{platform}-{version}"
    run(
        "cmake", "-G", "Ninja", "-S", ROOT, "-B", folder, "-DCMAKE_BUILD_TYPE=Release",
        f"-DCMAKE_CXX_COMPILER={compiler}", "-DCMAKE_SYSTEM_NAME=Linux",
        f"-DCMAKE_SYSTEM_PROCESSOR={platform}", "-DCMAKE_SHARED_LINKER_FLAGS=-s",
        "-DCMAKE_MODULE_LINKER_FLAGS=-s", f"-DPython_EXECUTABLE={sys.executable}",
        f"-DPYFASTENV_PACKAGES={installed}", f"-DPYTHON_MODULE_EXTENSION={suffix(platform)}",
        f"-Dpybind11_DIR={pybind11_dir()}",
    )  # fmt: skip
    run("cmake", "--build", folder)
    return folder / f"_core{suffix(platform)}"


def suffix(platform: str) -> str:
    """What an extension's name ends in."""
    return f".{sysconfig.get_config_var('SOABI').rsplit('-', 3)[0]}-{platform}-linux-gnu.so"


def pybind11_dir() -> str:
    """Where CMake finds pybind11."""
    import pybind11

    return str(pybind11.get_cmake_dir())


def assemble(platform: str, cores: dict[str, Path]) -> Path:
    """Puts Python files, cores and metadata into a wheel."""
    with tempfile.TemporaryDirectory(dir=BUILD) as temporary:
        content = Path(temporary)
        shutil.copytree(
            ROOT / "pyfastenv",
            content / "pyfastenv",
            ignore=shutil.ignore_patterns("__pycache__", "*.so"),
        )
        for number, (version, core) in enumerate(cores.items()):
            folder = content / "pyfastenv"
            if number > 0:
                folder = folder / "_cores" / version
                folder.mkdir(parents=True)
            shutil.copy(core, folder)
        # what pip would ask the build backend for
        hooks = pyproject_hooks.BuildBackendHookCaller(ROOT, "scikit_build_core.build")
        name = hooks.prepare_metadata_for_build_wheel(str(content))
        python = f"cp{sys.version_info.major}{sys.version_info.minor}"
        tag = f"{python}-{python}-manylinux_{GLIBC.replace('.', '_')}_{platform}"
        (content / name / "WHEEL").write_text(
            "Wheel-Version: 1.0\nGenerator: release/wheels.py\nRoot-Is-Purelib: false\n"
            f"Tag: {tag}\n"
        )
        (content / name / "RECORD").unlink(missing_ok=True)
        (ROOT / "dist").mkdir(exist_ok=True)
        run(sys.executable, "-m", "wheel", "pack", content, "--dest-dir", ROOT / "dist")
        return ROOT / "dist" / f"{name.removesuffix('.dist-info')}-{tag}.whl"


if __name__ == "__main__":
    main()
