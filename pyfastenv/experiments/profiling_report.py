"""Tables, ratios and pictures from the measurements of `profiling`."""

from __future__ import annotations

import itertools
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from pyfastenv.experiments import pictures
from pyfastenv.experiments.baselines import loaders
from pyfastenv.experiments.claims import Ratio, compare, verdict
from pyfastenv.experiments.profiling import HIDDEN, MENDED, REST
from pyfastenv.experiments.report import Report
from pyfastenv.experiments.study import Study
from pyfastenv.experiments.tables import median
from pyfastenv.nn.spans import SPANS
from pyfastenv.publish.plots import COLOURS, label_ends

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_BACKGROUND = (  # the document's claims, and the loader that judges each
    ("Preparing data in a background process makes the loop faster", loaders.WORKER),
    ("So do more workers (two)", loaders.TWO_WORKERS),
    ("So do processes of one's own (two)", loaders.PROCESSES),
)
_PAINT = pictures.colours(SPANS) | {REST: "#DDDDDD"}


def report(study: Study) -> Report:
    """The values that the template is filled with."""
    config = study.sizes
    least = config.updates[0]
    traces = study.part("traces").set_index("trainer")
    traced = traces.loc["mbpo" if "mbpo" in traces.index else traces.index[0]]
    beginning = study.part("beginning").iloc[0]
    loading, memory = study.part("loading"), study.part("allocator")
    waits = loading.groupby("loader").wait_ms.median()
    shares = loading.groupby(["loader", "updates"], sort=False).share.median()
    overhead, on_cpu = study.part("overhead").ms[0], study.part("lengths on the CPU").iloc[0]

    def gain(loader: str, updates: int) -> Ratio | None:
        """How many times as fast as loading in the loop."""
        mine, theirs = (
            {"loader": name, "updates": updates} for name in (loader, loaders.FOREGROUND)
        )
        return study.ratio("loading", "rate", mine, theirs)

    background = [(claim, name) for claim, name in _BACKGROUND if name in config.loaders]
    gains = [gain(name, updates) for _, name in background for updates in config.updates]
    adam = study.part("adam").iloc[0]
    values: dict[str, Any] = {
        "background": background,
        "held": [ratio for ratio in gains if ratio is not None and ratio.outcome == "more"],
        "ours": [name for name in config.loaders if name.startswith("ours")],
        "short": lambda ratio: verdict(ratio, "more").split(":")[0],
        "mended": _mended(study),
        "adam": adam,
        "flat_adam": compare(adam.torch_us, adam.flat_us),
        "pool": gain(loaders.OURS, least),
        "one_option": compare(overhead["CPU"], overhead["no profiler"]),
        "all_options": compare(overhead["all of it"], overhead["CPU"]),
        "overlap": study.ratio("overlap", "rate", {"overlap": True}, {"overlap": False}),
        "jagged": None,
        "traced": traced.name,
        "traces": traces,
        "shown": (*SPANS, REST),
        "hiding": {
            name: next((n for n in config.updates if shares[name, n] < HIDDEN), None)
            for name in config.loaders
        },
        "costs": loading.groupby("updates").learn_ms.median(),
        "worker": loaders.WORKER,
        "collector_share": shares.get((loaders.OURS_BEHIND, least)),
        "foreground_ms": waits[loaders.FOREGROUND],
        "ours_ms": waits[loaders.OURS],
        "overlap_share": study.part("overlap").groupby("overlap").share.median().to_dict(),
        "overhead": overhead,
        "overheads": {
            name: compare(ms, overhead["no profiler"]) if name != "no profiler" else None
            for name, ms in overhead.items()
        },
        "cpu_medians": median(overhead["CPU"]) / median(overhead["no profiler"]),
        "span": study.part("span").iloc[0],
        "stale": study.part("stale").iloc[0],
        "variable_on_cpu": on_cpu.variable / on_cpu.fixed,
        "allocator": len(memory) > 0,
        "changes": lambda mib: sum(a != b for a, b in itertools.pairwise(mib[5:])),
        "share_of": lambda name, n: shares[name, n],
        "gain_of": gain,
    }
    figures = {
        "trace": partial(_draw_trace, beginning),
        "shares": partial(_draw_shares, traces, loading, config),
    }
    if len(memory):
        reserved = memory.set_index("lengths").reserved_mib
        variable, fixed = (np.ptp(reserved[kind][5:]) + 1.0 for kind in ("variable", "fixed"))
        values["jagged"] = compare([variable], [fixed])
        figures["allocator"] = partial(_draw_allocator, reserved)
    return Report(values, figures)


def _mended(study: Study) -> list[tuple[str, Any, Any, Ratio]]:
    """Each algorithm before and after, its times in rounds, and their ratio."""
    found = []
    for name, (_, hows) in MENDED.items():
        times = [
            (how, study.rounds("mended", "cpu_us", what=name, how=how))
            for how in hows
            if name.lower() in study.sizes.trainers
        ]
        for before, after in zip(times[::2], times[1::2], strict=True):
            found.append((name, before, after, compare(before[1], after[1])))
    return found


def _draw_trace(row: Any) -> Figure:
    figure, (axes,) = pictures.panels(size=(11, 2.6))
    pictures.flames(axes, row.ranges, _PAINT)
    axes.set_title(f"the first ranges of a recorded {row.trainer}", loc="left", fontsize=10)
    return figure


def _draw_shares(traces: Any, loading: Any, config: Any) -> Figure:
    figure, (left, right) = pictures.panels(2, size=(12, 3.8), columns=2)
    label = "% of a recorded iteration"
    rows = traces.ranges_ms.to_dict()
    pictures.stacked(left, rows, colour=_PAINT, share=True, label=label)
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


def _draw_allocator(reserved: Any) -> Figure:
    figure, (axes,) = pictures.panels()
    ends = []
    for (kind, mib), paint in zip(reserved.items(), COLOURS, strict=False):
        axes.plot(mib, linewidth=1.4, color=paint)
        ends.append((mib[-1], kind, paint))
    label_ends(axes, ends)
    axes.set_xlabel("training step")
    axes.set_ylabel("reserved by the caching allocator [MiB]")
    return figure
