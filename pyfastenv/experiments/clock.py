"""One clock for all measurements: time, CPUs, other programs, stolen time, memory, GPU."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import os
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from typing import IO, Any, Self

import numpy as np
import psutil
import torch


class Clock:
    """Measures a ``with`` block, and what else the machine did meanwhile.

    Args:
        pids: Worker processes that count as this one's; they live until the block ends.
        gpu: Sample the GPU's utilisation too.
    """

    def __init__(self, pids: Sequence[int] = (), *, gpu: bool = False):
        self._workers = [psutil.Process(pid) for pid in pids]
        self._gpu = _GpuSampler() if gpu else None
        self.seconds = self.cpus = self.others = self.steal = 0.0
        self.gpu_percent: float | None = None

    def __enter__(self) -> Self:
        synchronise()
        self._machine, self._mine = _machine_seconds(), self._cpu_seconds()
        self._began = time.perf_counter()
        return self

    def __exit__(self, *exception: object) -> None:
        synchronise()
        self.seconds = time.perf_counter() - self._began
        busy, stolen = (
            after - before for after, before in zip(_machine_seconds(), self._machine, strict=True)
        )
        self.cpus = (self._cpu_seconds() - self._mine) / self.seconds
        self.others = max(0.0, busy / self.seconds - self.cpus)
        self.steal = stolen / self.seconds
        if self._gpu is not None:
            self.gpu_percent = self._gpu.stop()

    def _cpu_seconds(self) -> float:
        total = time.process_time()
        for worker in self._workers:
            times = worker.cpu_times()
            total += times.user + times.system
        return total

    def row(self) -> dict[str, Any]:
        """The block's time [s]; CPUs that it got, that other programs got, that the host took from
        this machine, each on average; the GPU's utilisation [%] if it was sampled."""
        return {
            "seconds": self.seconds,
            "cpus": self.cpus,
            "others": self.others,
            "steal": self.steal,
        } | ({} if self._gpu is None else {"gpu_percent": self.gpu_percent})


def milliseconds(call: Callable[[], object], *, repeats: int = 1) -> list[float]:
    """Times of a call [ms], after one that warms up where it is repeated."""
    if repeats > 1:
        call()
    times = []
    for _ in range(repeats):
        synchronise()
        began = time.perf_counter()
        call()
        synchronise()
        times.append(1e3 * (time.perf_counter() - began))
    return times


def synchronise() -> None:
    """Waits for the GPU, if there is one."""
    if torch.cuda.is_available():
        torch.cuda.synchronize()


def _machine_seconds() -> tuple[float, float]:
    """All programs' CPU time, and that which the host took from this machine [s]."""
    times = psutil.cpu_times()
    return times.user + times.nice + times.system, getattr(times, "steal", 0.0)


class _GpuSampler:
    """nvidia-smi's utilisation every 0.2 s; nothing where there is no nvidia-smi."""

    def __init__(self) -> None:
        self._file: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - stop() closes it
        query = ["--query-gpu=utilization.gpu", "--format=csv,noheader,nounits", "-i", "0"]
        self._process: subprocess.Popen[bytes] | None = None
        with contextlib.suppress(OSError):
            self._process = subprocess.Popen(
                ["nvidia-smi", *query, "-lms", "200"], stdout=self._file
            )

    def stop(self) -> float | None:
        """The mean."""
        if self._process is not None:
            self._process.terminate()
            self._process.wait()
        with self._file:
            self._file.seek(0)
            values = [int(x) for x in self._file.read().decode().split() if x.isdigit()]
        return float(np.mean(values)) if values else None


# ---- memory --------------------------------------------------------------------------------------


def memory_bytes(pids: Sequence[int] = ()) -> int:
    """Memory of this process and others, shared pages counted once where the system tells."""
    return sum(_proportional(psutil.Process(pid)) for pid in (os.getpid(), *pids))


def _proportional(process: psutil.Process) -> int:
    full = process.memory_full_info()
    return int(getattr(full, "pss", full.uss))


def trim_memory() -> None:
    """Gives freed memory back to the system: what comes next needs it, and is not to seem small."""
    gc.collect()
    with contextlib.suppress(OSError, AttributeError, TypeError):  # not glibc
        ctypes.CDLL(None).malloc_trim(0)
