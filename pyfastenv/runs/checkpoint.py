"""Checkpoints: whole or not there, and loadable without running anyone's code.

A checkpoint is one file of tensors, numbers, strings, lists, tuples and dicts, written by
:func:`pyfastenv.runs.atomic.replacing` and read with ``weights_only=True``. Knows no algorithm.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO, cast

import numpy as np
import torch

from pyfastenv.runs.atomic import remove_leftovers, replacing
from pyfastenv.runs.errors import CheckpointError

BEST = "best.pt"
_NAME = re.compile(r"step_(\d+)\.pt")


class CheckpointDir:
    """The checkpoints of one run, one file per saved step.

    Args:
        folder: Made with the first checkpoint.
        keep: How many of the newest stay.

    Attributes:
        best: The file of :meth:`save_best`, which is none of :meth:`paths`.
    """

    def __init__(self, folder: Path, keep: int = 3):
        self.folder = folder
        self.keep = keep
        self.best = folder / BEST

    def paths(self) -> list[Path]:
        """The files, by step."""
        if not self.folder.is_dir():
            return []
        return sorted((p for p in self.folder.iterdir() if _NAME.fullmatch(p.name)), key=step_of)

    def latest(self) -> Path | None:
        """The newest file, or None."""
        return next(reversed(self.paths()), None)

    def save(self, step: int, state: Mapping[str, Any]) -> Path:
        """Writes a checkpoint, then removes the oldest beyond ``keep``.

        Args:
            step: Environment steps so far; names the file.
            state: Tensors (any device), NumPy arrays (stored as tensors), numbers, strings, None,
                lists, tuples and dicts of these.

        Raises:
            TypeError: Something else is in ``state``; the message says where.
            CheckpointError: The disk is full, say. The previous checkpoints are as they were.
        """
        path = self.folder / f"step_{step:012d}.pt"
        self._write(path, state)
        self.prune(step)
        return path

    def save_best(self, state: Mapping[str, Any]) -> None:
        """Writes ``best``; errors as :meth:`save`."""
        self._write(self.best, state)

    def _write(self, path: Path, state: Mapping[str, Any]) -> None:
        plain = _plain(state, "state")
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            with replacing(path) as file:
                writer = _Writer(file)
                torch.save(plain, cast(BinaryIO, writer))
                writer.raise_error()
        except OSError as error:
            raise CheckpointError(
                f"{path}: cannot be written ({error.strerror or error})" + self._intact()
            ) from error

    def discard_after(self, step: int) -> list[Path]:
        """Removes the checkpoints of later steps, the newest first; returns what is gone."""
        later = [path for path in reversed(self.paths()) if step_of(path) > step]
        for path in later:
            path.unlink()
        return later

    def prune(self, step: int) -> None:
        """Removes the oldest checkpoints beyond ``keep``, that of ``step`` the newest of them.

        :meth:`save` does it; a process may have been killed in between.
        """
        old = [path for path in self.paths() if step_of(path) < step]
        for path in old[: max(0, len(old) - self.keep + 1)]:
            path.unlink(missing_ok=True)
        remove_leftovers(self.folder, "*.pt")

    def _intact(self) -> str:
        latest = self.latest()
        return "" if latest is None else f"; the previous checkpoint is intact: {latest}"


def load(path: Path) -> dict[str, Any]:
    """Reads a checkpoint, all tensors on the CPU.

    Raises:
        CheckpointError: It is missing, cut off or not a checkpoint.
    """
    if not path.exists():
        raise CheckpointError(f"{path}: no such checkpoint{_previous(path)}")
    try:
        state = _read(path)
    except Exception as error:  # torch.load raises whatever the damage leads to
        # its first sentence: torch goes on with advice to trust the file
        reason = str(error).strip().split("\n")[0].split(". ")[0].rstrip(".")
        reason = reason or type(error).__name__
        raise CheckpointError(
            f"{path}: damaged, or not a checkpoint ({reason}){_previous(path)}"
        ) from error
    return state


def resolve(path: Path) -> Path:
    """The checkpoint that a checkpoint file, a run folder or a checkpoint folder stands for.

    Raises:
        CheckpointError: There is none.
    """
    if path.is_file() or (path.suffix == ".pt" and not path.is_dir()):
        return path
    for folder in (path / "checkpoints", path):
        latest = CheckpointDir(folder).latest()
        if latest is not None:
            return latest
    what = "no checkpoint in this folder" if path.is_dir() else "no such run folder or checkpoint"
    raise CheckpointError(f"{path}: {what}")


def step_of(path: Path) -> int:
    """The step in a checkpoint's file name; -1 for other names."""
    match = _NAME.fullmatch(path.name)
    return int(match[1]) if match else -1


def rng_state() -> dict[str, Any]:
    """The states of torch's default generators, on the CPU and on the CUDA devices in use."""
    in_use = torch.cuda.is_initialized()
    cuda = torch.cuda.get_rng_state_all() if in_use else []
    return {"cpu": torch.get_rng_state(), "cuda": cuda}


def set_rng_state(state: Mapping[str, Any]) -> None:
    """Restores :func:`rng_state`, of CUDA devices those that are here."""
    torch.set_rng_state(state["cpu"])
    count = torch.cuda.device_count() if torch.cuda.is_available() else 0
    for i, each in enumerate(state["cuda"][:count]):
        torch.cuda.set_rng_state(each, i)


def not_finite(value: Any, where: str = "state") -> Iterator[str]:
    """Where in nested containers tensors or numbers are NaN or infinite."""
    finite = True
    if isinstance(value, torch.Tensor):
        finite = bool(torch.isfinite(value).all())
    elif isinstance(value, float | np.ndarray | np.generic):
        finite = bool(np.isfinite(value).all())
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from not_finite(item, f"{where}[{key!r}]")
    elif isinstance(value, list | tuple):
        for i, item in enumerate(value):
            yield from not_finite(item, f"{where}[{i}]")
    if not finite:
        yield where


class _Writer:
    """Takes torch.save's bytes and keeps the first OSError: raised inside torch's C++, it would
    come back as another exception without the reason, or abort."""

    def __init__(self, file: BinaryIO):
        self._file = file
        self._error: OSError | None = None

    def write(self, data: bytes) -> int:
        if self._error is None:
            self._attempt(lambda: self._file.write(data))
        return len(data)

    def flush(self) -> None:
        if self._error is None:
            self._attempt(self._file.flush)

    def raise_error(self) -> None:
        if self._error is not None:
            raise self._error

    def _attempt(self, action: Callable[[], object]) -> None:
        try:
            action()
        except OSError as error:
            self._error = error


def _read(path: Path) -> dict[str, Any]:
    state = torch.load(path, map_location="cpu", weights_only=True)
    if not isinstance(state, dict):
        raise TypeError(f"holds a {type(state).__name__}")
    return state


def _previous(path: Path) -> str:
    """Names the newest readable checkpoint before ``path``, if there is one."""
    step = step_of(path)
    for other in reversed(CheckpointDir(path.parent).paths()):
        if step < 0 or step_of(other) < step:
            try:
                _read(other)
            except Exception:  # damaged as well
                continue
            return f"; the previous good checkpoint is {other}"
    return ""


def _plain(value: Any, where: str) -> Any:
    """A copy of the containers with NumPy turned into torch; tensors are not copied, unless they
    are views, whose whole storage torch would write."""
    if isinstance(value, torch.Tensor):
        tensor = value.detach()
        whole = tensor.untyped_storage().nbytes() == tensor.numel() * tensor.element_size()
        return tensor if whole else tensor.clone()
    if isinstance(value, np.ndarray):
        return torch.from_numpy(np.array(value))
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, Mapping):
        return {key: _plain(item, f"{where}[{key!r}]") for key, item in value.items()}
    if isinstance(value, list | tuple):
        items = [_plain(item, f"{where}[{i}]") for i, item in enumerate(value)]
        return tuple(items) if isinstance(value, tuple) else items
    if value is None or type(value) in (bool, int, float, str, bytes):
        return value
    raise TypeError(f"{where}: a checkpoint cannot hold a {type(value).__name__}")
