"""``make test-aarch64``: C++ tests and the wheel for aarch64, run by qemu-user on x86-64.

Needs qemu-user-static, GoogleTest's sources (libgtest-dev) and a Debian for aarch64:

    debootstrap --arch=arm64 --variant=minbase --include=python3,libstdc++6 trixie ROOT

    python release/emulated.py ROOT [--mujoco 4.0.0] [TEST…]
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path

from cores import BUILD, ROOT, compiler, mujoco_packages, packages, run
from targets import PLATFORMS, VERSIONS

PLATFORM = PLATFORMS["aarch64"]
FOLDER = BUILD / "aarch64-tests"
GTEST_SOURCES = Path("/usr/src/googletest")
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
    """Builds, installs and runs; notes in the table of versions what passed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("root", type=Path, help="folder of the Debian")
    parser.add_argument("--mujoco", default=VERSIONS[0], metavar="VERSION")
    parser.add_argument("tests", nargs="*", default=TESTS, metavar="TEST")
    arguments = parser.parse_args()
    root = arguments.root.resolve()
    emulator = ("qemu-aarch64-static", "-L", str(root))
    run(*emulator, compile_tests(arguments.mujoco), "--gtest_brief=1")
    python = next((root / "usr/bin").glob("python3.??"))
    site = install(python.name.removeprefix("python"), arguments.mujoco)
    report = FOLDER / "tests.xml"
    environment = {"PYTHONPATH": str(site), "PYTHONDONTWRITEBYTECODE": "1"}
    interpreter = (*emulator, python, "-P")
    # emulation is slow
    command = ("-m", "pytest", "-q", "-o", "timeout=3600", f"--junitxml={report}")
    tested = call(environment, *interpreter, *command, *arguments.tests)
    noted = call(environment, *interpreter, ROOT / "release" / "matrix.py", "--report", report)
    sys.exit(tested or noted)


def compile_tests(mujoco: str) -> Path:
    """The core's C++ tests."""
    common = (
        "-DCMAKE_BUILD_TYPE=Release", f"-DCMAKE_CXX_COMPILER={compiler(PLATFORM)}",
        f"-DCMAKE_SYSTEM_NAME={PLATFORM.system}", f"-DCMAKE_SYSTEM_PROCESSOR={PLATFORM.processor}",
    )  # fmt: skip
    gtest = FOLDER / "gtest"
    run(
        "cmake", "-G", "Ninja", "-S", GTEST_SOURCES, "-B", FOLDER / "gtest-build", *common,
        "-DBUILD_GMOCK=OFF", f"-DCMAKE_INSTALL_PREFIX={gtest}",
    )  # fmt: skip
    run("cmake", "--build", FOLDER / "gtest-build", "--target", "install")
    run(
        "cmake", "-G", "Ninja", "-S", ROOT, "-B", FOLDER / "cpp", *common,
        "-DPYFASTENV_BUILD_PYTHON=OFF", "-DPYFASTENV_BUILD_TESTS=ON",
        f"-DGTest_DIR={next(gtest.glob('lib*/cmake/GTest'))}",
        f"-DPYFASTENV_PACKAGES={packages(PLATFORM, mujoco)}",
        f"-DPython_EXECUTABLE={sys.executable}",
    )  # fmt: skip
    run("cmake", "--build", FOLDER / "cpp")
    return FOLDER / "cpp" / "core_tests"


def install(python: str, mujoco: str) -> Path:
    """The newest wheel and what its tests need, for a Python ("3.13"), into a folder."""
    tag = f"cp{python.replace('.', '')}"
    wheels = sorted((ROOT / "dist").glob(f"pyfastenv-*-{tag}-*aarch64.whl"))
    if not wheels:
        sys.exit(f"expected a wheel for aarch64 and {tag} in dist/: make wheels")
    site = FOLDER / f"site-{python}-{mujoco}"
    run(
        sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check",
        "--upgrade", "--only-binary=:all:", f"--python-version={python}", "--implementation=cp",
        *(f"--platform={name}" for name in PLATFORM.pip_tags), f"--target={site}",
        f"--constraint={constraints(mujoco)}", wheels[-1], *mujoco_packages(mujoco), "pytest",
        "pytest-timeout",
    )  # fmt: skip
    return site


def constraints(mujoco: str) -> Path:
    """The project's, for another MuJoCo."""
    lines = (ROOT / "constraints.txt").read_text().splitlines(keepends=True)
    path = FOLDER / f"constraints-{mujoco}.txt"
    path.write_text("".join(line for line in lines if not line.startswith("mujoco==")))
    return path


def call(environment: dict[str, str], *command: str | Path) -> int:
    """A program's exit status."""
    done = subprocess.run(command, check=False, cwd=ROOT, env={**os.environ, **environment})
    return done.returncode


if __name__ == "__main__":
    main()
