"""Files that are either the old or the new, never half of one."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO


@contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """Opens a file that takes ``path``'s place when the block ends without an exception.

    It is written beside ``path``, synced and renamed, and the folder is synced, so that after a
    crash of the process or the machine ``path`` is whole: the old or the new. On an exception (a
    full disk, Ctrl-C) ``path`` stays as it was and the temporary file goes.

    Raises:
        OSError: It cannot be written.
    """
    temporary = path.with_name(f".{path.name}.tmp")
    try:
        with open(temporary, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    _sync_folder(path.parent)


def write_text(path: Path, text: str) -> None:
    """Writes a text file by :func:`replacing`."""
    with replacing(path) as file:
        file.write(text.encode())


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
