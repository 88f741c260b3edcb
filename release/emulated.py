"""``make test-release NAME=aarch64``: C++ tests and the wheel for aarch64, by qemu-user on x86-64.

Needs qemu-user-static, GoogleTest's sources (libgtest-dev), a Debian for aarch64 and a wheel for
its Python, which is 3.11 in this one:

    debootstrap --arch=arm64 --variant=minbase --include=python3,libstdc++6 bookworm ROOT

    python release/emulated.py ROOT [--mujoco 4.0.0] [TEST…]
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

import tested
from cores import BUILD, ROOT, compiler, packages, run
from targets import PLATFORMS, VERSIONS

PLATFORM = PLATFORMS["aarch64"]
FOLDER = BUILD / "aarch64-tests"
GTEST_SOURCES = Path("/usr/src/googletest")


def main() -> None:
    """Builds, installs and runs; notes in the table of versions what passed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("root", type=Path, help="folder of the Debian")
    parser.add_argument("--mujoco", default=VERSIONS[0], metavar="VERSION")
    parser.add_argument("tests", nargs="*", default=tested.TESTS, metavar="TEST")
    arguments = parser.parse_args()
    root = arguments.root.resolve()
    os.environ["QEMU_LD_PREFIX"] = str(root)  # for what a program starts, too
    emulator = "qemu-aarch64-static"
    run(emulator, compile_tests(arguments.mujoco), "--gtest_brief=1")
    python = next((root / "usr/bin").glob("python3.??"))
    # emulation is slow
    sys.exit(
        tested.check(PLATFORM, (emulator, python), arguments.mujoco, arguments.tests, timeout=3600)
    )


def compile_tests(mujoco: str) -> Path:
    """The core's C++ tests."""
    common = (
        "-DCMAKE_BUILD_TYPE=Release", f"-DCMAKE_CXX_COMPILER={compiler(PLATFORM)}",
        f"-DCMAKE_SYSTEM_NAME={PLATFORM.system}", f"-DCMAKE_SYSTEM_PROCESSOR={PLATFORM.processor}",
    )  # fmt: skip
    gtest = FOLDER / "gtest"
    for build in ("gtest-build", "cpp"):
        # a cache of another compiler's forgets these options, and GoogleTest's prefix among them
        (FOLDER / build / "CMakeCache.txt").unlink(missing_ok=True)
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


if __name__ == "__main__":
    main()
