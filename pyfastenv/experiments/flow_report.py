"""What comes of the measurements of `flow`: tables, ratios and the picture."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Any

import pandas as pd

from pyfastenv.experiments import pictures
from pyfastenv.experiments.claims import Ratio, compare
from pyfastenv.experiments.flow import (
    AGENT_EVERY,
    AGENT_UPDATES,
    AMP,
    DOCUMENT_MS,
    FLOAT32,
    FLOW_EVERY,
    MODEL_EVERY,
    NO_ANOMALY,
    PARTS,
    REMEDIES,
    SLOWEST,
    Config,
)
from pyfastenv.experiments.report import Report
from pyfastenv.experiments.study import Results, Row
from pyfastenv.experiments.tables import median, number
from pyfastenv.training.plots import COLOURS
from pyfastenv.training.progress import duration

_OFTEN = (1, 125, 250, 500, 1_000)  # steps between two fits


def report(results: Results, config: Config) -> Report:
    """Tables, ratios and the picture."""
    parts = results.part("parts")
    programs = list(dict.fromkeys(parts.program))
    ms = {name: results.rounds("parts", "ms", program=name) for name in programs}
    factors: dict[str, Ratio | None] = {
        name: compare(ms[before], ms[name], 0.1) for before, name in itertools.pairwise(programs)
    }
    medians = parts.groupby("program", sort=False)[list(PARTS)].median()
    slow, slow_ms = medians.loc[SLOWEST], median(ms[SLOWEST])
    units = results.part("units").set_index("what").ms.to_dict()
    profile = results.part("profile").set_index("anomaly mode")
    worst = parts.loc[(parts.ms / parts.groupby("program").ms.transform("median")).idxmax()]

    def ms_of(what: str, *variants: str) -> str:
        return ", ".join(number(median(units[what][variant])) for variant in variants)

    def ratio_of(what: str, variant: str) -> str:
        first, other = median(next(iter(units[what].values()))), median(units[what][variant])
        return number(first / other) if other else "–"

    values = {
        "whole": _whole(results, config) if config.whole else None,
        "ms": {name: median(each) for name, each in ms.items()},
        "factors": factors,
        "rounds": ms,
        "faster": lambda name, than: compare(ms[than], ms[name], 0.1),
        "order": list(itertools.pairwise(programs)),
        "slowest": SLOWEST,
        "parts": medians,
        "document_times": DOCUMENT_MS / slow_ms,
        "agent_every_step": slow["agent that improves the model"] * AGENT_EVERY,
        "agent_updates": AGENT_UPDATES,
        "fit_every_step": slow["fits of the model"] * MODEL_EVERY,
        "frequencies": _frequencies(medians),
        "ms_of": ms_of,
        "ratio_of": ratio_of,
        "log_share": median(units["file I/O, a line"]["opened for each line"]) / slow_ms,
        "flow_share": slow["updates of the flow"] / slow_ms,
        "flow_every": FLOW_EVERY,
        "units": units,
        "profile": {bool(k): row for k, row in profile.iterrows()},
        "slow": dict(slow),
        "worst": dict(worst) | {"times": worst.ms / median(ms[worst.program])},
        "steal": parts.steal.max(),
        "others": parts.others.max(),
        "threads": 1 if config.quick else results.cpus,
    }
    return Report(
        values, factors | _learning_ratios(results, config), {"ablation": _picture(ms, medians)}
    )


def _picture(ms: Mapping[str, list[float]], medians: Any) -> Any:
    figure, (left, right) = pictures.panels(
        2, size=(13, 4.8), columns=2, sharey=True, width_ratios=(1.1, 1)
    )
    stacks = {name: dict(row) for name, row in medians.iterrows()}
    pictures.stacked(right, stacks, share=True, label="% of a step", totals=False)
    notes = {SLOWEST: " ms"}
    for before, name in itertools.pairwise(ms):
        notes[name] = f" ms  ×{compare(ms[before], ms[name]).mean:.2f}"
    paint = {name: COLOURS[0 if "pyfastenv" in name else 1] for name in ms}
    pictures.points(left, ms, colour=paint, notes=notes, log=True, label="ms per environment step")
    return figure


def _whole(results: Results, config: Config) -> Row:
    frame = results.part("whole").set_index("program")
    ms = 1e3 * frame.seconds / frame.steps
    time = {name: duration(config.steps * value / 1e3) for name, value in ms.items()}
    return {
        "runs": frame.loc[[SLOWEST, NO_ANOMALY, FLOAT32, AMP]],
        "ms": {name: float(value) for name, value in ms.items()},
        "time": time,
        "first": [each[0] for each in frame.epochs],
        "first_share": median([each[0] / sum(each) for each in frame.epochs]),
        "later": median([n for each in frame.epochs for n in each[1:] or each]),
    }


def _frequencies(medians: Any) -> Any:
    """Milliseconds per step by program and steps between two fits."""
    rare = medians[["fits of the model", "rollouts of the model"]].sum(axis=1)
    often = medians.sum(axis=1) - rare
    shown = [SLOWEST, NO_ANOMALY, REMEDIES[-1][0], FLOAT32, AMP]
    return pd.DataFrame({n: often + rare * MODEL_EVERY / n for n in _OFTEN}).loc[shown]


def _learning_ratios(results: Results, config: Config) -> dict[str, Ratio | None]:
    """Without the flow over with it, and long rollouts over single steps; pairs share a seed."""
    learning = results.part("learning").set_index(["dynamics", "length", "seed"])

    def ratio(column: str, one: tuple[str, int], other: tuple[str, int]) -> Ratio | None:
        known = set(learning.index.droplevel("seed"))
        if one == other or not {one, other} <= known:
            return None
        return compare(list(learning.loc[one][column]), list(learning.loc[other][column]))

    longest = ("ensemble", max(config.rollout_lengths))
    return {
        "samples": ratio("model_error", ("ensemble", 1), ("flow", 1)),
        "short_rollouts": ratio("seconds", longest, ("ensemble", 1)),
    }
