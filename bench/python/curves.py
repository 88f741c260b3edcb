"""Learning curves in docs/results/<study>.json: written as a training goes, seed by seed.

A run there has ``curve``: columns ``steps``, ``seconds`` (wall clock while the process ran, of all
seeds side by side together, without evaluations), ``cpu_seconds`` and ``returns`` (greedy
episodes, the seed's mean); ``done`` says whether it reached its end.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from awake import Awake
from studies import Training

from pyfastenv.experiments import measure
from pyfastenv.runs.atomic import write_text
from pyfastenv.runs.logger import Row, read_metrics
from pyfastenv.training.callbacks import Callback, Metrics, Run

Curve = dict[str, list[float]]
COLUMNS = ("steps", "seconds", "cpu_seconds", "returns")
_SECONDS, _CPU = "time/awake_s", "time/cpu_s"
_WRITE_EVERY = 20.0  # [s]


def read(folder: Path, study: str) -> list[dict[str, Any]]:
    """The runs of a study; none if nothing was trained."""
    path = folder / f"{study}.json"
    runs: list[dict[str, Any]] = json.loads(path.read_text())["runs"] if path.exists() else []
    return runs


def key(run: dict[str, Any]) -> tuple[str, str, int]:
    """The key of a run, which a study has once."""
    return run["name"], run["env_id"], run["seed"]


def write(folder: Path, study: str, runs: list[dict[str, Any]]) -> None:
    """Puts runs in the place of those with the same key; others, and other programs', stay.

    A training that was begun anew takes the place of one that got further when it is further.
    """
    with _alone(folder):
        everything = {key(run): run for run in read(folder, study)}
        for run in runs:
            if run["done"] or not _further(everything.get(key(run)), run):
                everything[key(run)] = run
        text = json.dumps({"runs": sorted(everything.values(), key=key)}, indent=1)
        write_text(folder / f"{study}.json", _columns_on_lines(text) + "\n")


def _further(one: dict[str, Any] | None, other: dict[str, Any]) -> bool:
    return one is not None and "earlier" not in one and int(one["steps"]) > int(other["steps"])


def _columns_on_lines(text: str) -> str:
    """Lists of numbers on one line each: a curve is four lines, not thousands."""
    return re.sub(r"\[([^\[\]{}]*)\]", lambda match: "[" + " ".join(match[1].split()) + "]", text)


class Recorder(Callback):
    """Keeps the curves of a training's seeds in the study's file.

    Args:
        training: Whose.
        output: docs/results.
    """

    def __init__(self, training: Training, output: Path):
        self._training = training
        self._output = output
        self._curves: list[Curve] = []
        self._written = 0.0
        self._cpu_before = 0.0
        self._reading = (0.0, 0.0)  # seconds, and of the processor, at the end of the last step
        self._paused = (0.0, 0.0)  # what evaluations took

    def on_start(self, run: Run) -> None:
        """Takes up the curves of the rows up to the checkpoint that the run goes on from."""
        rows = read_metrics(run.folder)
        self._curves = [{name: [] for name in COLUMNS} for _ in self._training.seeds]
        for row in rows:
            if "eval/return" in row and _SECONDS in row:
                self._add(int(row["step"]), (row[_SECONDS], row[_CPU]), row)
        last = next((row for row in reversed(rows) if _SECONDS in row), None)
        self._reading = (last[_SECONDS], last[_CPU]) if last is not None else (0.0, 0.0)
        self._paused = (0.0, 0.0)
        self._cpu_before = self._reading[1] - time.process_time()
        self._awake = Awake(self._reading[0])

    def on_step(self, run: Run, metrics: Metrics) -> None:
        """Reads the clocks."""
        now = self._clocks()
        self._reading = (now[0] - self._paused[0], now[1] - self._paused[1])
        metrics[_SECONDS], metrics[_CPU] = self._reading
        if (episodes := getattr(run.algorithm, "episodes", None)) is not None:
            metrics["train/episodes"] = float(len(episodes))

    def on_evaluation(self, run: Run, metrics: Metrics) -> None:
        """Adds a point, and writes now and then; evaluating is not training."""
        now = self._clocks()
        self._paused = (now[0] - self._reading[0], now[1] - self._reading[1])
        steps = self._curves[0]["steps"]
        if not steps or steps[-1] < run.step:  # a run that had ended is evaluated once more
            self._add(run.step, self._reading, metrics)
        if time.monotonic() - self._written > _WRITE_EVERY:
            self.save(run)

    def on_checkpoint(self, run: Run, path: Path) -> None:
        """Writes what a run that is interrupted now goes on from."""
        self.save(run)

    def close(self) -> None:
        """Ends what measures."""
        if hasattr(self, "_awake"):
            self._awake.close()

    def _clocks(self) -> tuple[float, float]:
        return self._awake.seconds(), self._cpu_before + time.process_time()

    def _add(self, step: int, reading: tuple[float, float], metrics: Metrics | Row) -> None:
        for k, curve in enumerate(self._curves):
            name = "eval/return" if len(self._curves) == 1 else f"eval/return_{k}"
            point = (step, round(reading[0], 2), round(reading[1], 2), round(metrics[name], 2))
            for column, value in zip(COLUMNS, point, strict=True):
                curve[column].append(value)

    def save(self, run: Run, **facts: Any) -> list[dict[str, Any]]:
        """Writes the runs of all seeds; returns them.

        Args:
            run: The run.
            **facts: What else there is to say of each; a list has one for each seed.
        """
        self._written = time.monotonic()
        choice = getattr(run.algorithm, "acceleration", None)
        config = run.config.to_dict()
        for name in ("run_dir", "resume"):
            config.pop(name)
        runs = [
            {
                "name": self._training.case.name,
                "algorithm": run.config.algorithm,
                "env_id": run.config.env_id,
                "seed": seed,
                "side_by_side": self._training.count,
                "steps": run.step,
                "done": False,
                "seconds": round(self._reading[0], 1),
                "cpu_seconds": round(self._reading[1], 1),
                **{
                    name: each[k] if isinstance(each, list) else each
                    for name, each in facts.items()
                },
                "curve": self._curves[k],
                "acceleration": None if choice is None else choice.name,
                "config": config,
                "machine": _machine(),
            }
            for k, seed in enumerate(self._training.seeds)
        ]
        write(self._output, self._training.study.name, runs)
        return runs


@cache
def _machine() -> dict[str, Any]:
    return measure.machine()


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """While no other of these programs is at the same."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
