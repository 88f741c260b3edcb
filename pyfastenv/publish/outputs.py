"""Checks of files that a command is to write, before it does anything else."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path


def check_output(path: Path, suffixes: Sequence[str]) -> None:
    """Checks the name of a file that the user asked for.

    Args:
        path: The file.
        suffixes: What it may end in, e.g. ``(".png", ".pdf")``.

    Raises:
        ValueError: It ends in something else.
        IsADirectoryError: It is a folder.
        FileNotFoundError: Its folder does not exist.
    """
    if path.suffix.lower() not in suffixes:
        raise ValueError(f"output: expected a name ending in {' or '.join(suffixes)}, got {path}")
    if path.is_dir():
        raise IsADirectoryError(f"output: {path} is a folder")
    if not path.parent.is_dir():
        raise FileNotFoundError(f"output: there is no folder {path.parent}")
