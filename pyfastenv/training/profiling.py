"""--profile: records a window of the training; where its time goes, by named range.

trace.json.gz is for Perfetto; profile.txt, its table of ranges, and what ``pyfastenv profile RUN``
prints are made from it.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import torch
from torch import profiler

from pyfastenv.nn.spans import SPANS, record_spans, span
from pyfastenv.publish.plots import plot_memory
from pyfastenv.runs.logger import Row, read_metrics

TRACE = "trace.json.gz"
TABLE = "profile.txt"
MEMORY = "memory.png"
ITERATION = "iteration"
ACTIVITIES = {
    "cpu": profiler.ProfilerActivity.CPU,
    "cuda": profiler.ProfilerActivity.CUDA,
}
_SKIP, _RECORD = 2, 3  # iterations, where no window is given


class Profile:
    """Profiles a window of iterations; writes trace.json.gz, profile.txt and perhaps memory.png.

    In a run that ends within the window, what there is is written.

    Args:
        folder: Where the files go.
        enabled: False does nothing.
        window: The iterations that begin at or after the first step are recorded until the second
            is reached; None: three, after two that allocate and choose kernels.
        activities: Keys of :data:`ACTIVITIES`; none: all that this machine has.
        memory: Record allocations too.

    Attributes:
        table: The text of profile.txt, once it is written; or why nothing was.
    """

    def __init__(
        self,
        folder: Path,
        *,
        enabled: bool = True,
        window: tuple[int, int] | None = None,
        activities: Sequence[str] = (),
        memory: bool = False,
    ):
        self.table = ""
        self._folder = folder
        self._waiting = enabled
        self._window = window
        self._activities = [ACTIVITIES[name] for name in activities] or [
            activity
            for name, activity in ACTIVITIES.items()
            if name != "cuda" or torch.cuda.is_available()
        ]
        self._memory = memory
        self._count = self._recorded = 0
        self._profiler: profiler.profile | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self._stop()
        if self._waiting:
            self.table = "Nothing was profiled: the run was over before the steps to be profiled."

    @contextmanager
    def iteration(self, step: Callable[[], int]) -> Iterator[None]:
        """Goes around each iteration.

        Args:
            step: Says how many environment steps there have been.
        """
        if self._waiting and self._begins(step()):
            self._start()
        self._count += 1
        with span(ITERATION):
            yield
        if self._profiler is not None:
            self._recorded += 1
            if self._is_over(step()):
                self._stop()

    def _begins(self, step: int) -> bool:
        return self._count == _SKIP if self._window is None else step >= self._window[0]

    def _is_over(self, step: int) -> bool:
        return self._recorded == _RECORD if self._window is None else step >= self._window[1]

    def _start(self) -> None:
        self._waiting = False
        self._profiler = profiler.profile(activities=self._activities, profile_memory=self._memory)
        self._profiler.start()
        record_spans(True)

    def _stop(self) -> None:
        if self._profiler is None:
            return
        record_spans(False)
        recorder, self._profiler = self._profiler, None
        recorder.stop()
        if self._recorded == 0:  # the first was interrupted
            return
        recorder.export_chrome_trace(str(self._folder / TRACE))
        on_gpu = profiler.ProfilerActivity.CUDA in self._activities
        operators: str = recorder.key_averages().table(
            sort_by="self_device_time_total" if on_gpu else "self_cpu_time_total",
            row_limit=15,
            max_name_column_width=40,
        )
        self.table = f"{ranges_table(read_ranges(self._folder / TRACE))}\n\n{operators}\n"
        (self._folder / TABLE).write_text(self.table)
        if self._memory:
            plot_memory(self._folder / TRACE, self._folder / MEMORY)


@dataclass
class Range:
    """A named range of a trace.

    Attributes:
        name: One of :data:`SPANS`, or :data:`ITERATION`.
        start: When it began [µs].
        duration: How long it took, with what is nested in it [µs].
        alone: Without that [µs].
        depth: How many others it is nested in, the iteration not counted (which has -1).
        gpu: Time that the GPU worked on what it launched, with what is nested in it [µs].
        again: Whether it is nested in one of the same name.
    """

    name: str
    start: float
    duration: float
    alone: float
    depth: int
    gpu: float = 0.0
    again: bool = False


def read_events(path: Path) -> list[dict[str, Any]]:
    """A trace's events.

    Raises:
        ValueError: This is no trace.
    """
    try:
        with gzip.open(path, "rt") as file:
            events: list[dict[str, Any]] = json.load(file)["traceEvents"]
    except (gzip.BadGzipFile, ValueError, KeyError, TypeError) as error:
        raise ValueError(f"{path}: not a trace ({error})") from error
    return events


def read_ranges(path: Path) -> list[Range]:
    """The named ranges of a trace in order of time; of the thread that iterates.

    Raises:
        ValueError: This is no trace, or it has no iterations.
    """
    events = read_events(path)
    of_gpu = [event for event in events if event.get("cat") == "gpu_user_annotation"]
    mine = [
        event
        for event in events
        if event.get("cat") == "user_annotation" and event.get("name") in (*SPANS, ITERATION)
    ]
    threads = {event["tid"] for event in mine if event["name"] == ITERATION}
    if not threads:
        raise ValueError(f"{path}: no iterations in it")
    ranges: list[Range] = []
    open_ones: list[Range] = []
    for event in sorted(mine, key=lambda event: (event["ts"], -event["dur"])):
        if event["tid"] not in threads:
            continue
        while open_ones and event["ts"] >= open_ones[-1].start + open_ones[-1].duration:
            open_ones.pop()
        new = Range(event["name"], event["ts"], event["dur"], event["dur"], len(open_ones) - 1)
        new.again = any(outer.name == new.name for outer in open_ones)
        if open_ones:
            open_ones[-1].alone -= new.duration
        ranges.append(new)
        open_ones.append(new)
    for name in SPANS:
        of_name = [event for event in of_gpu if event["name"] == name]
        durations = iter(event["dur"] for event in sorted(of_name, key=lambda event: event["ts"]))
        for each in (one for one in ranges if one.name == name):
            each.gpu = next(durations, 0.0)
    return ranges


def ranges_table(ranges: Sequence[Range]) -> str:
    """Each range's share of the iterations' time, without what is nested in it."""
    iterations = [each for each in ranges if each.name == ITERATION]
    count, total = len(iterations), sum(each.duration for each in iterations)
    lines = [
        f"{count} iterations of {total / count / 1e3:.1f} ms; each range without those in it",
        "",
        f"{'range':<12}{'share':>8}{'ms/iteration':>16}{'calls/iteration':>18}"
        f"{'ms on the GPU':>16}",
    ]
    for name in SPANS:
        mine = [each for each in ranges if each.name == name]
        if mine:
            time = sum(each.alone for each in mine)
            calls = sum(not each.again for each in mine) / count
            gpu = sum(each.gpu for each in mine if not each.again)
            on_gpu = f"{gpu / count / 1e3:16.2f}" if gpu else ""
            lines.append(f"{_row(name, time, total, count)}{calls:18.0f}{on_gpu}")
    lines.append(_row("the rest", sum(each.alone for each in iterations), total, count))
    return "\n".join(lines)


def _row(name: str, time: float, total: float, iterations: int) -> str:
    return f"{name:<12}{time / total:8.1%}{time / iterations / 1e3:16.2f}"


# times of the whole run until then, and a rate
_NO_PHASES = ("elapsed", "processor", "awake", "cpu", "steps_per")


def phases(folder: Path) -> dict[str, float]:
    """The time that a whole run's iterations spent on each phase, profiled or not [s]."""
    return phases_of(read_metrics(folder))


def phases_of(rows: Iterable[Row]) -> dict[str, float]:
    """:func:`phases`, of rows of metrics."""
    seconds: dict[str, float] = {}
    for row in rows:
        for key, value in row.items():
            name = key.removeprefix("time/").removesuffix("_s")
            if key == f"time/{name}_s" and name not in _NO_PHASES:
                seconds[name] = seconds.get(name, 0.0) + value
    return seconds


def report(folder: Path) -> str:
    """The text of ``pyfastenv profile RUN``: the run's phases, and its recorded ranges if any.

    Raises:
        FileNotFoundError: No run folder.
    """
    seconds = phases(folder)
    total = sum(seconds.values())
    lines = [f"the whole run: {total:.1f} s in iterations", ""]
    lines += [f"{name:<12}{value / total:8.1%}{value:12.2f} s" for name, value in seconds.items()]
    if not (folder / TRACE).exists():
        return "\n".join([*lines, "", "no ranges were recorded: train with --profile", ""])
    return "\n".join([*lines, "", ranges_table(read_ranges(folder / TRACE)), ""])
