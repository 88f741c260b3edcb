"""Counts of compared numbers, kept in a JSON that a later run goes on from, and as Markdown."""

import argparse
import json
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

import numpy as np

from pyfastenv.experiments.render import render

BENCH = Path(__file__).parents[2] / "bench"
TEMPLATES = BENCH / "python" / "templates"


class Gaps(dict[str, float]):
    """The greatest distances of numbers that are compared, by name; relative to what is above 1."""

    def note(self, name: str, mine: Any, other: Any) -> None:
        """Compares arrays of a shape."""
        mine, other = np.asarray(mine, np.float64), np.asarray(other, np.float64)
        assert mine.shape == other.shape, (name, mine.shape, other.shape)
        gap = np.abs(mine - other) / np.maximum(1.0, np.abs(other))
        self[name] = max(self.get(name, 0.0), float(gap.max()))


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


def run(
    template: str,
    names: Collection[str],
    measure: Callable[[str, int], Any],
    about: str | None,
    **facts: Any,
) -> None:
    """The program of a comparison: a row for each name that has none yet, or for those given."""
    parser = argparse.ArgumentParser(description=about)
    parser.add_argument("--output", type=Path, default=BENCH / "results" / f"{template}.json")
    parser.add_argument("--steps", type=int, default=1_000)
    parser.add_argument("--most", type=int, default=len(names), help="how many before it stops")
    parser.add_argument("names", nargs="*", help="which; none means those not yet there")
    options = parser.parse_args()
    found = read(options.output)
    missing = [name for name in names if name not in found]
    for name in (options.names or missing)[: options.most]:
        row = {"steps": options.steps, **measure(name, options.steps)}
        add(options.output, name, row, names, template, **facts)
        print(f"{name}: {row}", flush=True)
