"""Compiles the core for Windows: compile.py [SOURCE PART…].

Nothing is linked or run: it shows that no file needs this system. Needs the ziglang package.
"""

import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from os import cpu_count
from pathlib import Path

ROOT = Path(__file__).parents[2]
TARGET = "x86_64-windows-gnu"
FLAGS = ("-std=c++20", "-O1", "-ffp-contract=off", "-Wall", "-Wextra", "-Wno-unused-parameter")
ROOMS = ("npy", "nn", "core", "learn")  # what knows neither MuJoCo nor Python


def include_flags() -> list[str]:
    import numpy

    return [f"-I{ROOT}/csrc", f"-isystem{numpy.get_include()}"]


def units() -> list[tuple[Path, list[str]]]:
    """Sources and the definitions that they are compiled with."""
    result: list[tuple[Path, list[str]]] = []
    for room in ROOMS:
        for source in sorted((ROOT / "csrc" / room).glob("*.cc")):
            if source.name != "bf16_kernels.cc":
                kernels = source.name.endswith("_kernels.cc")
                result.append((source, ["-DPYFASTENV_VARIANT=Baseline"] if kernels else []))
    return result


def compiles(source: Path, definitions: list[str], includes: list[str]) -> str:
    """The compiler's complaint; empty if there is none."""
    command = [sys.executable, "-m", "ziglang", "c++", "-target", TARGET, *FLAGS, *includes]
    with tempfile.TemporaryDirectory() as directory:
        run = subprocess.run(
            [*command, *definitions, "-c", str(source), "-o", "unit.o"],
            capture_output=True,
            text=True,
            cwd=directory,
        )
    if run.returncode == 0:
        return ""
    return f"{source.relative_to(ROOT)} {' '.join(definitions)}\n{run.stderr}"


def main() -> int:
    wanted = sys.argv[1:]
    includes = include_flags()
    jobs = [
        (source, definitions, includes)
        for source, definitions in units()
        if not wanted or any(part in str(source) for part in wanted)
    ]
    with ThreadPoolExecutor(cpu_count()) as pool:
        complaints = [text for text in pool.map(lambda job: compiles(*job), jobs) if text]
    print(*complaints, sep="\n")
    print(f"{len(jobs) - len(complaints)} of {len(jobs)} files compiled for {TARGET}")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
