"""Files that are either the old or the new, never half of one."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from io import FileIO
from pathlib import Path
from typing import BinaryIO


@contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """Opens a file that takes ``path``'s place when the block ends without an exception.

    It is written beside ``path`` under a name that nobody else uses, synced and renamed, and the
    folder is synced, so that after a crash of the process or the machine ``path`` is whole: the old
    or the new. On an exception (a full disk, Ctrl-C) ``path`` stays as it was and the temporary
    file goes. A process that is killed leaves it: :func:`remove_leftovers`.

    Raises:
        OSError: It cannot be written; its message names ``path``.
    """
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(6)}.tmp")
    try:
        with open(temporary, "xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException as error:
        temporary.unlink(missing_ok=True)
        if isinstance(error, OSError) and error.errno and error.filename in (None, str(temporary)):
            error.filename = str(path)
        raise
    _sync_folder(path.parent)


def write_text(path: Path, text: str) -> None:
    """Writes a text file by :func:`replacing`."""
    with replacing(path) as file:
        file.write(text.encode())


def append(file: FileIO, data: bytes) -> None:
    """Appends all of it to an unbuffered file, or nothing: half a row would spoil the next.

    Raises:
        OSError: The disk is full, say.
    """
    end = os.fstat(file.fileno()).st_size
    rest = memoryview(data)
    try:
        while rest:  # a disk that is nearly full takes a part
            rest = rest[file.write(rest) :]
    except BaseException:
        os.ftruncate(file.fileno(), end)
        raise


def remove_leftovers(folder: Path, name: str = "*") -> None:
    """Removes what killed processes left of files called ``name`` (a pattern).

    Nobody else may be writing them at the time.
    """
    for path in folder.glob(f".{name}.{'[0-9a-f]' * 12}.tmp"):
        path.unlink(missing_ok=True)


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
