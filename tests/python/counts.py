"""Counts of compared numbers, kept in a JSON that a later run goes on from, and as Markdown."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any


def read(path: Path) -> dict[str, Any]:
    """What earlier runs counted."""
    return dict(json.loads(path.read_text())) if path.exists() else {}


def write(path: Path, found: dict[str, Any], table: Callable[[dict[str, Any]], str]) -> None:
    """Writes the JSON and, beside it, what ``table`` makes of it."""
    path.write_text(json.dumps(found, indent=2) + "\n")
    path.with_suffix(".md").write_text(table(found))


def add(
    path: Path, name: str, row: Any, order: Iterable[str], table: Callable[[dict[str, Any]], str]
) -> None:
    """Writes one more row, beside those that others may have written meanwhile."""
    found = {**read(path), name: row}
    write(path, {name: found[name] for name in order if name in found}, table)
