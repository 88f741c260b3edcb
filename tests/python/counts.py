"""Counts of compared numbers, kept in a JSON that a later run goes on from, and as Markdown."""

from __future__ import annotations

import json
from collections.abc import Collection
from pathlib import Path
from typing import Any

from pyfastenv.experiments.render import render

TEMPLATES = Path(__file__).parents[2] / "bench" / "python" / "templates"


def read(path: Path) -> dict[str, Any]:
    """Reads the counts of earlier runs."""
    return dict(json.loads(path.read_text())) if path.exists() else {}


def write(path: Path, found: dict[str, Any], template: str, **about: Any) -> None:
    """Writes the JSON and, beside it, what a template of bench/python makes of it."""
    path.write_text(json.dumps(found, indent=2) + "\n")
    text = render(TEMPLATES / f"{template}.md", {"results": found, **about})
    path.with_suffix(".md").write_text(text)


def add(
    path: Path, name: str, row: Any, order: Collection[str], template: str, **about: Any
) -> None:
    """Writes one more row, beside those that others may have written meanwhile."""
    found = {**read(path), name: row}
    rows = {name: found[name] for name in order if name in found}
    write(path, rows, template, order=order, **about)
