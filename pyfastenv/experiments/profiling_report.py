"""What comes of the measurements of `profiling`: tables, ratios and pictures."""

from __future__ import annotations

import itertools
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from pyfastenv.experiments import pictures
from pyfastenv.experiments.baselines import loaders
from pyfastenv.experiments.claims import Ratio, compare
from pyfastenv.experiments.profiling import HIDDEN, REST, Config
from pyfastenv.experiments.report import Report
from pyfastenv.experiments.study import Results
from pyfastenv.experiments.tables import median
from pyfastenv.nn.spans import SPANS
from pyfastenv.training.plots import COLOURS, label_ends

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
        "shown": (*SPANS, REST),
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
        "overhead": overhead,
        "overheads": {
            name: median(ms) / median(overhead["no profiler"]) for name, ms in overhead.items()
        },
        "span": results.part("span").iloc[0],
        "stale": results.part("stale").iloc[0],
        "variable_on_cpu": on_cpu.variable / on_cpu.fixed,
        "allocator": len(memory) > 0,
        "changes": lambda mib: sum(a != b for a, b in itertools.pairwise(mib[5:])),
        "share_of": lambda name, n: shares[name, n],
        "gain_of": partial(_gain, results),
    }
    figures = {
        "trace": _draw_trace(traces.loc[values["traced"]]),
        "shares": _draw_shares(traces, loading, config),
    }
    if len(memory):
        figures["allocator"] = _draw_allocator(memory)
    return Report(values, _ratios(results, config), figures)


def _gain(results: Results, loader: str, updates: int) -> Ratio:
    """How many times as fast as loading in the loop."""
    mine, theirs = (
        results.rounds("loading", "rate", loader=name, updates=updates)
        for name in (loader, loaders.FOREGROUND)
    )
    return compare(mine, theirs)


def _ratios(results: Results, config: Config) -> dict[str, Ratio | None]:
    most, least = config.updates[-1], config.updates[0]
    overhead = results.part("overhead").ms[0]
    ratios: dict[str, Ratio | None] = {
        name: _gain(results, loader, most) if loader in config.loaders else None
        for name, loader in _BACKGROUND.items()
    }
    ratios |= {
        "jagged": None,
        "pool": _gain(results, loaders.OURS, least),
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
    ends = []
    for row, paint in zip(memory.itertuples(), COLOURS, strict=False):
        axes.plot(row.reserved_mib, linewidth=1.4, color=paint)
        ends.append((row.reserved_mib[-1], row.lengths, paint))
    label_ends(axes, ends)
    axes.set_xlabel("training step")
    axes.set_ylabel("reserved by the caching allocator [MiB]")
    return figure
