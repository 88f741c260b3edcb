"""bench/results/corpus.md: what became of other people's robots, from corpus.json's rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from pyfastenv.experiments.tables import table

Row = dict[str, Any]


def outcome(row: Row) -> str:
    """What became of a scene, in a word or with the reason."""
    if row["kind"] == "equal":
        return "rides"
    return row["refusal"].removeprefix("lanes do not do ").replace("|", "/")


def differing(row: Row) -> str:
    """How many of the rollouts have a bit that differs."""
    if row["kind"] in ("equal", "silent"):
        return "0" if row["difference"] is None else str(row["difference"]["rollouts"])
    return "–"


def _package(row: Row) -> str:
    return row["scene"].split("/")[0]


def summary(rows: Sequence[Row]) -> str:
    """A line per package."""
    lines = []
    for package in sorted({_package(row) for row in rows}):
        of = [row for row in rows if _package(row) == package]
        ratios = [row["ratio"] for row in of if row.get("ratio")]
        riding = [row for row in of if row["kind"] == "equal"]
        steps = sum(row["steps"] for row in riding)
        lines.append((
            package, len(of), len(riding), sum(row["kind"] == "refused" for row in of),
            sum(row["kind"] not in ("equal", "refused") for row in of), f"{steps:,}",
            float(np.median(ratios)) if ratios else None, min(ratios, default=None),
        ))  # fmt: skip
    return table(
        ("package", "scenes", "ride", "refused", "differ", "steps compared",
         "mujoco.rollout's time ÷ ours, median", "least"), lines,
    )  # fmt: skip


def reasons(rows: Sequence[Row]) -> str:
    """Why scenes do not ride."""
    counts = Counter(outcome(row).split(" (")[0] for row in rows if row["kind"] == "refused")
    return table(("lanes do not do", "scenes"), counts.most_common())


def scenes(rows: Sequence[Row]) -> str:
    """A line per scene."""
    lines = [
        (row["scene"], row.get("dofs"), outcome(row), differing(row), row.get("ratio"),
         f"{100 * row['left']:.1f} %" if row["kind"] == "equal" else "–")
        for row in rows
    ]  # fmt: skip
    return table(
        ("scene", "dofs", "rides, or why not", "rollouts that differ",
         "mujoco.rollout's time ÷ ours", "steps left to mj_step"), lines,
    )  # fmt: skip


def page(result: dict[str, Any]) -> str:
    """The whole report."""
    rows, machine = result["scenes"], result["machine"]
    versions = ", ".join(f"{k} {v}" for k, v in machine["versions"].items() if v)
    return (
        "# Other people's robots\n\n"
        f"Written by `make corpus-lanes`: every scene of these packages that compiles and moves, "
        f"each once, without its sensors; 16 rollouts of {result['steps']} steps from the default "
        "pose and the keyframes under random and held controls, every number of the state "
        "compared with `mujoco.rollout`'s to the bit, lanes taken whatever they cost. Times are "
        "processor time of `physics.rollout` as it is, in turn with `mujoco.rollout`.\n\n"
        f"{summary(rows)}\n\n{reasons(rows)}\n\n{scenes(rows)}\n\n"
        f"*{result['date']}, {machine['cpu']}, {machine['cpus_available']} CPUs, "
        f"{machine['os']}; Python {machine['python']}, {versions}; commit {machine['commit']}.*\n"
    )
