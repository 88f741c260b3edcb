"""Callbacks: a user's code in the middle of a run, with the events that Stable-Baselines3 has.

    class StopAt3000(Callback):
        def on_evaluation(self, run, metrics):
            if metrics["eval/return"] > 3000:
                run.stop("good enough")

    sac.train(config, callbacks=[StopAt3000()])

They run in the process that logs and saves (under torchrun: process 0), after what they are told
of, and change nothing in the training unless they reach into ``run.algorithm``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from pyfastenv.runs.config import RunConfig
from pyfastenv.training.algorithm import Algorithm

Metrics = dict[str, float]


@dataclass
class Run:
    """A run as callbacks see it.

    Attributes:
        algorithm: What trains.
        config: The options.
        folder: The run folder.
        evaluation: The latest evaluation's metrics; empty before the first.
        stopped: Why a callback has stopped the run; None: none has.
    """

    algorithm: Algorithm
    config: RunConfig
    folder: Path
    evaluation: Metrics = field(default_factory=dict)
    stopped: str | None = None

    @property
    def step(self) -> int:
        """Environment steps so far."""
        return self.algorithm.global_step

    def stop(self, reason: str) -> None:
        """Ends the run when the iteration ends, with an evaluation, a checkpoint and a result.

        ``pyfastenv resume`` goes on from there.

        Args:
            reason: For the output and result.json.
        """
        if self.stopped is None:
            self.stopped = reason


class Callback:
    """The events of a run; a subclass overrides those that it wants.

    A method that returns False stops the run, as in Stable-Baselines3; :meth:`Run.stop` does it
    with a reason.
    """

    def on_start(self, run: Run) -> bool | None:
        """The run begins, or goes on from a checkpoint (``run.step`` is not 0 then)."""

    def on_step(self, run: Run, metrics: Metrics) -> bool | None:
        """An iteration has ended: all environments have stepped, and the algorithm has learned.

        Args:
            run: The run.
            metrics: Of the iteration; numbers that are added are logged in its row, under any name
                but ``"step"``, which the row has.
        """

    def on_evaluation(self, run: Run, metrics: Metrics) -> bool | None:
        """The policy has been evaluated.

        Args:
            run: The run.
            metrics: ``"eval/return"``, ``"eval/return_std"`` and others.
        """

    def on_checkpoint(self, run: Run, path: Path) -> bool | None:
        """A checkpoint has been written.

        Args:
            run: The run.
            path: The file.
        """

    def on_end(self, run: Run) -> bool | None:
        """The run has ended, by itself or stopped; errors and Ctrl-C are not reported to it."""


StepFunction = Callable[[Run, Metrics], "bool | None"]


class StopAtReturn(Callback):
    """Stops once an evaluation's mean return is high enough.

    Args:
        threshold: The return.
    """

    def __init__(self, threshold: float):
        self.threshold = threshold

    def on_evaluation(self, run: Run, metrics: Metrics) -> None:
        """Compares."""
        if metrics["eval/return"] >= self.threshold:
            run.stop(f"return {metrics['eval/return']:,.1f} reached {self.threshold:,.1f}")


class Callbacks:
    """All callbacks of a run as one.

    Args:
        callbacks: Objects like :class:`Callback`, or functions, which receive ``on_step``.
        run: What they see.

    Raises:
        TypeError: One is neither, or this is no list.
    """

    def __init__(self, callbacks: Sequence[Callback | StepFunction], run: Run):
        self.run = run
        if not isinstance(callbacks, Iterable) or callable(callbacks):
            raise TypeError(f"callbacks: expected a list of them, got {callbacks!r}")
        self._callbacks = [_as_callback(each) for each in callbacks]

    def tell(self, event: str, *arguments: Any) -> None:
        """Calls ``event`` of each with the run and what else there is to know."""
        for callback in self._callbacks:
            answer = getattr(callback, event)(self.run, *arguments)
            if isinstance(answer, bool | np.bool_) and not answer:
                self.run.stop(f"{type(callback).__name__}.{event} returned False")


def _as_callback(given: Any) -> Callback:
    if isinstance(given, Callback):
        return given
    if callable(given) and not isinstance(given, type):
        callback = Callback()
        callback.on_step = given  # type: ignore[method-assign]
        return callback
    raise TypeError(
        f"callbacks: expected objects of pyfastenv.training.callbacks.Callback or functions of "
        f"(run, metrics), got {given!r}"
    )
