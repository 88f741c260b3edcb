"""A run folder belongs to one process: a lock that the system drops when its holder dies."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import socket
import sys
import time
from pathlib import Path

from pyfastenv.runs.errors import FolderInUseError

NAME = ".lock"
_POLL = 0.1  # [s]
# what flock says on file systems that cannot lock (some network ones)
_UNSUPPORTED = (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP, errno.EINVAL)


class FolderLock:
    """Holds an exclusive ``flock`` on ``.lock`` in a folder from construction to :meth:`release`.

    The lock is the system's: ``kill -9`` or a power cut leave the file, which holds nothing. Its
    text (process and machine) is only for the other side's message.

    Args:
        folder: It is made if it is not there.
        new: It must not be there.
        patience: How long to wait for another process to release it [s].

    Raises:
        FileExistsError: It is there, and was to be new.
        FolderInUseError: Another process holds the lock.
        OSError: The folder cannot be made or written into.
    """

    def __init__(self, folder: Path, *, new: bool = False, patience: float = 0.0):
        self.folder = folder
        self._made = False  # here
        self._made_parent = not folder.parent.exists()
        self._descriptor = self._take_within(patience, new)

    def release(self, *, remove_folder: bool = False) -> None:
        """Gives the folder back.

        Args:
            remove_folder: Take the folder away if it was made here and nothing else is in it.
        """
        if self._descriptor < 0:
            return
        if remove_folder and self._made:
            _remove_if_empty(self.folder)
            if self._made_parent:
                with contextlib.suppress(OSError):  # somebody else's folder is in it
                    self.folder.parent.rmdir()
        os.close(self._descriptor)
        self._descriptor = -1

    def _take_within(self, patience: float, new: bool) -> int:
        deadline = time.monotonic() + patience
        told = False
        while True:
            try:
                return self._take(new)
            except FolderInUseError as error:
                if time.monotonic() >= deadline:
                    raise
                if not told:
                    print(
                        f"pyfastenv: waiting for up to {patience:.0f} s: {error}", file=sys.stderr
                    )
                    told = True
            time.sleep(_POLL)

    def _take(self, new: bool) -> int:
        path = self.folder / NAME
        self.folder.parent.mkdir(parents=True, exist_ok=True)
        while True:
            try:
                self.folder.mkdir()
                self._made = True
            except FileExistsError:
                if new and not self._made:
                    raise
            try:
                descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
            except FileNotFoundError:  # another process has just taken its empty folder away
                continue
            try:
                _lock(descriptor, self.folder)
                if _is(descriptor, path):
                    os.truncate(descriptor, 0)
                    os.pwrite(
                        descriptor, f"process {os.getpid()} on {socket.gethostname()}\n".encode(), 0
                    )
                    return descriptor
            except BaseException:
                os.close(descriptor)
                raise
            os.close(descriptor)  # its file went with such a folder


def is_held(folder: Path) -> bool:
    """Whether a process holds the folder now. It takes the lock for a moment to find out."""
    try:
        descriptor = os.open(folder / NAME, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:  # never held, or not ours to read
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError as error:
        return error.errno not in _UNSUPPORTED
    finally:
        os.close(descriptor)
    return False


def _lock(descriptor: int, folder: Path) -> None:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        holder = os.pread(descriptor, 200, 0).decode(errors="replace").strip() or "another process"
        raise FolderInUseError(
            f"{folder}: a training is running in this folder ({holder}); wait for its end, stop it,"
            " or choose another folder"
        ) from None
    except OSError as error:
        if error.errno not in _UNSUPPORTED:
            raise
        print(
            f"pyfastenv: {folder}: this file system has no locks ({error.strerror}): take care "
            "that no second training uses the folder",
            file=sys.stderr,
        )


def _is(descriptor: int, path: Path) -> bool:
    """Whether the open file is still the one of that name."""
    try:
        return os.path.samestat(os.fstat(descriptor), os.stat(path))
    except FileNotFoundError:
        return False


def _remove_if_empty(folder: Path) -> None:
    if [path.name for path in folder.iterdir()] == [NAME]:
        (folder / NAME).unlink()
        with contextlib.suppress(OSError):  # somebody has come in between
            folder.rmdir()
