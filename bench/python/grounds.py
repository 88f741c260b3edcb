"""Falls and errors of Go1 over rough ground: ``python bench/python/grounds.py NAME=RUN …``.

Of trained Go1RoughTerrain-v0, greedily: episodes of 20 s that start on all levels of all kinds of
ground, with pushes (three sets) and without, and on each kind at some levels; what the run, and
those from which it began, took; the levels that its curriculum reached. Writes into
docs/results/go1_rough.json, where runs of other names stay, and films the run of the name 1.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import named_runs
from robots import ROOT, chain, film, follow, thinned, took

from pyfastenv.experiments import measure
from pyfastenv.runs.logger import read_metrics
from pyfastenv.runs.saved import load_policy
from pyfastenv.suites.robots.go1_rough import GROUND

LEVELS, SETS = (3, 6, 9), 3
FILMED = 22  # a seed that has it climb stairs


def on(level: int) -> dict[str, Any]:
    """The arguments of environments that start at this level."""
    return dict.fromkeys(("level_low", "level_high", "level_start"), level)


def grounds(name: str, run: Path, _: int) -> named_runs.Row:
    """How a run's policy does on the grounds."""
    saved, rows = load_policy(run), [row for row in read_metrics(run) if "train/level" in row]
    if name == "1":
        path = ROOT / "docs" / "robots" / f"{saved.config.env_id}.webp"
        film(saved, FILMED, path, width=256, height=192, kind=1, **on(9))
    return {
        "name": name,
        "machine": measure.machine(),
        "trainings": [took(each) for each in chain(run)],
        "levels": [[row["step"], round(row["train/level"], 2)] for row in thinned(rows, 40)],
        "pushed": [follow(saved, seed) for seed in range(SETS)],
        "calm": follow(saved, 0, push_velocity=(0.0,) * 6),
        "kinds": {
            kind: {level: follow(saved, 0, kind=column, **on(level)) for level in LEVELS}
            for column, kind in enumerate(GROUND.names)
        },
    }


if __name__ == "__main__":
    named_runs.main(__doc__, grounds, "docs/results/go1_rough.json")
