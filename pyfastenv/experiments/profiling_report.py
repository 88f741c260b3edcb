"""What comes of the measurements of `profiling`: tables, claims and pictures."""

from __future__ import annotations

import itertools
from typing import Any

from pyfastenv.experiments import pictures
from pyfastenv.experiments.baselines import loaders
from pyfastenv.experiments.claims import Claim, compare
from pyfastenv.experiments.profiling import HIDDEN, REST, Config
from pyfastenv.experiments.report import Report
from pyfastenv.experiments.study import Results
from pyfastenv.experiments.tables import cell, median, number, spread, table
from pyfastenv.nn.spans import SPANS


def report(results: Results, config: Config) -> Report:
    """Tables, claims and pictures."""
    made = Report()
    traces = {str(row.trainer): row for row in results.part("traces").itertuples()}
    loading = results.part("loading")
    overhead = results.part("overhead").ms[0]
    spans_ns, stale = results.part("span").iloc[0], results.part("stale").iloc[0]
    on_cpu = results.part("lengths on the CPU").iloc[0]
    memory = results.part("allocator")
    overlap = results.part("overlap")
    shares = loading.groupby(["loader", "updates"], sort=False).share.median()
    costs = loading.groupby("updates").learn_ms.median()
    hiding = {
        name: next((n for n in config.updates if shares[name, n] < HIDDEN), None)
        for name in config.loaders
    }
    made.values = {
        "gpu": results.has_gpu,
        "cpus": results.cpus,
        "phases": table(
            ("", "iteration [ms]", *SPANS, REST),
            [
                (
                    f"`{name}`",
                    row.iteration_ms,
                    *(
                        f"{row.ranges_ms[each] / row.iteration_ms:.0%}"
                        if each in row.ranges_ms
                        else "–"
                        for each in (*SPANS, REST)
                    ),
                )
                for name, row in traces.items()
            ],
        ),
        "whole_run": table(
            ("the whole run", "share of the time by phase"),
            [
                (
                    f"`{name}`",
                    ", ".join(
                        f"{phase} {value / sum(row.phases_s.values()):.0%}"
                        for phase, value in row.phases_s.items()
                    ),
                )
                for name, row in traces.items()
            ],
        ),
        "mbpo_table": traces["mbpo"].table if "mbpo" in traces else "",
        "loading": _loading_table(results, config, costs),
        "hiding": {name: cell(n) for name, n in hiding.items()},
        "foreground_ms": loading[loading.loader == loaders.FOREGROUND].wait_ms.median(),
        "ours_ms": loading[loading.loader == loaders.OURS].wait_ms.median(),
        "overlap": compare(
            results.rounds("overlap", "rate", overlap=True),
            results.rounds("overlap", "rate", overlap=False),
        ),
        "overlap_share": overlap.groupby("overlap").share.median().to_dict(),
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
        "span_ns": spans_ns.ours_ns,
        "torch_ns": spans_ns.torch_ns,
        "stale": stale.printed,
        "mended": stale.mended,
        "variable_on_cpu": on_cpu.variable / on_cpu.fixed,
        "allocator": table(
            ("lengths", "reserved [MiB]", "changes", "device frees", "retries", "ms per step"),
            [
                (
                    row.lengths,
                    f"{min(row.reserved_mib):,.0f} to {max(row.reserved_mib):,.0f}",
                    sum(a != b for a, b in itertools.pairwise(row.reserved_mib[5:])),
                    row.frees,
                    row.retries,
                    row.ms,
                )
                for row in memory.itertuples()
            ],
        )
        if len(memory)
        else None,
    }
    made.claims = list(_claims(results, config))
    _draw(made, traces, loading, config)
    if len(memory):
        figure, (axes,) = pictures.panels()
        for row in memory.itertuples():
            axes.plot(row.reserved_mib, linewidth=1.4, label=row.lengths)
        axes.legend(frameon=False)
        axes.set_xlabel("training step")
        axes.set_ylabel("reserved by the caching allocator [MiB]")
        made.pictures["allocator"] = (figure, "Memory that the allocator has reserved.")
    return made


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


def _claims(results: Results, config: Config) -> list[Claim]:
    def rates(name: str, updates: int) -> list[float]:
        return results.rounds("loading", "rate", loader=name, updates=updates)

    most, least = config.updates[-1], config.updates[0]
    background = [name for name in config.loaders if "worker" in name or "processes" in name]
    overhead = results.part("overhead").ms[0]
    claims = [
        Claim(
            "document: preparing data in the background makes the loop faster",
            f"batches/s, {name} / in the loop, {most} gradient steps",
            "more",
            compare(rates(name, most), rates(loaders.FOREGROUND, most)),
        )
        for name in background
    ]
    for one, other in (("CPU", "no profiler"), ("all of it", "CPU")):
        ratio = compare(overhead[one], overhead[other])
        claims.append(
            Claim(
                "document: the fewer options, the less the profiler costs",
                f"time, {one} / {other}",
                "more",
                ratio,
            )
        )
    claims.append(
        Claim(
            "document: variable lengths make the reserved memory jagged", "–", "more", None,
            "needs a GPU" if not results.has_gpu else "see the table",
        )
    )  # fmt: skip
    claims.append(
        Claim(
            "ours: the pool makes batches faster than gymnasium",
            f"batches/s, {loaders.OURS} / {loaders.FOREGROUND}, {least} gradient steps",
            "more",
            compare(rates(loaders.OURS, least), rates(loaders.FOREGROUND, least)),
        )
    )
    return claims


def _draw(made: Report, traces: Any, loading: Any, config: Config) -> None:
    name = "mbpo" if "mbpo" in traces else next(iter(traces))
    paint = pictures.colours((*SPANS, REST))
    figure, (axes,) = pictures.panels(size=(11, 2.6))
    pictures.timeline(axes, sorted(traces[name].timeline, key=lambda one: one[1]), paint)
    axes.set_title(f"an iteration of {name}, by named range", loc="left", fontsize=10)
    made.pictures["trace"] = (
        figure,
        f"One trace: an iteration of {name} in which everything fell due, ranges nested downwards.",
    )
    figure, (left, right) = pictures.panels(2, size=(12, 3.8), columns=2)
    rows = {name: row.ranges_ms for name, row in traces.items()}
    pictures.stacked(
        left, rows, colour=paint, share=True, label="% of a recorded iteration", totals=False
    )
    costs = loading.groupby("updates").learn_ms.median()
    series = {
        name: {
            float(costs[n]): [
                100 * share
                for share in loading[(loading.loader == name) & (loading.updates == n)].share
            ]
            for n in config.updates
        }
        for name in config.loaders
    }
    styles = {name: "--" for name in config.loaders if name.startswith("ours")}
    pictures.lines(
        right, series, styles=styles, log="x", xlabel="learning per batch [ms]",
        ylabel="% of the loop spent waiting for data",
    )  # fmt: skip
    made.pictures["shares"] = (
        figure,
        "Left: recorded iterations by range, each without those in it. Right: where background "
        "loading begins to hide.",
    )
