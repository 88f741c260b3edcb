"""TensorBoard's event files, written row by row in the calling thread.

TensorBoard's own writer has a thread that prints a traceback when the disk is full, and one event
for each number.
"""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from pyfastenv.runs.atomic import append


class EventFile:
    """One file of scalars.

    Args:
        folder: Where it goes; made if it is not there.
        purge_step: TensorBoard forgets what earlier files have from this step on.

    Raises:
        ImportError: TensorBoard is not installed.
        OSError: It cannot be written.
    """

    def __init__(self, folder: Path, purge_step: int | None = None):
        self._event: Any = import_module("tensorboard.compat.proto.event_pb2")
        self._summary: Any = import_module("tensorboard.compat.proto.summary_pb2").Summary
        records: Any = import_module("tensorboard.summary.writer.record_writer")
        folder.mkdir(exist_ok=True)
        name = f"events.out.tfevents.{time.time_ns()}.{socket.gethostname()}.{os.getpid()}"
        self._file = open(folder / name, "ab", buffering=0)  # noqa: SIM115
        self._records = records.RecordWriter(self)
        self._add(file_version="brain.Event:2")
        if purge_step is not None:
            start = self._event.SessionLog(status=self._event.SessionLog.START)
            self._add(step=purge_step, session_log=start)

    def log(self, step: int, scalars: Mapping[str, float]) -> None:
        """Writes a row.

        Raises:
            OSError: The disk is full, say; the row is not there, the file is whole.
        """
        value = self._summary.Value
        values = [value(tag=name, simple_value=number) for name, number in scalars.items()]
        self._add(step=step, summary=self._summary(value=values))

    def close(self) -> None:
        """Closes the file."""
        self._file.close()

    def write(self, record: bytes) -> None:
        """Writes a whole record; RecordWriter calls this."""
        append(self._file, record)

    def _add(self, **fields: Any) -> None:
        event = self._event.Event(wall_time=time.time(), **fields)
        self._records.write(event.SerializeToString())
