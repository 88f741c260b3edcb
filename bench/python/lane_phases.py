"""Where a substep's time goes, MuJoCo's and lanes': ``python bench/python/lane_phases.py``.

Draws the phases in bench/results/lanes.json (``make bench-lanes``) into docs/lane_phases.png.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from plots import COLOURS

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
    names = list(robots)[::-1]
    figure, panels = plt.subplots(1, 2, figsize=(11, 4.6), sharey=True, layout="constrained")
    for axes, contender, title in (
        (panels[0], "mj_step", "mj_step"),
        (panels[1], LANES, "8 lanes, per environment"),
    ):
        _bars(axes, names, [robots[name][contender]["phases_ns"] for name in names])
        axes.set_title(title)
        axes.set_xlabel("µs per substep")
        axes.spines[["top", "right"]].set_visible(False)
    for y, name in enumerate(names):
        lanes = robots[name][LANES]
        panels[1].text(
            sum(lanes["phases_ns"].values()) / 1e3,
            y,
            f"  {lanes['times_mj_step']:.1f} times as fast",
            va="center",
            fontsize=8,
        )
    panels[1].set_xlim(right=1.25 * panels[1].get_xlim()[1])
    figure.legend(
        *panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=6, fontsize=8
    )
    figure.savefig(path, dpi=130)


def _bars(axes: Axes, names: list[str], phases: list[dict[str, float]]) -> None:
    left = [0.0] * len(names)
    for colour, (phase, label) in zip(COLOURS, PHASES.items(), strict=True):
        widths = [row[phase] / 1e3 for row in phases]
        axes.barh(names, widths, left=left, color=colour, label=label)
        left = [a + b for a, b in zip(left, widths, strict=True)]


if __name__ == "__main__":
    results = json.loads((ROOT / "bench/results/lanes.json").read_text())
    draw(results["robots"], ROOT / "docs/lane_phases.png")
