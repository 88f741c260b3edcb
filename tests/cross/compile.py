"""Compiles the core and lanes for other processors and systems: compile.py [SOURCE PART…].

Nothing is linked or run: it shows that no file needs this machine's. Needs the ziglang package.
"""

import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from os import cpu_count
from pathlib import Path

ROOT = Path(__file__).parents[2]
TARGETS = ("aarch64-linux-gnu.2.28", "aarch64-macos", "x86_64-windows-gnu")
FLAGS = ("-std=c++20", "-O1", "-ffp-contract=off", "-Wall", "-Wextra", "-Wno-unused-parameter")
WIDTHS = (1, 2)  # lanes on processors other than x86-64


def include_flags() -> list[str]:
    import numpy

    mujoco = find_spec("mujoco")
    assert mujoco is not None and mujoco.submodule_search_locations is not None
    directories = [numpy.get_include(), f"{mujoco.submodule_search_locations[0]}/include"]
    return [f"-I{ROOT}/csrc", *(f"-isystem{directory}" for directory in directories)]


def units() -> list[tuple[Path, list[str]]]:
    """Sources and the definitions that they are compiled with."""
    result: list[tuple[Path, list[str]]] = []
    for room in ("npy", "nn", "core", "learn"):
        for source in sorted((ROOT / "csrc" / room).glob("*.cc")):
            if source.name != "amx_kernels.cc":
                kernels = source.name.endswith("_kernels.cc")
                result.append((source, ["-DPYFASTENV_VARIANT=Baseline"] if kernels else []))
    for source in sorted((ROOT / "csrc/lanes").glob("*.cc")):
        if source.name != "old_mujoco.cc":
            result.append((source, []))
    for source in sorted((ROOT / "csrc/lanes/program").glob("*.cc")):
        if source.name != "record.cc":
            result.append((source, []))
    for source in sorted((ROOT / "csrc/lanes/stages").glob("*.cc")):
        for width in WIDTHS:
            variant = [f"-DPYFASTENV_VARIANT=lanes{width}", f"-DPYFASTENV_LANES={width}"]
            result.append((source, variant))
    return result


def compiles(target: str, source: Path, definitions: list[str], includes: list[str]) -> str:
    """The compiler's complaint; empty if there is none."""
    command = [sys.executable, "-m", "ziglang", "c++", "-target", target, *FLAGS, *includes]
    with tempfile.TemporaryDirectory() as directory:
        run = subprocess.run(
            [*command, *definitions, "-c", str(source), "-o", "unit.o"],
            capture_output=True,
            text=True,
            cwd=directory,
        )
    if run.returncode == 0:
        return ""
    return f"{target}: {source.relative_to(ROOT)} {' '.join(definitions)}\n{run.stderr}"


def main() -> int:
    wanted = sys.argv[1:]
    includes = include_flags()
    jobs = [
        (target, source, definitions, includes)
        for target in TARGETS
        for source, definitions in units()
        if not wanted or any(part in str(source) for part in wanted)
    ]
    with ThreadPoolExecutor(cpu_count()) as pool:
        complaints = [text for text in pool.map(lambda job: compiles(*job), jobs) if text]
    print(*complaints, sep="\n")
    print(f"{len(jobs) - len(complaints)} of {len(jobs)} files compiled for {', '.join(TARGETS)}")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
