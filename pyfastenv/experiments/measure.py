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
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
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


def race(
    runs: Mapping[str, Callable[[], int]],
    seconds: float,
    rounds: int,
    clock: Callable[[], float] = time.perf_counter,
) -> dict[str, list[float]]:
    """:func:`rate` of each call for so long [s], in turn, after a quarter of it that warms up."""
    for run in runs.values():
        rate(run, seconds / 4, clock)
    timed = {name: partial(rate, run, seconds, clock) for name, run in runs.items()}
    return interleave(timed, rounds)


def rate(
    run: Callable[[], int], seconds: float, clock: Callable[[], float] = time.perf_counter
) -> float:
    """Steps per second of a call that returns how many it made, again and again for so long [s].

    Args:
        run: The call.
        seconds: How long, by the clock.
        clock: ``time.process_time`` counts processor time, of all threads.
    """
    steps, start = 0, clock()
    while (elapsed := clock() - start) < seconds:
        steps += run()
    return steps / elapsed


def seconds(call: Callable[[], object]) -> float:
    """How long a call takes [s]."""
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def summary(values: Sequence[float]) -> Summary:
    """Median and quartiles."""
    q1, median, q3 = np.quantile(np.asarray(values, dtype=np.float64), (0.25, 0.5, 0.75))
    return Summary(median=float(median), q1=float(q1), q3=float(q3))


def ratio(numerator: Sequence[float], denominator: Sequence[float]) -> Summary:
    """Median and quartiles of the rounds' ratios (not the ratio of the medians)."""
    return summary([a / b for a, b in zip(numerator, denominator, strict=True)])


def compared(rates: Mapping[str, Sequence[float]]) -> dict[str, Any]:
    """Summaries of the rounds' rates, and the first one's ratios to the others."""
    first, *others = rates
    return {
        "rates": dict(rates),
        "summary": {name: summary(values) for name, values in rates.items()},
        "ratios": {name: ratio(rates[first], rates[name]) for name in others},
    }


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
    """The facts that figures depend on: CPU, memory, system and versions; no names and no paths."""
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
    known = _line_of("/proc/meminfo", "MemAvailable")
    return int(known.split()[0]) * 1024 if known else _memory_bytes()


def _memory_bytes() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def _cpu_model() -> str:
    return _line_of("/proc/cpuinfo", "model name") or platform.processor() or platform.machine()


def _line_of(path: str, name: str) -> str:
    """The value of the first ``name: value`` in a file; empty if there is none."""
    try:
        lines = Path(path).read_text().splitlines()
    except OSError:
        return ""
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith(name)), "")


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

    def git(*words: str) -> str:
        command = ["git", "-C", str(Path(__file__).parents[2]), *words]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()

    outside = [":/", ":(top,exclude)bench/results", ":(top,exclude)docs/results"]
    try:
        commit = git("rev-parse", "--short", "HEAD")
        return commit + ("+" if git("status", "--porcelain", "-uno", "--", *outside) else "")
    except (OSError, subprocess.CalledProcessError):
        return None
