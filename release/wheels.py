"""``make wheels``: wheels that need no compiler, with a core for each MuJoCo in VERSIONS.

Cross-compiled (cores.py) for the platforms of targets.py; those for Linux run on every
distribution since 2018, and auditwheel checks that.

    python release/wheels.py [--platforms x86_64 aarch64] [--mujoco 4.0.0 3.11.0]
                             [--pythons python3.11 python3.13]
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from pathlib import Path

import matrix
import pyproject_hooks
from cores import BUILD, ROOT, compile_core, python_tag, run
from targets import PLATFORMS, VERSIONS, Platform

MOST_BYTES = 5 * 10**6


def main() -> None:
    """Builds the wheels that are asked for into dist/."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--platforms", nargs="+", default=["x86_64", "aarch64"], choices=PLATFORMS)
    parser.add_argument("--mujoco", nargs="+", default=VERSIONS, metavar="VERSION")
    parser.add_argument("--pythons", nargs="+", default=[sys.executable], metavar="INTERPRETER")
    arguments = parser.parse_args()
    for platform in (PLATFORMS[name] for name in arguments.platforms):
        for python in (found(name) for name in arguments.pythons):
            cores = {v: compile_core(platform, python, v) for v in arguments.mujoco}
            tag = python_tag(python)
            wheel = checked(assemble(platform, tag, cores), platform)
            size = wheel.stat().st_size
            print(f"{wheel.relative_to(ROOT)}: {size / 1e6:.2f} MB", flush=True)
            if size > MOST_BYTES:
                sys.exit(f"{wheel.name}: expected at most {MOST_BYTES / 1e6:g} MB")
            for version in cores:
                place = {"mujoco": version, "python": f"3.{tag[3:]}", "platform": platform.name}
                matrix.add(place | {"built": True})
    matrix.main([])


def found(interpreter: str) -> Path:
    """Where an interpreter is."""
    path = shutil.which(interpreter)
    if path is None:
        sys.exit(f"--pythons: expected interpreters, got {interpreter!r}, which is not there")
    return Path(path)


def assemble(platform: Platform, python: str, cores: dict[str, Path]) -> Path:
    """Puts Python files, cores and metadata into a wheel, which is not in dist/ yet."""
    with tempfile.TemporaryDirectory(dir=BUILD) as temporary:
        content = Path(temporary)
        package = content / "pyfastenv"
        shutil.copytree(
            ROOT / "pyfastenv", package, ignore=shutil.ignore_patterns("__pycache__", "*.so")
        )
        for number, (version, build) in enumerate(cores.items()):
            if number == 0:  # with the files that own tasks include
                run("cmake", "--install", build, "--prefix", content)
            else:
                folder = package / "_cores" / version
                folder.mkdir(parents=True)
                shutil.copy(next(build.glob("_core.*")), folder)
        # what pip would ask the build backend for
        hooks = pyproject_hooks.BuildBackendHookCaller(ROOT, "scikit_build_core.build")
        name = hooks.prepare_metadata_for_build_wheel(str(content))
        tag = f"{python}-{python}-{platform.tag}"
        (content / name / "WHEEL").write_text(
            "Wheel-Version: 1.0\nGenerator: release/wheels.py\nRoot-Is-Purelib: false\n"
            f"Tag: {tag}\n"
        )
        (content / name / "RECORD").unlink(missing_ok=True)
        run(sys.executable, "-m", "wheel", "pack", content, "--dest-dir", BUILD)
        return BUILD / f"{name.removesuffix('.dist-info')}-{tag}.whl"


def checked(wheel: Path, platform: Platform) -> Path:
    """The wheel in dist/, if it is what its name says."""
    dist = ROOT / "dist"
    dist.mkdir(exist_ok=True)
    if platform.system == "Linux":  # MuJoCo's library comes with MuJoCo's package
        run(
            "auditwheel", "repair", "--only-plat", f"--plat={platform.tag}",
            "--exclude=libmujoco.so.*", f"--wheel-dir={dist}", wheel,
        )  # fmt: skip
        wheel.unlink()
    else:
        shutil.move(wheel, dist / wheel.name)
    return dist / wheel.name


if __name__ == "__main__":
    main()
