"""How benchmarks and experiments measure: what machine, in which order, which statistic.

Knows no environment and no contestant. Shared machines drift, so contestants run in turn, round
after round, and are compared within each round: the drift cancels in the ratio.
"""

from __future__ import annotations

import contextlib
import importlib.metadata
import os
import platform
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypedDict, TypeVar

import numpy as np

from pyfastenv.vector.cpus import available_cpus

PACKAGES = ("pyfastenv", "numpy", "gymnasium", "mujoco", "envpool", "torch", "stable-baselines3")


C = TypeVar("C")


class Summary(TypedDict):
    """Median and quartiles of repeated measurements."""

    median: float
    q1: float
    q3: float


def interleaved(contestants: Sequence[C], count: int) -> Iterator[tuple[int, C]]:
    """Every contestant once per round, with the round; each round starts with the next one."""
    for r in range(count):
        first = r % max(len(contestants), 1)
        for contestant in (*contestants[first:], *contestants[:first]):
            yield r, contestant


def interleave(
    candidates: Mapping[str, Callable[[], float]], repeats: int
) -> dict[str, list[float]]:
    """Runs every candidate once per round; each round starts with the next candidate.

    Returns:
        For each candidate its ``repeats`` results; entry r of all lists comes from round r.
    """
    results: dict[str, list[float]] = {name: [] for name in candidates}
    for _, name in interleaved(list(candidates), repeats):
        results[name].append(candidates[name]())
    return results


def summary(values: Sequence[float]) -> Summary:
    """Median and quartiles."""
    q1, median, q3 = np.quantile(np.asarray(values, dtype=np.float64), (0.25, 0.5, 0.75))
    return Summary(median=float(median), q1=float(q1), q3=float(q3))


def ratio(numerator: Sequence[float], denominator: Sequence[float]) -> Summary:
    """Median and quartiles of the rounds' ratios (not the ratio of the medians)."""
    return summary([a / b for a, b in zip(numerator, denominator, strict=True)])


def geometric_mean(values: Sequence[float]) -> float:
    """The mean for ratios: 2 and 1/2 make 1."""
    return float(np.exp(np.mean(np.log(np.asarray(values, dtype=np.float64)))))


@contextlib.contextmanager
def quiet_stderr() -> Iterator[None]:
    """Hides what C code prints: MuJoCo warns of gymnasium's models once per model it compiles."""
    kept = os.dup(2)
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(null)


def machine() -> dict[str, Any]:
    """What the figures depend on: CPU, memory, system and versions; no names and no paths."""
    return {
        "cpu": _cpu_model(),
        "cpus_available": available_cpus(),
        "memory_gib": round(_memory_bytes() / 2**30, 1),
        "os": _os_name(),
        "python": platform.python_version(),
        "versions": {name: _version(name) for name in PACKAGES},
        "commit": _commit(),
    }


def today() -> str:
    """The date, in UTC."""
    return datetime.now(UTC).date().isoformat()


def available_memory_bytes() -> int:
    """Memory that can be used without swapping."""
    try:
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    return _memory_bytes()


def _memory_bytes() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def _cpu_model() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def _os_name() -> str:
    try:
        return f"{platform.freedesktop_os_release()['PRETTY_NAME']}, {platform.machine()}"
    except (OSError, KeyError):
        return f"{platform.system()} {platform.release()}, {platform.machine()}"


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def _commit() -> str | None:
    """The checkout's commit, with ``+`` when tracked files other than results differ from it."""
    git = ["git", "-C", str(Path(__file__).parents[2])]
    outside = [":/", ":(top,exclude)bench/results", ":(top,exclude)docs/results"]
    try:
        commit = subprocess.run(
            [*git, "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=True
        ).stdout.strip()
        changes = subprocess.run(
            [*git, "status", "--porcelain", "-uno", "--", *outside],
            capture_output=True,
            text=True,
            check=True,
        ).stdout
    except (OSError, subprocess.CalledProcessError):
        return None
    return commit + ("+" if changes.strip() else "")
