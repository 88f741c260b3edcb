"""Results of the measurements of `sampling`: tables, ratios and pictures."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from pyfastenv.experiments import pictures
from pyfastenv.experiments.claims import Ratio, compare
from pyfastenv.experiments.report import Report
from pyfastenv.experiments.samplers import (
    BY_B,
    ENVPOOL,
    NONE,
    OURS,
    PROCESSES,
    QUEUES,
    ROLLOUT,
    SEND_RECV,
    SMALL,
    STEP,
    Policy,
)
from pyfastenv.experiments.study import Study
from pyfastenv.publish.plots import COLOURS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_DOCUMENT = {0.0001: 314.17, 0.1: 341.86}  # [s] for 1,000 iterations of 8 x 4,000 environments
_RANGE_OF_8 = 2.85  # expected range of 8 standard normals


class Reader:
    """Rates by contestant, and their ratios."""

    def __init__(self, study: Study):
        self.study, self.workers = study, study.sizes.workers
        self.short = study.sizes.timeout[0]
        self._calls = {row["network"]: row for _, row in study.part("policy").iterrows()}

    def call_ms(self, network: str, batch: int) -> float:
        """A policy call's time [ms], between measured sizes proportionally."""
        sizes, times = (self._calls[network][column] for column in ("sizes", "call_s"))
        return 1e3 * float(np.exp(np.interp(np.log(batch), np.log(sizes), np.log(times))))

    def rounds(self, value: str, name: str, size: int, part: str = "", **about: Any) -> list[float]:
        """A column, round by round; of the small network from the document's runs."""
        about = {"workers": self.workers, "network": SMALL, "timeout": NONE} | about
        part = part or ("runs" if about["network"] == SMALL else "networks")
        return self.study.rounds(part, value, contestant=name, B=size, **about)

    def rates(self, name: str, size: int, part: str = "", **about: Any) -> list[float]:
        """Environment steps per second, round by round."""
        return self.rounds("rate", name, size, part, **about)

    def calls(self, size: int, network: str) -> float:
        """Policy calls per iteration with the short timeout."""
        calls = self.rounds("calls", QUEUES, size, timeout=self.short, network=network)
        return float(np.mean(calls))

    def ratio(
        self,
        size: int,
        one: tuple[str, float],
        other: tuple[str, float],
        part: str = "",
        **about: Any,
    ) -> Ratio:
        """A contestant and its timeout over another one, as far as both have rounds."""
        first, second = (
            self.rates(name, size, part, timeout=t, **about) for name, t in (one, other)
        )
        return compare(first, second[: len(first)])

    def overlap(self, size: int, network: str) -> Ratio:
        """Batches of fixed size over the barrier."""
        return self.ratio(size, (BY_B, NONE), (STEP, NONE), network=network)

    def timeout(self, size: int, part: str = "", than: float = NONE, **about: Any) -> Ratio:
        """The short timeout over waiting for all, or over another one."""
        return self.ratio(size, (QUEUES, self.short), (QUEUES, than), part, **about)

    def over_queues(self, name: str, size: int, timeout: float = NONE) -> Ratio:
        """A contestant over the document's program that waits for all."""
        return self.ratio(size, (name, timeout), (QUEUES, NONE))

    def gaps(self, size: int) -> list[float]:
        """The slowest worker's step minus the fastest's, where all were waited for [s]."""
        frame = self.study.part("runs").query("contestant == @QUEUES and timeout == @NONE")
        return [gap for gaps in frame[size == frame.B].gaps for gap in gaps]


def report(study: Study) -> Report:
    """The values that the template is filled with."""
    reader, config = Reader(study), study.sizes
    sizes, short, workers = config.envs_per_worker, reader.short, config.workers
    small, large = min(sizes), max(sizes)
    overlaps = {network: reader.overlap(large, network) for network in config.networks}
    best = max(overlaps, key=lambda network: overlaps[network].mean)
    timeouts = {network: reader.timeout(large, network=network) for network in config.networks}
    most = max(timeouts, key=lambda network: timeouts[network].mean)
    largest, following = config.networks[-1], config.networks[min(1, len(config.networks) - 1)]
    num_envs = workers * large
    can = study.cpus > workers and config.device == "cuda"

    def work(name: str, threads: int) -> list[float]:
        """Processor time per step, round by round."""
        about = {"contestant": name, "policy threads": threads}
        rates, used = (study.rounds("threads", column, **about) for column in ("rate", "cpus"))
        return [cpus / rate for cpus, rate in zip(used, rates, strict=True)]

    # where a timeout and waiting for all are apart, the document's direction may show
    directions = {
        f"{count} workers × {size:,} environments, 64x64": reader.timeout(
            size, "workers", workers=count
        )
        for size in sorted(set(study.part("workers").B))
        for count in config.fewer_workers
    }
    directions |= {
        f"{workers} workers × {large:,} environments, {network}": ratio
        for network, ratio in timeouts.items()
    }

    runs, steps = study.part("runs"), 1e6 * np.asarray(study.part("steps").step_s[0])
    of_large, scale = (
        runs[large == runs.B],
        study.part("scale").reindex(columns=("contestant", "B", "memory_mib")),
    )
    cut = runs.query("contestant == @QUEUES and timeout == @short")
    few_workers = study.part("workers").query("timeout == @short and B == @small")
    envpool = scale[scale.contestant == ENVPOOL].dropna().tail(1)
    values = {
        "waiting_small": reader.ratio(small, (QUEUES, NONE), (QUEUES, short)),
        "short_over_long": reader.timeout(large, than=0.1) if 0.1 in config.timeout else None,
        "timeout_small": reader.timeout(small),
        "timeout_large": timeouts[SMALL],
        "timeout_small_network": reader.timeout(small, network=largest),
        "timeout_large_network": timeouts[largest],
        "overlap_small_network": overlaps[SMALL],
        "overlap_next": overlaps[following],
        "overlap_best": overlaps[best],
        "step_small": reader.over_queues(STEP, small),
        "step_large": reader.over_queues(STEP, large),
        "rollout_small": reader.over_queues(ROLLOUT, small),
        "more_environments": compare(reader.rates(QUEUES, large), reader.rates(QUEUES, small)),
        "our_physics": reader.ratio(small, (STEP, NONE), (PROCESSES, NONE)),
        "few": f"{workers * small:,} environments",
        "many": f"{workers * large:,} environments",
        "small_envs": workers * small,
        "num_envs": num_envs,
        "many_each": large,
        "directions": [
            (what, ratio)
            for what, ratio in directions.items()
            if ratio.outcome in ("more", "less") or ratio is timeouts[most]
        ],
        "compared": len(directions),
        "lacks": "" if can else f"needs {workers + 1} CPUs and a GPU",
        "by_b_work": compare(work(BY_B, 1), work(STEP, 2)),
        "rollout_work": compare(work(ROLLOUT, 1), work(STEP, 2)),
        "short": short,
        "next_network": following,
        "largest": largest,
        "best": best,
        "our_mib": of_large[of_large.contestant.isin(OURS)].memory_mib.agg(["min", "max"]).tolist(),
        "their_mib": of_large[of_large.contestant == QUEUES].memory_mib.median(),
        "envpool": [(workers * row.B, row.memory_mib) for row in envpool.itertuples()],
        "together": few_workers.groupby("workers").per_receive.mean() / small,
        "arrived": cut[small == cut.B].per_receive.mean() / small,
        "arrived_by": runs.query("contestant == @QUEUES and B == @small")
        .groupby("timeout")
        .per_receive.mean()
        / small,
        "calls": {n: reader.calls(n, SMALL) for n in (small, large)},
        "call_ms": reader.call_ms,
        "step_us": (steps.mean(), steps.std()),
        "spread_ms": {n: 1e-3 * _RANGE_OF_8 * steps.std() * n**0.5 for n in sizes},
        "document_s": lambda name, size, timeout: (
            _DOCUMENT.get(timeout, "") if (name, size) == (QUEUES, 4_000) else ""
        ),
        "OURS": OURS,
        "label": _label,
        "reader": reader,
        "megabytes": {name: Policy(name).megabytes for name in config.networks},
    }
    why = partial(_draw_why, reader, steps)
    return Report(values, {"rates": partial(_draw_rates, study), "why": why})


def _label(name: str, timeout: float) -> str:
    """A contestant with its timeout, if it can have one."""
    if name not in (QUEUES, SEND_RECV):
        return name
    per = " in all" if name == SEND_RECV else ""
    return f"{name}, {f'{timeout:g} s{per}' if timeout else 'waits for all'}"


# ---- pictures ------------------------------------------------------------------------------------


def _draw_rates(study: Study) -> Figure:
    config, frame = study.sizes, study.part("runs")
    sizes = config.envs_per_worker
    figure, axes = pictures.panels(len(sizes), size=(11, 3.6), columns=2, sharey=True)
    by_size: list[dict[str, list[float]]] = []
    paint: dict[str, str] = {}
    for each, size in zip(axes, sizes, strict=True):
        groups = frame[size == frame.B].groupby(["contestant", "timeout"], sort=False)
        by_size.append({_label(*key): list(group.rate / 1e3) for key, group in groups})
        paint |= {_label(*key): COLOURS[0 if key[0] in OURS else 1] for key, _ in groups}
        each.set_title(f"{config.workers} × {size:,} environments", loc="left", fontsize=10)
    label = "thousand environment steps per second"
    pictures.points_side_by_side(axes, by_size, colour=paint, label=label)
    return figure


def _draw_why(reader: Reader, steps: Any) -> Figure:
    figure, (left, right) = pictures.panels(2, size=(11, 3.8), columns=2)
    _draw_gains(left, reader)
    _draw_spread(right, reader, steps)
    return figure


def _draw_gains(axes: Any, reader: Reader) -> None:
    config = reader.study.sizes
    size = max(config.envs_per_worker)
    queues, by_b = f"queues: {reader.short:g} s / waiting", "send/recv by B / step"
    series: dict[str, dict[float, list[float]]] = {queues: {}, by_b: {}}
    for network in config.networks:
        x, rates = Policy(network).megabytes, partial(reader.rates, size=size, network=network)
        for name, one, other in (
            (queues, rates(QUEUES, timeout=reader.short), rates(QUEUES)),
            (by_b, rates(BY_B), rates(STEP)),
        ):
            series[name][x] = [a / b for a, b in zip(one, other, strict=True)]
    pictures.lines(
        axes, series, log="x", xlabel="parameters of the policy [MB]",
        colour={queues: COLOURS[1], by_b: COLOURS[0]},
        ylabel=f"times as fast, {config.workers * size:,} environments",
    )  # fmt: skip
    axes.axhline(1.0, color="black", linewidth=0.6)


def _draw_spread(axes: Any, reader: Reader, steps: Any) -> None:
    rng = np.random.default_rng(0)
    independent, measured = {}, {}
    for size in (1, 4, 20, 100, 400, 1_000, 4_000):
        sums = np.array([rng.choice(steps, (8, size)).sum(1) for _ in range(30)])
        independent[float(size)] = list(100 * np.ptp(sums, axis=1) / (size * steps.mean()))
    for size in reader.study.sizes.envs_per_worker:
        measured[float(size)] = [1e8 * gap / (size * steps.mean()) for gap in reader.gaps(size)]
    pictures.lines(
        axes, {"independent steps": independent, "measured": measured}, log="xy",
        xlabel="environments per worker, B", ylabel="slowest − fastest worker [% of its steps]",
    )  # fmt: skip
