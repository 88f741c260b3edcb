"""What comes of the measurements of `flow`: tables, claims and the picture."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from typing import Any

from pyfastenv.experiments import flow_units as units
from pyfastenv.experiments import pictures
from pyfastenv.experiments.claims import Claim, compare
from pyfastenv.experiments.flow import (
    AGENT_EVERY,
    AGENT_UPDATES,
    AMP,
    DOCUMENT_MS,
    FLOAT32,
    MODEL_EVERY,
    NO_ANOMALY,
    PARTS,
    REMEDIES,
    SLOWEST,
    Config,
)
from pyfastenv.experiments.report import Report
from pyfastenv.experiments.study import Results, Row
from pyfastenv.experiments.tables import median, number, spread, table
from pyfastenv.training.plots import COLOURS
from pyfastenv.training.progress import duration


def report(results: Results, config: Config) -> Report:
    """Tables, claims and pictures."""
    made, parts = Report(), results.part("parts")
    programs = list(dict.fromkeys(parts.program))
    ms = {name: results.rounds("parts", "ms", program=name) for name in programs}
    medians = parts.groupby("program", sort=False)[list(PARTS)].median()
    slow = medians.loc[SLOWEST]
    of_units = results.part("units").set_index("what").ms.to_dict()
    profile = results.part("profile").set_index("anomaly mode")
    worst = parts.loc[(parts.ms / parts.groupby("program").ms.transform("median")).idxmax()]
    agent_update = slow["agent that improves the model"] * AGENT_EVERY / AGENT_UPDATES
    made.values = {
        "whole": _whole(results, config) if config.whole else None,
        "ms": {name: median(values) for name, values in ms.items()},
        "factors": {
            name: compare(ms[before], ms[name], 0.1)
            for before, name in itertools.pairwise(programs)
        },
        "chain": _chain_table(ms),
        "parts": table(
            ("ms per environment step", *PARTS),
            [(name, *map(float, row)) for name, row in medians.iterrows()],
        ),
        "document_times": DOCUMENT_MS / median(ms[SLOWEST]),
        "agent_every_step": agent_update * AGENT_UPDATES,
        "fit_every_step": slow["fits of the model"] * MODEL_EVERY,
        "frequencies": _frequencies(medians),
        "ms_of": lambda what, variant: number(median(of_units[what][variant])),
        "units_table": units.units_table(of_units),
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
        "worst": f"{worst.ms:,.0f} ms in round {worst['round']} of {worst.program}, "
        f"{worst.ms / median(ms[worst.program]):.2f} times its median",
        "steal": parts.steal.max(),
        "others": parts.others.max(),
        "threads": 1 if config.quick else results.cpus,
    }
    made.claims = list(_claims(results, ms))
    figure, (left, right) = pictures.panels(
        2, size=(13, 4.8), columns=2, sharey=True, width_ratios=(1.1, 1)
    )
    stacks = {name: dict(row) for name, row in medians.iterrows()}
    pictures.stacked(right, stacks, share=True, label="% of a step", totals=False)
    notes = {name: f" ms  ×{made.values['factors'][name].mean:.2f}" for name in programs[1:]}
    notes[SLOWEST] = " ms"
    paint = {name: COLOURS[0 if "pyfastenv" in name else 1] for name in programs}
    pictures.points(left, ms, colour=paint, notes=notes, log=True, label="ms per environment step")
    made.pictures["ablation"] = (
        figure,
        "Left: one remedy after the other, each on top of those above it (medians and quartiles of "
        "rounds; ×: over the row above). Right: what a step consists of.",
    )
    return made


def _whole(results: Results, config: Config) -> Row:
    frame = results.part("whole").set_index("program")
    ms = 1e3 * frame.seconds / frame.steps
    rows = []
    for name in (SLOWEST, NO_ANOMALY, FLOAT32, AMP):
        row = frame.loc[name]
        rows.append(
            (
                name if "pyfastenv" in name else f"{name} (written anew)",
                f"{row.steps:,}",
                duration(row.seconds),
                float(ms[name]),
                f"{ms[SLOWEST] / ms[name]:.1f}",
                duration(config.steps * ms[name] / 1e3),
                ", ".join(f"{epochs:.0f}" for epochs in row.epochs[:5]),
                f"{row.others:.2f} / {row.steal:.2f}",
            )
        )
    columns = ("a single run each", "steps", "time", "ms per step", "times as fast",
               f"{config.steps:,} steps", "epochs of the first fits",
               "CPUs: others' / stolen")  # fmt: skip
    return {
        "table": table(columns, rows),
        "ms": {name: float(value) for name, value in ms.items()},
        "time": {name: duration(config.steps * value / 1e3) for name, value in ms.items()},
        "first_epochs": f"{min(e[0] for e in frame.epochs):.0f} to "
        f"{max(e[0] for e in frame.epochs):.0f}",
    }


def _chain_table(ms: Mapping[str, list[float]]) -> str:
    first, rows = ms[SLOWEST], []
    before = first
    for name, values in ms.items():
        again = name == SLOWEST
        rows.append(
            (
                name if again or "pyfastenv" in name else f"+ {name}",
                spread(values),
                f"{number(min(values))} to {number(max(values))}",
                "" if again else compare(before, values, 0.1).mark,
                "" if again else str(compare(before, values, 0.1)),
                compare(first, values, 0.1).mark,
            )
        )
        before = values
    columns = ("", "ms per step", "all rounds", "over the row above", "[90 %]",
               "over the first")  # fmt: skip
    return table(columns, rows)


def _frequencies(medians: Any) -> str:
    def at(name: str, every: int) -> float:
        row = medians.loc[name]
        rare = row["fits of the model"] + row["rollouts of the model"]
        return float(row.sum() - rare + rare * MODEL_EVERY / every)

    columns = ("fit and rollout of the model, ms per step", *(f"every {n}" for n in (1, 125, 250,
               500, 1_000)))  # fmt: skip
    names = (SLOWEST, NO_ANOMALY, REMEDIES[-1][0], FLOAT32, AMP)
    return table(columns, [(name, *(at(name, n) for n in (1, 125, 250, 500, 1_000))) for name in
                           names])  # fmt: skip


def _learning_table(results: Results) -> str:
    rows = []
    for (dynamics, length), group in results.part("learning").groupby(
        ["dynamics", "length"], sort=False
    ):
        rows.append(
            (
                dynamics,
                length,
                ", ".join(f"{value:,.0f}" for value in group["return"]),
                ", ".join(f"{value:.3f}" for value in group.model_error),
                spread(list(group.seconds / 60)),
            )
        )
    columns = ("model", "rollout length", "returns, by seed", "the model's error, by seed",
               "minutes")  # fmt: skip
    return table(columns, rows)


def _claims(results: Results, ms: Mapping[str, list[float]]) -> Iterator[Claim]:
    names = dict(itertools.pairwise(ms))
    before = {after: name for name, after in names.items()}
    for name, text, expected in (
        (NO_ANOMALY, "ours: anomaly mode costs most (the document does not name it)", "more"),
        ("no prints", "document: fewer prints help", "more"),
        ("arrays instead of lists", "document: arrays instead of lists help", "more"),
        ("AMP (bfloat16 autocast)", "document: mixed precision helps", "more"),
    ):
        ratio = compare(ms[before[name]], ms[name], 0.1)
        yield Claim(text, f"speed, {before[name]} → {name}", expected, ratio)  # type: ignore[arg-type]
    learning = results.part("learning")
    pairs = learning[learning.length == 1].pivot(index="seed", columns="dynamics")
    yield Claim(
        "document: the flow gives better simulated samples",
        "model's error without / with the flow, rollouts of length 1",
        "more",
        compare(list(pairs.model_error.ensemble), list(pairs.model_error.flow)),
    )
