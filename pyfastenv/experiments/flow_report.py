"""What comes of the measurements of `flow`: tables, ratios and the picture."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

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
from pyfastenv.experiments.tables import grouped, median, number, spread, table
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

    values = {
        "whole": _whole(results, config) if config.whole else None,
        "ms": {name: median(each) for name, each in ms.items()},
        "factors": factors,
        "chain": _chain_table(ms),
        "parts": table(
            ("ms per environment step", *PARTS),
            [(name, *map(float, row)) for name, row in medians.iterrows()],
        ),
        "document_times": DOCUMENT_MS / slow_ms,
        "agent_every_step": slow["agent that improves the model"] * AGENT_EVERY,
        "agent_updates": AGENT_UPDATES,
        "fit_every_step": slow["fits of the model"] * MODEL_EVERY,
        "frequencies": _frequencies(medians),
        "ms_of": ms_of,
        "log_share": median(units["file I/O, a line"]["opened for each line"]) / slow_ms,
        "flow_share": slow["updates of the flow"] / slow_ms,
        "flow_every": FLOW_EVERY,
        "units_table": _units_table(units),
        "profile": {bool(k): row for k, row in profile.iterrows()},
        "profile_table": table(
            ("", "operator", "ms per update", "calls per update"),
            [
                ("on" if anomaly else "off", f"`{name}`", float(took), f"{count:.0f}")
                for anomaly, row in profile.iterrows()
                for name, took, count in row.top
            ],
        ),
        "learning": _learning_table(results),
        "slow": dict(slow),
        "worst": dict(worst) | {"times": worst.ms / median(ms[worst.program])},
        "steal": parts.steal.max(),
        "others": parts.others.max(),
        "threads": 1 if config.quick else results.cpus,
    }
    return Report(values, factors | _learning_ratios(results), {"ablation": _picture(ms, medians)})


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
    rows = [
        (
            name if "pyfastenv" in name else f"{name} (written anew)",
            f"{row.steps:,}",
            duration(row.seconds),
            float(ms[name]),
            number(ms[SLOWEST] / ms[name]),
            time[name],
            ", ".join(f"{epochs:.0f}" for epochs in row.epochs[:5]),
            f"{row.others:.2f} / {row.steal:.2f}",
        )
        for name, row in frame.loc[[SLOWEST, NO_ANOMALY, FLOAT32, AMP]].iterrows()
    ]
    columns = ("a single run each", "steps", "time", "ms per step", "times as fast",
               f"{config.steps:,} steps", "epochs of the first fits",
               "CPUs: others' / stolen")  # fmt: skip
    first = [each[0] for each in frame.epochs]
    return {
        "table": table(columns, rows),
        "ms": {name: float(value) for name, value in ms.items()},
        "time": time,
        "first_epochs": (min(first), max(first)),
    }


def _chain_table(ms: Mapping[str, list[float]]) -> str:
    rows, before = [], ms[SLOWEST]
    for name, values in ms.items():
        step = compare(before, values, 0.1)
        rows.append(
            (
                name if name == SLOWEST or "pyfastenv" in name else f"+ {name}",
                spread(values),
                f"{number(min(values))} to {number(max(values))}",
                "" if name == SLOWEST else f"{step.mark.split()[0]} {step}",
                compare(ms[SLOWEST], values, 0.1).mark,
            )
        )
        before = values
    columns = ("", "ms per step", "all rounds", "times as fast as the row above [90 %]",
               "as the first")  # fmt: skip
    return table(columns, rows)


def _frequencies(medians: Any) -> str:
    rare = medians[["fits of the model", "rollouts of the model"]].sum(axis=1)
    often = medians.sum(axis=1) - rare
    return table(
        ("fit and rollout of the model, ms per step", *(f"every {n:,}" for n in _OFTEN)),
        [
            (name, *(float(often[name] + rare[name] * MODEL_EVERY / n) for n in _OFTEN))
            for name in (SLOWEST, NO_ANOMALY, REMEDIES[-1][0], FLOAT32, AMP)
        ],
    )


def _units_table(units: Mapping[str, Mapping[str, Sequence[float]]]) -> str:
    """Every variant with its time, and how many times the first one's speed it has."""
    rows: list[tuple[Any, ...]] = []
    for what, variants in units.items():
        first = median(next(iter(variants.values())))
        for i, (name, times) in enumerate(variants.items()):
            factor = "" if i == 0 or not median(times) else number(first / median(times))
            rows.append((what if i == 0 else "", name, spread(times), factor))
    return table(("", "", "ms", "times as fast as the first"), rows)


def _learning_table(results: Results) -> str:
    return grouped(
        results.part("learning"),
        ["dynamics", "length"],
        {
            "model": lambda g, dynamics, _: dynamics,
            "rollout length": lambda g, _, length: length,
            "returns, by seed": lambda g, *_: ", ".join(f"{x:,.0f}" for x in g["return"]),
            "the model's error, by seed": lambda g, *_: ", ".join(
                f"{x:.3f}" for x in g.model_error
            ),
            "minutes": lambda g, *_: spread(list(g.seconds / 60)),
        },
    )


def _learning_ratios(results: Results) -> dict[str, Ratio | None]:
    """Without the flow over with it, and long rollouts over single steps; pairs share a seed."""
    learning = results.part("learning")
    pairs = learning[learning.length == 1].pivot(index="seed", columns="dynamics")
    lengths = learning[learning.dynamics == "ensemble"].pivot(index="seed", columns="length")
    return {
        "samples": compare(list(pairs.model_error.ensemble), list(pairs.model_error.flow)),
        "short_rollouts": compare(
            list(lengths.seconds[lengths.seconds.columns.max()]), list(lengths.seconds[1])
        ),
    }
