"""One clock for all measurements: time, CPUs, other programs, stolen time, memory, GPU."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import os
import subprocess
import time
from collections.abc import Callable, Sequence
from typing import Any, Self

import numpy as np
import torch


class Clock:
    """Measures a ``with`` block, and what else the machine did meanwhile.

    Args:
        pids: Worker processes that count as this one's; they live until the block ends.
        gpu: Sample the GPU's utilisation too.

    Attributes:
        seconds: The block's time [s].
        cpus, others, steal: CPUs that it got, that other programs got, that the host took from this
            machine, each on average.
    """

    def __init__(self, pids: Sequence[int] = (), *, gpu: bool = False):
        import psutil

        self._cpu_times = psutil.cpu_times
        self._workers = [psutil.Process(pid) for pid in pids]
        self._gpu = _GpuSampler() if gpu else None
        self.seconds = self.cpus = self.others = self.steal = 0.0
        self._gpu_row: dict[str, float | None] = {}

    def __enter__(self) -> Self:
        self._began = self._now()
        return self

    def __exit__(self, *exception: object) -> None:
        self.seconds, mine, busy, stolen = (self._now() - self._began).tolist()
        self.cpus, self.steal = mine / self.seconds, stolen / self.seconds
        self.others = max(0.0, busy / self.seconds - self.cpus)
        if self._gpu is not None:
            self._gpu_row = {"gpu_percent": self._gpu.stop()}

    def _now(self) -> Any:
        """The time; CPU time of this program and its workers, of all; what the host took [s]."""
        synchronise()
        mine, all_of_it = time.process_time(), self._cpu_times()
        for worker in self._workers:
            mine += sum(worker.cpu_times()[:2])
        busy = all_of_it.user + all_of_it.nice + all_of_it.system
        stolen = getattr(all_of_it, "steal", 0.0)
        return np.array((time.perf_counter(), mine, busy, stolen))

    def row(self) -> dict[str, Any]:
        """These attributes; the GPU's utilisation [%] if it was sampled."""
        names = ("seconds", "cpus", "others", "steal")
        return {name: getattr(self, name) for name in names} | self._gpu_row


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


class _GpuSampler:
    """nvidia-smi's utilisation every 0.2 s; nothing where there is no nvidia-smi."""

    def __init__(self) -> None:
        query = ["--query-gpu=utilization.gpu", "--format=csv,noheader,nounits", "-i", "0"]
        self._process: subprocess.Popen[str] | None = None
        with contextlib.suppress(OSError):
            self._process = subprocess.Popen(
                ["nvidia-smi", *query, "-lms", "200"], stdout=subprocess.PIPE, text=True
            )

    def stop(self) -> float | None:
        """The mean."""
        if self._process is None:
            return None
        self._process.terminate()
        values = [int(x) for x in self._process.communicate()[0].split() if x.isdigit()]
        return float(np.mean(values)) if values else None


def memory_bytes(pids: Sequence[int] = ()) -> int:
    """Memory of this process and others, shared pages counted once where the system tells."""
    import psutil

    each = [psutil.Process(pid).memory_full_info() for pid in (os.getpid(), *pids)]
    return sum(int(getattr(full, "pss", full.uss)) for full in each)


def trim_memory() -> None:
    """Gives freed memory back to the system: what comes next needs it, and is not to seem small."""
    gc.collect()
    with contextlib.suppress(OSError, AttributeError, TypeError):  # not glibc
        ctypes.CDLL(None).malloc_trim(0)
