"""Metrics of a run: JSON lines (the truth), CSV and TensorBoard (derived from them).

Each row is one write to metrics.jsonl, so a killed process leaves whole rows and at most one torn
line at the end, which readers skip and a resumed run cuts off. Rows may have different columns. The
CSV gains a column by being rewritten.
"""

from __future__ import annotations

import csv
import io
import json
import math
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pyfastenv.training.atomic import append, write_text
from pyfastenv.training.event_file import EventFile
from pyfastenv.training.run_folder import METRICS, METRICS_CSV, TENSORBOARD

Row = dict[str, float]


class MetricLogger:
    """Writes a run's metrics.

    Args:
        folder: The run folder, which exists.
        tensorboard: Write event files too; without the package, one line on stderr says so.
        resume_step: Drop the rows after this step and go on.
    """

    def __init__(self, folder: Path, *, tensorboard: bool = False, resume_step: int | None = None):
        self._path = folder / METRICS
        self._csv_path = folder / METRICS_CSV
        rows = read_metrics(folder) if self._path.exists() else []
        rows = [row for row in rows if resume_step is not None and row["step"] <= resume_step]
        write_text(self._path, "".join(_line(row) for row in rows))
        self._file = open(self._path, "ab", buffering=0)  # noqa: SIM115
        self._csv: io.FileIO | None = None
        self._columns = ["step"]
        self._write_csv(rows)
        self._tensorboard = _open_tensorboard(folder, resume_step) if tensorboard else None

    def log(self, step: int, metrics: Mapping[str, float]) -> None:
        """Writes a row; numbers that are not finite become empty.

        Raises:
            OSError: The disk is full, say.
        """
        row: Row = {"step": step, **{name: _number(value) for name, value in metrics.items()}}
        append(self._file, _line(row).encode())
        if row.keys() <= set(self._columns):
            self._append_csv(row)
        else:
            self._write_csv(_read(self._path))
        if self._tensorboard is not None:
            self._tensorboard.log(step, metrics)

    def sync(self) -> None:
        """Makes sure that all rows are on the disk."""
        os.fsync(self._file.fileno())

    def close(self) -> None:
        """Closes the files; all rows were written before."""
        self._file.close()
        if self._csv is not None:
            self._csv.close()
        if self._tensorboard is not None:
            self._tensorboard.close()

    def _append_csv(self, row: Row) -> None:
        assert self._csv is not None
        append(self._csv, _csv_rows([row], self._columns).encode())

    def _write_csv(self, rows: list[Row]) -> None:
        """Writes the whole table, its columns in order of appearance."""
        if self._csv is not None:
            self._csv.close()
        self._columns = list(dict.fromkeys(["step", *(name for row in rows for name in row)]))
        header = dict(zip(self._columns, self._columns, strict=True))
        write_text(self._csv_path, _csv_rows([header, *rows], self._columns))
        self._csv = open(self._csv_path, "ab", buffering=0)  # noqa: SIM115


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
        except (ValueError, AttributeError) as error:
            raise ValueError(f"{path}, line {number}: not a row of metrics ({error})") from error
    return rows


def _number(value: Any) -> float:
    return value if isinstance(value, int) else float(value)


def _line(row: Row) -> str:
    finite = {name: value if math.isfinite(value) else None for name, value in row.items()}
    return json.dumps(finite) + "\n"


def _csv_rows(rows: list[Any], columns: list[str]) -> str:
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, restval="", lineterminator="\n")
    for row in rows:
        writer.writerow({name: "" if v != v else v for name, v in row.items()})
    return text.getvalue()


def _open_tensorboard(folder: Path, resume_step: int | None) -> EventFile | None:
    purge_step = None if resume_step is None else resume_step + 1
    try:
        return EventFile(folder / TENSORBOARD, purge_step)
    except ImportError:
        print("TensorBoard is not installed (pip install tensorboard): no events", file=sys.stderr)
        return None
