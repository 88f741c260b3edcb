"""metrics.csv: the table of metrics.jsonl."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping
from typing import Any

from pyfastenv.runs.atomic import append, write_text
from pyfastenv.runs.folder import METRICS_CSV
from pyfastenv.runs.logger import LoggerStart, Row


class CSVLogger:
    """Rows may have different columns; a new column is gained by writing the table anew.

    Args:
        start: Where the run begins.
    """

    def __init__(self, start: LoggerStart):
        self._path = start.folder / METRICS_CSV
        self._read = start.read
        self._columns = ["step"]
        self._file: io.FileIO | None = None
        self._write(start.read())

    def log(self, step: int, metrics: Mapping[str, float]) -> None:
        """Adds a row."""
        if {"step", *metrics} <= set(self._columns):
            assert self._file is not None
            append(self._file, _lines([{"step": step, **metrics}], self._columns).encode())
        else:
            self._write(self._read())  # metrics.jsonl has the row already

    def close(self) -> None:
        """Closes the file; all rows were written before."""
        if self._file is not None:
            self._file.close()

    def _write(self, rows: list[Row]) -> None:
        """Writes the whole table, its columns in order of appearance."""
        self.close()
        self._columns = list(dict.fromkeys(["step", *(name for row in rows for name in row)]))
        header = dict(zip(self._columns, self._columns, strict=True))
        write_text(self._path, _lines([header, *rows], self._columns))
        self._file = open(self._path, "ab", buffering=0)  # noqa: SIM115


def _lines(rows: list[Any], columns: list[str]) -> str:
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, restval="", lineterminator="\n")
    for row in rows:
        writer.writerow({name: "" if v != v else v for name, v in row.items()})
    return text.getvalue()
