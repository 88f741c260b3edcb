"""Where a substep's time goes, MuJoCo's and lanes': ``python bench/python/lane_phases.py``.

Draws the phases in bench/results/lanes.json (``make bench-lanes``) into docs/lane_phases.png.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pyfastenv.experiments import pictures
from pyfastenv.publish.plots import COLOURS

ROOT = Path(__file__).parents[2]
LANES = "8 lanes"
PHASES = {
    "smooth": "smooth dynamics",
    "collision": "collision",
    "rows": "constraint rows",
    "solver": "solver",
    "integration": "integration, checks",
    "rest": "state in and out, rest",
}


def draw(robots: dict[str, Any], path: Path) -> None:
    """Two panels of bars, each with its own scale."""
    figure, panels = pictures.panels(2, size=(11, 4.6), columns=2, sharey=True)
    paint = dict(zip(PHASES.values(), COLOURS, strict=True))
    for axes, contender, title in zip(
        panels, ("mj_step", LANES), ("mj_step", "8 lanes, per environment"), strict=True
    ):
        rows = {
            name: {PHASES[phase]: ns / 1e3 for phase, ns in row[contender]["phases_ns"].items()}
            for name, row in robots.items()
        }
        notes = {
            name: f"{row[LANES]['times_mj_step']:.1f} times as fast" for name, row in robots.items()
        }
        pictures.stacked(
            axes, rows, colour=paint, label="µs per substep",
            notes=notes if contender == LANES else {},
        )  # fmt: skip
        axes.set_title(title)
    pictures.save(figure, path)


if __name__ == "__main__":
    results = json.loads((ROOT / "bench/results/lanes.json").read_text())
    draw(results["robots"], ROOT / "docs/lane_phases.png")
