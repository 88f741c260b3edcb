"""Run folders as data: found, read, told apart by what was set, and their curves averaged.

``pyfastenv runs`` prints them, ``pyfastenv report`` draws them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from pyfastenv.runs.folder import CONFIG, EARLIER, RESULT, read_facts
from pyfastenv.runs.lock import is_held
from pyfastenv.runs.logger import METRICS, Row, read_metrics
from pyfastenv.runs.progress import duration
from pyfastenv.runs.settings import differing, label_of

EVALUATION, TRAINING = "eval/return", "train/return"
MEASURES = {EVALUATION: "evaluations", TRAINING: "episodes trained on"}  # returns of what

LEFT_ALIGNED = (0, 1, 2, 8)  # table's columns

Array = NDArray[np.float64]
State = Literal["running", "finished", "stopped"]


@dataclass(frozen=True)
class Run:
    """One run folder.

    Attributes:
        folder: It.
        algorithm: Its name.
        config: The options, as config.json has them.
        own_losses: Losses of the user's own, by what they stand for.
        rows: The metrics.
        state: ``"stopped"`` can be resumed; ``"finished"`` reached its last step.
    """

    folder: Path
    algorithm: str
    config: dict[str, Any]
    own_losses: dict[str, str]
    rows: list[Row]
    state: State

    @property
    def env_id(self) -> str:
        """The environment."""
        return str(self.config["env_id"])

    @property
    def settings(self) -> dict[str, Any]:
        """The algorithm's name, its options and its losses."""
        return {"algorithm": self.algorithm, **self.config, **self.own_losses}

    @property
    def seed(self) -> int:
        """The seed."""
        return int(self.config["seed"])

    @property
    def step(self) -> int:
        """The last logged step; 0 before the first."""
        return int(self.rows[-1]["step"]) if self.rows else 0

    @property
    def elapsed_s(self) -> float:
        """Time of training [s]."""
        return self.rows[-1].get("time/elapsed_s", math.nan) if self.rows else math.nan

    @property
    def steps_per_s(self) -> float:
        """Environment steps per second of training, evaluations counted; NaN before the first."""
        return self.step / self.elapsed_s if self.elapsed_s else math.nan

    @property
    def metrics(self) -> list[str]:
        """The names of everything that was logged."""
        return list(dict.fromkeys(name for row in self.rows for name in row))

    def curve(self, metric: str, against: str = "step") -> tuple[Array, Array]:
        """Where a metric was logged, ``(n,)``, and what it was, ``(n,)``."""
        points = [
            (row[against], row[metric])
            for row in self.rows
            if against in row and math.isfinite(row.get(metric, math.nan))
        ]
        x, y = np.array(points, dtype=np.float64).reshape(-1, 2).T
        return x, y

    def last(self, metric: str) -> float:
        """A metric's last value; NaN if there is none."""
        y = self.curve(metric)[1]
        return float(y[-1]) if len(y) else math.nan

    @property
    def last_return(self) -> float:
        """Return of the last evaluation; before the first, of the episodes trained on."""
        evaluated = self.last(EVALUATION)
        return evaluated if math.isfinite(evaluated) else self.last(TRAINING)


@dataclass(frozen=True)
class Group:
    """Runs that differ in nothing but the seed.

    Attributes:
        label: Algorithm, and the settings that tell it from the other groups.
        runs: In order of their seeds.
    """

    label: str
    runs: list[Run]


@dataclass(frozen=True)
class Spread:
    """Curves of several seeds on common points, each ``(n,)``."""

    x: Array
    mean: Array
    low: Array
    high: Array


def read_run(folder: Path) -> Run:
    """Reads a run folder.

    Raises:
        FileNotFoundError: This is no run folder.
        ValueError: It is damaged.
    """
    facts = read_facts(folder)
    config = facts["config"]
    missing = [name for name in ("env_id", "seed", "total_steps") if name not in config]
    if missing:
        raise ValueError(f"{folder / CONFIG}: not a run's configuration: no {', '.join(missing)}")
    for name, kind in (("env_id", str), ("seed", int), ("total_steps", int)):
        if not isinstance(config[name], kind):
            raise ValueError(f"{folder / CONFIG}: {name}: got {config[name]!r}")
    rows = read_metrics(folder) if (folder / METRICS).is_file() else []
    state: State = "stopped"
    if is_held(folder):
        state = "running"
    elif (folder / RESULT).is_file() and rows and rows[-1]["step"] >= config["total_steps"]:
        state = "finished"
    return Run(folder, facts["algorithm"], config, facts.get("own_losses", {}), rows, state)


def find_runs(folder: Path) -> tuple[list[Run], list[str]]:
    """All runs in a folder and the folders in it.

    Returns:
        The runs, by their folders' names, and what is wrong with those that cannot be read.

    Raises:
        FileNotFoundError: There is no such folder.
    """
    if not folder.is_dir():
        raise FileNotFoundError(f"{folder}: there is no such folder")
    runs, problems = [], []
    for path in sorted(folder.rglob(CONFIG)):
        if any(part.startswith(EARLIER) for part in path.relative_to(folder).parts):
            continue  # what auto_resume set aside is no seed of its own
        try:
            runs.append(read_run(path.parent))
        except ValueError as error:
            problems.append(str(error))
    return runs, problems


def grouped(runs: Sequence[Run]) -> list[Group]:
    """Runs of one environment, those that differ in the seed alone together."""
    settings = differing([run.settings for run in runs])
    groups: dict[tuple[str, ...], list[Run]] = {}
    for i, run in enumerate(runs):
        key = tuple(str(column[i]) for column in settings.values())
        groups.setdefault(key, []).append(run)
    names = [name for name in settings if name != "algorithm"]
    found = []
    for members in groups.values():
        first = members[0]
        label = first.algorithm
        if len(groups) > 1 and names:
            label += " " + label_of(names, first.settings)
        found.append(Group(label, sorted(members, key=lambda run: run.seed)))
    return found


def spread(curves: Sequence[tuple[Array, Array]], points: int = 200) -> Spread:
    """The mean of curves and the range between the lowest and the highest, where all have begun.

    Args:
        curves: Of each run x, increasing, and y, ``(n,)``; lines between the points.
        points: How many the result has at most: those of the curve with fewest, if these are fewer.

    Raises:
        ValueError: No curves, or one without points.
    """
    if not curves or min(len(x) for x, _ in curves) == 0:
        raise ValueError("curves: expected at least one, each with points")
    begin = max(x[0] for x, _ in curves)
    end = max(begin, min(x[-1] for x, _ in curves))
    fewest = min((x for x, _ in curves), key=len)
    x = fewest[(fewest >= begin) & (fewest <= end)]
    if len(x) < 2 or len(x) > points:
        x = np.linspace(begin, end, points if end > begin else 1)
    values = np.stack([np.interp(x, *curve) for curve in curves])  # (curves, points)
    return Spread(x, values.mean(0), values.min(0), values.max(0))


def shown_metric(runs: Iterable[Run]) -> str:
    """Evaluations if every run has some, otherwise returns of the episodes trained on."""
    evaluated = all(math.isfinite(run.last(EVALUATION)) for run in runs)
    return EVALUATION if evaluated else TRAINING


def table(runs: Sequence[Run], metric: str | None = None) -> list[tuple[str, ...]]:
    """The runs as rows of text, the first row the columns' names.

    Args:
        runs: They.
        metric: Whose last value is the return; None: :attr:`Run.last_return`.
    """
    of = "return" if metric is None else f"last return of {MEASURES[metric]}"
    head = ("run", "algorithm", "environment", "seed", "steps", of, "steps/s", "time", "")
    return [
        head,
        *(
            (
                str(run.folder),
                run.algorithm,
                run.env_id,
                str(run.seed),
                steps_text(run),
                number(run.last_return if metric is None else run.last(metric), 1),
                number(run.steps_per_s),
                duration(run.elapsed_s) if run.rows else "–",
                run.state,
            )
            for run in runs
        ),
    ]


def steps_text(run: Run) -> str:
    """How far a run is: its steps, and of how many where it has not reached them."""
    total = run.config["total_steps"]
    return f"{run.step:,}" if run.step >= total else f"{run.step:,} of {total:,}"


def number(value: float, digits: int = 0) -> str:
    """With thousands separated; a dash for NaN."""
    return f"{value:,.{digits}f}" if math.isfinite(value) else "–"
