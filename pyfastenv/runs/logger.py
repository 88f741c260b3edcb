"""Metrics of a run: JSON lines (the truth), and the loggers that receive each row.

Each row is one write to metrics.jsonl, so a killed process leaves whole rows and at most one torn
line at the end, which readers skip and a resumed run cuts off. Rows may have different columns.
"""

from __future__ import annotations

import json
import math
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from pyfastenv.runs.atomic import append, write_text
from pyfastenv.runs.errors import TrainingError
from pyfastenv.runs.registry import load_logger

METRICS = "metrics.jsonl"  # in a run folder

Row = dict[str, float]


@dataclass(frozen=True)
class LoggerStart:
    """The facts that a logger is made with.

    Attributes:
        folder: The run folder, which exists.
        config: The run's options, as config.json has them.
        resume_step: The step that a resumed run goes on from: later rows are to be forgotten. None:
            the run begins.
        read: Gives the rows that metrics.jsonl has.
    """

    folder: Path
    config: Mapping[str, Any]
    resume_step: int | None
    read: Callable[[], list[Row]]


class Logger(Protocol):
    """Where metrics go. Registered by name (:mod:`pyfastenv.runs.registry`).

    Args:
        start: Where the run begins.
    """

    def __init__(self, start: LoggerStart): ...

    def log(self, step: int, metrics: Mapping[str, float]) -> None:
        """Takes a row, which is in metrics.jsonl already.

        After an error, which is printed, it receives nothing more and the run goes on.
        """
        ...

    def close(self) -> None:
        """The run has ended."""
        ...


class MetricLogger:
    """Writes a run's metrics.

    Args:
        folder: The run folder, which exists.
        loggers: Names of the loggers that get each row too.
        config: The run's options, for them.
        resume_step: Drop the rows after this step and go on.

    Raises:
        ValueError: An unknown name.
        ImportError: What a logger needs is not installed.
        TrainingError: A logger cannot begin.
    """

    def __init__(
        self,
        folder: Path,
        loggers: Sequence[str] = (),
        *,
        config: Mapping[str, Any] | None = None,
        resume_step: int | None = None,
    ):
        self._path = folder / METRICS
        rows = read_metrics(folder) if self._path.exists() else []
        rows = [row for row in rows if resume_step is not None and row["step"] <= resume_step]
        write_text(self._path, "".join(_line(row) for row in rows))
        start = LoggerStart(folder, config or {}, resume_step, lambda: _read(self._path))
        self._loggers: dict[str, Logger] = {name: _made(name, start) for name in loggers}
        self._file = open(self._path, "ab", buffering=0)  # noqa: SIM115

    def log(self, step: int, metrics: Mapping[str, float]) -> None:
        """Writes a row; numbers that are not finite become empty.

        Raises:
            OSError: The disk is full, say.
            ValueError: A metric is called ``"step"``.
        """
        if "step" in metrics:
            raise ValueError("metrics: a row's 'step' is its own; give this number another name")
        numbers = {name: _number(value) for name, value in metrics.items()}
        append(self._file, _line({"step": step, **numbers}).encode())
        for name, logger in list(self._loggers.items()):
            if not _went_well(name, partial(logger.log, step, dict(numbers))):
                del self._loggers[name]

    def sync(self) -> None:
        """Makes sure that all rows are on the disk."""
        os.fsync(self._file.fileno())

    def close(self) -> None:
        """Closes the files; all rows were written before."""
        self._file.close()
        for name, logger in self._loggers.items():
            _went_well(name, logger.close)


def _made(name: str, start: LoggerStart) -> Logger:
    kind = load_logger(name)
    try:
        logger: Logger = kind(start)
    except (ImportError, ValueError):
        raise
    except Exception as error:
        raise TrainingError(f"loggers: {name}: {_words(error)}") from error
    return logger


def _went_well(name: str, tell: Callable[[], None]) -> bool:
    """Tells a logger; what is wrong with it is no reason to end a training."""
    try:
        tell()
    except Exception as error:
        print(
            f"pyfastenv: logger {name}: {_words(error)}; it is told nothing more, {METRICS} has "
            "everything",
            file=sys.stderr,
        )
        return False
    return True


def _words(error: Exception) -> str:
    return str(error) or type(error).__name__


def read_metrics(folder: Path) -> list[Row]:
    """A run's rows, in order; numbers that were not finite are NaN.

    Raises:
        FileNotFoundError: The folder has no metrics.
        ValueError: A line in the middle is not a row.
    """
    path = folder / METRICS
    if not path.is_file():
        raise FileNotFoundError(f"{folder}: not a run folder: it has no {METRICS}")
    return _read(path)


def _read(path: Path) -> list[Row]:
    rows = []
    lines = path.read_bytes().split(b"\n")
    for number, line in enumerate(lines[:-1], start=1):  # after the last newline: nothing, or torn
        try:
            row = json.loads(line)
            rows.append({name: math.nan if v is None else v for name, v in row.items()})
            if not isinstance(row.get("step"), int):
                raise ValueError("its step is missing")
        except (ValueError, AttributeError) as error:
            raise ValueError(f"{path}, line {number}: not a row of metrics ({error})") from error
    return rows


def _number(value: Any) -> float:
    return value if isinstance(value, int) else float(value)


def _line(row: Row) -> str:
    finite = {name: value if math.isfinite(value) else None for name, value in row.items()}
    return json.dumps(finite) + "\n"
