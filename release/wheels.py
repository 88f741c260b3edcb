"""``make wheels``: wheels that need no compiler, with a core for each MuJoCo in VERSIONS.

Cross-compiled (cores.py) for the platforms of targets.py; those for Linux run on every
distribution since 2018, and auditwheel checks that. Those for macOS have not been run.

    python release/wheels.py [--platforms x86_64 aarch64] [--mujoco 4.0.0 3.11.0]
                             [--pythons python3.11 python3.13]
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import sys
import tempfile
from pathlib import Path

import matrix
import pyproject_hooks
from cores import BUILD, ROOT, compile_core, found, output, python_tag, run
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
            name = matrix.platform_name(platform.system, platform.processor)
            for version in cores:
                place = {"mujoco": version, "python": f"3.{tag[3:]}", "platform": name}
                matrix.add(place | {"built": True})
    matrix.main([])


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
    if platform.system == "Linux":
        audit = json.loads(output("auditwheel", "show", "--json", wheel))
        # MuJoCo's library comes with MuJoCo's package
        foreign = [name for name in audit["external_libs"] if not name.startswith("libmujoco.so.")]
        if foreign or audit["unsupported_isa"] or _glibc(audit["sym_tag"]) > _glibc(platform.tag):
            sys.exit(f"{wheel.name}: expected nothing newer than its name says, got {audit}")
    dist = ROOT / "dist"
    dist.mkdir(exist_ok=True)
    return Path(shutil.move(wheel, dist / wheel.name))


def _glibc(tag: str) -> tuple[int, int]:
    """The oldest C library of ``manylinux_2_28_x86_64``; beyond all of plain ``linux_x86_64``."""
    version = re.match(r"manylinux_(\d+)_(\d+)_", tag)
    return (int(version[1]), int(version[2])) if version else (sys.maxsize, 0)


if __name__ == "__main__":
    main()
