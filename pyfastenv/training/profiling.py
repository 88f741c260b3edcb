"""Where an iteration's time goes: named ranges, which cost next to nothing unless profiled."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any, Self

import torch
from torch import profiler

# "update": forward, backward and optimiser in one compiled call
SPANS = ("env", "transfer", "forward", "backward", "optimiser", "update")
TRACE = "trace.json"
TABLE = "profile.txt"
_ITERATION = "iteration"
_SKIP, _RECORD = 2, 3  # iterations

_off: AbstractContextManager[Any] = nullcontext()
_profiling = False


def span(name: str) -> AbstractContextManager[Any]:
    """A named range in the profile, one of :data:`SPANS`: ``with span("env"): ...``."""
    return profiler.record_function(name) if _profiling else _off


class Profile:
    """Profiles three of the first iterations; writes trace.json and profile.txt.

    The first iterations are left out: they allocate and choose kernels. In a run that ends earlier,
    what there is is written.

    Args:
        folder: Where the files go.
        enabled: False does nothing.

    Attributes:
        table: The text of profile.txt, once it is written.
    """

    def __init__(self, folder: Path, *, enabled: bool = True):
        self.table = ""
        self._folder = folder
        self._enabled = enabled
        self._count = 0
        self._recorded = 0
        self._profiler: profiler.profile | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self._stop()

    @contextmanager
    def iteration(self) -> Iterator[None]:
        """Goes around each iteration."""
        if self._enabled and self._count == _SKIP:
            self._start()
        self._count += 1
        with span(_ITERATION):
            yield
        if self._profiler is not None:
            self._recorded += 1
            if self._recorded == _RECORD:
                self._stop()

    def _start(self) -> None:
        global _profiling
        activities = [profiler.ProfilerActivity.CPU]
        if torch.cuda.is_available():
            activities.append(profiler.ProfilerActivity.CUDA)
        self._profiler = profiler.profile(activities=activities)
        self._profiler.start()
        _profiling = True

    def _stop(self) -> None:
        global _profiling
        if self._profiler is None:
            return
        _profiling = False
        self._profiler.stop()
        if self._recorded == 0:  # the first was interrupted
            self._profiler = None
            return
        self._profiler.export_chrome_trace(str(self._folder / TRACE))
        self.table = _table(self._profiler.key_averages(), self._recorded)
        (self._folder / TABLE).write_text(self.table)
        self._profiler = None


def _table(averages: Any, iterations: int) -> str:
    """Each range's share of the iterations' time, then the operators by their own time."""
    on_cpu = [event for event in averages if event.device_type.name == "CPU"]
    by_name = {event.key: event for event in on_cpu if event.key in (*SPANS, _ITERATION)}
    total = by_name[_ITERATION].cpu_time_total
    lines = [
        f"{iterations} iterations of {total / iterations / 1e3:.1f} ms",
        "",
        f"{'range':<12}{'share':>8}{'ms/iteration':>16}{'calls/iteration':>18}",
    ]
    rest = total
    for name in SPANS:
        if name in by_name:
            time, calls = by_name[name].cpu_time_total, by_name[name].count
            rest -= time
            lines.append(_row(name, time, total, iterations, f"{calls / iterations:18.0f}"))
    lines.append(_row("the rest", rest, total, iterations))
    operators: str = averages.table(
        sort_by="self_cpu_time_total", row_limit=15, max_name_column_width=40
    )
    return "\n".join([*lines, "", operators, ""])


def _row(name: str, time: float, total: float, iterations: int, calls: str = "") -> str:
    return f"{name:<12}{time / total:8.1%}{time / iterations / 1e3:16.2f}{calls}"
