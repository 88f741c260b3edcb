"""``make test-release NAME=pythons``: the newest wheel's parity with gymnasium, and determinism.

The wheel and what its tests need are put into a folder, not into the interpreter's environment.

    python release/tested.py python3.12 python3.13 [--mujoco 4.0.0] [--tests TEST…]
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path

from cores import BUILD, ROOT, found, mujoco_packages, python_tag, run
from targets import PLATFORMS, VERSIONS, Platform

# bits against gymnasium for five robots, and against ourselves for any threads and batches
TESTS = (
    "tests/python/test_determinism.py",
    *(
        f"tests/python/test_parity.py::test_equals_gymnasium[{env_id}-{mode}]"
        for env_id in ("HalfCheetah-v5", "Ant-v5", "Hopper-v5", "Humanoid-v5", "CartPole-v1")
        for mode in ("NextStep", "SameStep", "Disabled")
    ),
)


def main() -> None:
    """Tests this machine's wheels; notes in the table of versions what passed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("pythons", nargs="+", metavar="INTERPRETER")
    parser.add_argument("--mujoco", default=VERSIONS[0], metavar="VERSION")
    parser.add_argument("--tests", nargs="+", default=TESTS, metavar="TEST")
    arguments = parser.parse_args()
    pythons = [found(name) for name in arguments.pythons]
    status = [
        check(PLATFORMS["x86_64"], (python,), arguments.mujoco, arguments.tests)
        for python in pythons
    ]
    sys.exit(max(status))


def check(
    platform: Platform,
    interpreter: tuple[str | Path, ...],
    mujoco: str,
    tests: tuple[str, ...],
    timeout: int = 600,
) -> int:
    """Runs tests of the newest wheel and notes what passed.

    Args:
        platform: The wheel's.
        interpreter: The command that runs Python there.
        mujoco: Version to test with.
        tests: Pytest's arguments.
        timeout: Of each test [s].

    Returns:
        0 if all is well.
    """
    tag = python_tag(*interpreter)
    site = install(platform, tag, mujoco)
    report = site.with_suffix(".xml")
    pytest = ("-m", "pytest", "-q", "-o", f"timeout={timeout}", f"--junitxml={report}")
    tested = call(site, *interpreter, "-P", *pytest, *tests)
    table = (ROOT / "release" / "matrix.py", "--report", report)
    return call(site, *interpreter, "-P", *table) or tested


def install(platform: Platform, tag: str, mujoco: str) -> Path:
    """The newest wheel for ``cp313`` and what its tests need, in a folder of their own."""
    wheels = sorted((ROOT / "dist").glob(f"pyfastenv-*-{tag}-{platform.tag}.whl"))
    if not wheels:
        sys.exit(f"expected a wheel for {platform.tag} and {tag} in dist/: make wheels")
    site = BUILD / "tested" / f"{platform.tag}-{tag}-{mujoco}".replace(".", "_")
    site.parent.mkdir(parents=True, exist_ok=True)
    run(
        sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check",
        "--upgrade", "--only-binary=:all:", "--implementation=cp",
        f"--python-version={tag.removeprefix('cp')}",
        *(f"--platform={name}" for name in platform.pip_tags), f"--target={site}",
        f"--constraint={constraints(site)}", wheels[-1], *mujoco_packages(mujoco),
        "pytest", "pytest-timeout", "imageio",
    )  # fmt: skip
    return site


def constraints(site: Path) -> Path:
    """The project's, but for MuJoCo's version."""
    lines = (ROOT / "constraints.txt").read_text().splitlines(keepends=True)
    path = site.with_suffix(".txt")
    path.write_text("".join(line for line in lines if not line.startswith("mujoco==")))
    return path


def call(site: Path, *command: str | Path) -> int:
    """A program's exit status; it finds what is installed in ``site``."""
    environment = {
        "PYTHONPATH": str(site),
        "PYTHONDONTWRITEBYTECODE": "1",
        # which glfw would look for by starting the interpreter, without its emulator
        "PYGLFW_LIBRARY": str(site / "glfw/x11/libglfw.so"),
    }
    return subprocess.run(
        command, check=False, cwd=ROOT, env={**os.environ, **environment}
    ).returncode


if __name__ == "__main__":
    main()
