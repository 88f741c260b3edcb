"""The progress of a training: a bar on a terminal, a line every few seconds elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping
from typing import Any, TextIO


class Progress:
    """Shows how far a run is; this one shows nothing."""

    def update(self, step: int, metrics: Mapping[str, float]) -> None:
        pass

    def say(self, text: str) -> None:
        pass

    def close(self) -> None:
        pass


def make_progress(
    total_steps: int, start_step: int, *, quiet: bool, lines_to: TextIO | None = None
) -> Progress:
    """The progress display that suits stdout.

    Args:
        total_steps: Where the run ends.
        start_step: Where it begins (a resumed run's checkpoint).
        quiet: Show nothing.
        lines_to: Where lines go if stdout is no terminal; None: there all the same.
    """
    if quiet:
        return Progress()
    if sys.stdout.isatty():
        return BarProgress(total_steps, start_step)
    return LineProgress(total_steps, start_step, file=lines_to)


class LineProgress(Progress):
    """A plain line every ``interval`` seconds."""

    def __init__(
        self,
        total_steps: int,
        start_step: int,
        *,
        interval: float = 5.0,
        clock: Callable[[], float] = time.monotonic,
        file: TextIO | None = None,
    ):
        self._total_steps, self._start_step = total_steps, start_step
        self._interval, self._clock, self._file = interval, clock, file
        self._started = self._printed = clock()
        self._summary = Summary()

    def update(self, step: int, metrics: Mapping[str, float]) -> None:
        self._summary.add(metrics)
        now = self._clock()
        if now - self._printed < self._interval and step < self._total_steps:
            return
        self._printed = now
        fps = (step - self._start_step) / max(now - self._started, 1e-9)
        left = (self._total_steps - step) / fps if fps > 0 else 0.0
        share = min(1.0, step / self._total_steps)
        parts = [
            f"{step:,} steps ({share:.0%})",
            f"{fps:,.0f} steps/s",
            str(self._summary),
            f"{duration(max(0.0, left))} left",
        ]
        self.say("  ".join(filter(None, parts)))

    def say(self, text: str) -> None:
        print(text, file=self._file, flush=True)


class BarProgress(Progress):
    """rich's bar: steps, steps per second, mean return, time left."""

    def __init__(self, total_steps: int, start_step: int, console: Any = None):
        from rich import progress

        self._bar = progress.Progress(
            progress.BarColumn(),
            progress.TextColumn("{task.completed:,.0f} of {task.total:,.0f} steps"),
            progress.TextColumn("{task.fields[fps]:,.0f} steps/s"),
            progress.TextColumn("{task.fields[summary]}"),
            progress.TimeRemainingColumn(compact=True),
            console=console,
        )
        self._task = self._bar.add_task(
            "", total=total_steps, completed=start_step, fps=0.0, summary=""
        )
        self._start_step, self._started = start_step, time.monotonic()
        self._summary = Summary()
        self._bar.start()

    def update(self, step: int, metrics: Mapping[str, float]) -> None:
        self._summary.add(metrics)
        fps = (step - self._start_step) / max(time.monotonic() - self._started, 1e-9)
        self._bar.update(self._task, completed=step, fps=fps, summary=str(self._summary))

    def say(self, text: str) -> None:
        self._bar.console.print(text, markup=False, highlight=False, soft_wrap=True)

    def close(self) -> None:
        self._bar.stop()


class Summary:
    """The latest training and evaluation returns, in words."""

    def __init__(self) -> None:
        self._returns: dict[str, float] = {}

    def add(self, metrics: Mapping[str, float]) -> None:
        for name, words in (("train/return", "return"), ("eval/return", "evaluation")):
            if name in metrics:
                self._returns[words] = metrics[name]

    def __str__(self) -> str:
        return "  ".join(f"{words} {value:,.1f}" for words, value in self._returns.items())


def duration(seconds: float) -> str:
    """``"1 h 02 min"``, ``"3 min 05 s"`` or ``"12 s"``."""
    minutes, rest = divmod(round(seconds), 60)
    if minutes >= 60:
        return f"{minutes // 60} h {minutes % 60:02} min"
    return f"{minutes} min {rest:02} s" if minutes else f"{rest} s"
