"""What comes of the measurements of `profiling`: tables, ratios and pictures."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import numpy as np

from pyfastenv.experiments import pictures
from pyfastenv.experiments.baselines import loaders
from pyfastenv.experiments.claims import Ratio, compare
from pyfastenv.experiments.profiling import HIDDEN, REST, Config
from pyfastenv.experiments.report import Report
from pyfastenv.experiments.study import Results
from pyfastenv.experiments.tables import grouped, median, number, spread, table
from pyfastenv.nn.spans import SPANS

if TYPE_CHECKING:
    from matplotlib.figure import Figure


_BACKGROUND = {
    "one_worker": loaders.WORKER,
    "two_workers": loaders.TWO_WORKERS,
    "own_processes": loaders.PROCESSES,
}


def report(results: Results, config: Config) -> Report:
    """Tables, ratios and pictures."""
    traces = results.part("traces").set_index("trainer")
    loading, memory = results.part("loading"), results.part("allocator")
    overhead = results.part("overhead").ms[0]
    on_cpu = results.part("lengths on the CPU").iloc[0]
    waits = loading.groupby("loader").wait_ms.median()
    shares = loading.groupby(["loader", "updates"], sort=False).share.median()
    costs = loading.groupby("updates").learn_ms.median()
    values = {
        "traced": "mbpo" if "mbpo" in traces.index else traces.index[0],
        "traces": traces,
        "phases": _phases_table(traces),
        "whole_run": _whole_runs_table(traces),
        "loading": _loading_table(results, config, costs),
        "hiding": {
            name: next((n for n in config.updates if shares[name, n] < HIDDEN), None)
            for name in config.loaders
        },
        "hidden_share": HIDDEN,
        "costs": costs,
        "worker": loaders.WORKER,
        "collector_share": shares.get((loaders.OURS_BEHIND, config.updates[0])),
        "foreground_ms": waits[loaders.FOREGROUND],
        "ours_ms": waits[loaders.OURS],
        "overlap_share": results.part("overlap").groupby("overlap").share.median().to_dict(),
        "overhead": table(
            ("recorded", "ten gradient steps [ms]", "times as long"),
            [
                (name, spread(ms), f"{median(ms) / median(overhead['no profiler']):.2f}")
                for name, ms in overhead.items()
            ],
        ),
        "overheads": {
            name: median(ms) / median(overhead["no profiler"]) for name, ms in overhead.items()
        },
        "span": results.part("span").iloc[0],
        "stale": results.part("stale").iloc[0],
        "variable_on_cpu": on_cpu.variable / on_cpu.fixed,
        "allocator": _allocator_table(memory) if len(memory) else None,
    }
    figures = {
        "trace": _draw_trace(traces.loc[values["traced"]]),
        "shares": _draw_shares(traces, loading, config),
    }
    if len(memory):
        figures["allocator"] = _draw_allocator(memory)
    return Report(values, _ratios(results, config), figures)


def _ratios(results: Results, config: Config) -> dict[str, Ratio | None]:
    def rates(name: str, updates: int) -> list[float]:
        return results.rounds("loading", "rate", loader=name, updates=updates)

    most, least = config.updates[-1], config.updates[0]
    overhead = results.part("overhead").ms[0]
    ratios: dict[str, Ratio | None] = {
        name: compare(rates(loader, most), rates(loaders.FOREGROUND, most))
        for name, loader in _BACKGROUND.items()
        if loader in config.loaders
    }
    ratios |= {
        "pool": compare(rates(loaders.OURS, least), rates(loaders.FOREGROUND, least)),
        "one_option": compare(overhead["CPU"], overhead["no profiler"]),
        "all_options": compare(overhead["all of it"], overhead["CPU"]),
        "overlap": compare(
            results.rounds("overlap", "rate", overlap=True),
            results.rounds("overlap", "rate", overlap=False),
        ),
    }
    memory = results.part("allocator")
    if len(memory):
        reserved = memory.set_index("lengths").reserved_mib
        swing = {kind: np.ptp(reserved[kind][5:]) + 1.0 for kind in ("variable", "fixed")}
        ratios["jagged"] = compare([swing["variable"]], [swing["fixed"]])
    return ratios


def _phases_table(traces: Any) -> str:
    """Shares of a recorded iteration by range, each without those in it."""
    rows = []
    for name, row in traces.iterrows():
        shares = (row.ranges_ms.get(each, 0.0) / row.iteration_ms for each in (*SPANS, REST))
        rows.append((f"`{name}`", row.iteration_ms, *(f"{x:.0%}" if x else "–" for x in shares)))
    return table(("", "iteration [ms]", *SPANS, REST), rows)


def _whole_runs_table(traces: Any) -> str:
    rows = []
    for name, phases in traces.phases_s.items():
        whole = sum(phases.values())
        shares = (f"{phase} {value / whole:.0%}" for phase, value in phases.items())
        rows.append((f"`{name}`", ", ".join(shares)))
    return table(("the whole run", "share of the time by phase"), rows)


def _loading_table(results: Results, config: Config, costs: Any) -> str:
    rows = []
    for name in config.loaders:
        cells = []
        for updates in config.updates:
            about = {"loader": name, "updates": updates}
            share = median(results.rounds("loading", "share", **about))
            ratio = compare(
                results.rounds("loading", "rate", **about),
                results.rounds("loading", "rate", loader=loaders.FOREGROUND, updates=updates),
            )
            cells.append(f"{share:.0%}, {ratio.mark}")
        rows.append((name, *cells))
    columns = ("batches from", *(f"{n} steps ({number(costs[n])} ms)" for n in config.updates))
    return table(columns, rows)


def _allocator_table(memory: Any) -> str:
    return grouped(
        memory,
        ["lengths"],
        {
            "lengths": lambda g, kind: kind,
            "reserved [MiB]": lambda g, _: (
                f"{min(g.reserved_mib.iloc[0]):,.0f} to {max(g.reserved_mib.iloc[0]):,.0f}"
            ),
            "changes": lambda g, _: sum(
                a != b for a, b in itertools.pairwise(g.reserved_mib.iloc[0][5:])
            ),
            "device frees": lambda g, _: g.frees.iloc[0],
            "retries": lambda g, _: g.retries.iloc[0],
            "ms per step": lambda g, _: float(g.ms.iloc[0]),
        },
    )


# ---- pictures ------------------------------------------------------------------------------------

_PAINT = pictures.colours(SPANS) | {REST: "#DDDDDD"}


def _draw_trace(row: Any) -> Figure:
    figure, (axes,) = pictures.panels(size=(11, 2.6))
    pictures.timeline(axes, sorted(row.timeline, key=lambda one: one[1]), _PAINT)
    axes.set_title(f"an iteration of {row.name}, by named range", loc="left", fontsize=10)
    return figure


def _draw_shares(traces: Any, loading: Any, config: Config) -> Figure:
    figure, (left, right) = pictures.panels(2, size=(12, 3.8), columns=2)
    rows = traces.ranges_ms.to_dict()
    pictures.stacked(
        left, rows, colour=_PAINT, share=True, label="% of a recorded iteration", totals=False
    )
    costs = loading.groupby("updates").learn_ms.median()
    shares = (100 * loading.set_index(["loader", "updates"]).share).sort_index()
    series = {
        name: {float(costs[n]): list(shares.loc[[(name, n)]]) for n in config.updates}
        for name in config.loaders
    }
    styles = {name: "--" for name in config.loaders if name.startswith("ours")}
    pictures.lines(
        right, series, styles=styles, log="x", xlabel="learning per batch [ms]",
        ylabel="% of the loop spent waiting for data",
    )  # fmt: skip
    right.axhline(100 * HIDDEN, color=pictures.GREY, linestyle=":")
    return figure


def _draw_allocator(memory: Any) -> Figure:
    figure, (axes,) = pictures.panels()
    for row in memory.itertuples():
        axes.plot(row.reserved_mib, linewidth=1.4, label=row.lengths)
    axes.legend(frameon=False)
    axes.set_xlabel("training step")
    axes.set_ylabel("reserved by the caching allocator [MiB]")
    return figure
