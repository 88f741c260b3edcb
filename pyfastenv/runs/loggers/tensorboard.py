"""TensorBoard's event files, if it is installed."""

from __future__ import annotations

import sys
from collections.abc import Mapping

from pyfastenv.runs.folder import TENSORBOARD
from pyfastenv.runs.logger import LoggerStart
from pyfastenv.runs.loggers.event_file import EventFile


class TensorBoardLogger:
    """Without the package, which everybody's default asks for, one line on stderr says so.

    Args:
        start: Where the run begins.
    """

    def __init__(self, start: LoggerStart):
        purge_step = None if start.resume_step is None else start.resume_step + 1
        self._file: EventFile | None = None
        try:
            self._file = EventFile(start.folder / TENSORBOARD, purge_step)
        except ImportError:
            print(
                "TensorBoard is not installed (pip install tensorboard): no events", file=sys.stderr
            )

    def log(self, step: int, metrics: Mapping[str, float]) -> None:
        """Adds a row."""
        if self._file is not None:
            self._file.log(step, metrics)

    def close(self) -> None:
        """Closes the file."""
        if self._file is not None:
            self._file.close()
