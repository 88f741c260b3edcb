"""Tables, ratios and the picture from the measurements of `flow`."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import pandas as pd

from pyfastenv.experiments import flow, pictures
from pyfastenv.experiments.claims import Ratio, compare
from pyfastenv.experiments.report import Report
from pyfastenv.experiments.study import Study
from pyfastenv.experiments.tables import median, number
from pyfastenv.publish.plots import COLOURS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_SMALL = (
    "no prints",
    "no .item() in updates",
    "prediction without gradients",
    "prediction in one piece",
)
_OFTEN = (1, 125, 250, 500, 1_000)  # steps between two fits


def report(study: Study) -> Report:
    """The values that the template is filled with."""
    config, parts = study.sizes, study.part("parts")
    ms = {name: study.rounds("parts", "ms", program=name) for name in dict.fromkeys(parts.program)}
    order = list(itertools.pairwise(ms))
    medians = parts.groupby("program", sort=False)[list(flow.PARTS)].median()
    slow, slow_ms = medians.loc[flow.SLOWEST], median(ms[flow.SLOWEST])
    units = study.part("units").set_index("what").ms.to_dict()
    worst = parts.loc[(parts.ms / parts.groupby("program").ms.transform("median")).idxmax()]

    def faster(name: str, than: str) -> Ratio:
        return compare(ms[than], ms[name], 0.1)

    def ms_of(what: str, *variants: str) -> str:
        return ", ".join(number(median(units[what][variant])) for variant in variants)

    def ratio_of(what: str, variant: str) -> str:
        first, other = median(next(iter(units[what].values()))), median(units[what][variant])
        return number(first / other) if other else "–"

    learning = study.part("learning") if "learning" in study.parts else None
    longest = ("ensemble", max(config.rollout_lengths))
    values = {
        "whole": _whole(study) if "whole" in study.parts else None,
        "long": _long(study) if "long" in study.parts else None,
        "ms": {name: median(each) for name, each in ms.items()},
        "factors": {name: faster(name, before) for before, name in order},
        # pairs share a seed: without the flow over with it, long rollouts over single steps
        "samples": _paired(learning, "model_error", ("ensemble", 1), ("flow", 1)),
        "short_rollouts": _paired(learning, "processor_s", longest, ("ensemble", 1)),
        "learning": learning,
        "rounds": ms,
        "faster": faster,
        "order": order,
        "parts": medians,
        "frequencies": _frequencies(medians),
        "ms_of": ms_of,
        "ratio_of": ratio_of,
        "log_share": median(units["file I/O, a line"]["opened for each line"]) / slow_ms,
        "flow_share": slow["updates of the flow"] / slow_ms,
        "units": units,
        "profile": {bool(row["anomaly mode"]): row for _, row in study.part("profile").iterrows()},
        "slow": dict(slow),
        "bfloat16_parts": faster(flow.AMP, flow.FLOAT32),
        "small": [faster(after, before) for before, after in order if after in _SMALL],
        "exported": _exported(study),
        "worst": dict(worst) | {"times": worst.ms / median(ms[worst.program])},
        "threads": 1 if config.quick else study.cpus,
        "bfloat16": study.bfloat16,
    }
    return Report(values, {"ablation": partial(_draw, ms, medians)})


def _exported(study: Study) -> dict[str, Any]:
    """Exports of the policy: bytes, return and times; without what was not installed."""
    row = study.part("exported").iloc[0]
    return {kind: row[kind] for kind in ("as trained", "half pruned", "8 bits") if kind in row}


def _whole(study: Study) -> dict[str, Any]:
    frame = study.part("whole").set_index("program")
    ms = (1e3 * frame.seconds / frame.steps).to_dict()
    return {
        "runs": frame.loc[[flow.SLOWEST, flow.NO_ANOMALY, *flow.OURS]],
        "ms": ms,
        "first": [each[0] for each in frame.epochs],
        "first_share": median([each[0] / sum(each) for each in frame.epochs]),
        "later": median([n for each in frame.epochs for n in each[1:] or each]),
    }


def _long(study: Study) -> list[float]:
    """Processor time per step of the document's style, part by part of its longest run [ms]."""
    (seconds,) = study.part("long").processor_s
    return [1e3 * each / study.sizes.slow_steps for each in seconds]


def _frequencies(medians: Any) -> Any:
    """Milliseconds per step by program and steps between two fits."""
    rare = medians[["fits of the model", "rollouts of the model"]].sum(axis=1)
    often = medians.sum(axis=1) - rare
    shown = [flow.SLOWEST, flow.NO_ANOMALY, flow.REMEDIES[-1][0], flow.FLOAT32, flow.AMP]
    return pd.DataFrame({n: often + rare * flow.MODEL_EVERY / n for n in _OFTEN}).loc[shown]


def _paired(
    learning: pd.DataFrame | None, column: str, one: tuple[str, int], other: tuple[str, int]
) -> Ratio | None:
    if learning is None:
        return None
    values = learning.set_index(["dynamics", "length", "seed"])[column].sort_index()
    if one == other or not {one, other} <= set(values.index.droplevel("seed")):
        return None
    return compare(list(values.loc[one]), list(values.loc[other]))


def _draw(ms: Mapping[str, list[float]], medians: Any) -> Figure:
    figure, (left, right) = pictures.panels(
        2, size=(13, 4.8), columns=2, sharey=True, width_ratios=(1.1, 1)
    )
    stacks = {name: dict(row) for name, row in medians.iterrows()}
    pictures.stacked(right, stacks, share=True, label="% of a step")
    notes = {flow.SLOWEST: " ms"}
    for before, name in itertools.pairwise(ms):
        notes[name] = f" ms  ×{compare(ms[before], ms[name]).mean:.2f}"
    paint = {name: COLOURS[0 if name in flow.OURS else 1] for name in ms}
    pictures.points(left, ms, colour=paint, notes=notes, log=True, label="ms per environment step")
    return figure
