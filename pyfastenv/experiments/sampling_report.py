"""What comes of the measurements of `sampling`: the model, tables, ratios and pictures."""

from __future__ import annotations

from dataclasses import dataclass
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
from pyfastenv.experiments.sampling import Config
from pyfastenv.experiments.study import Results
from pyfastenv.training.plots import COLOURS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

DOCUMENT = {0.0001: 314.17, 0.1: 341.86}  # [s] for 1,000 iterations of 8 x 4,000 environments
_RANGE_OF_8 = 2.85  # expected range of 8 standard normals


@dataclass(frozen=True)
class Model:
    """What a step and a policy call take, and what follows from that.

    Attributes:
        env_s: Of an environment's step on one CPU [s].
        sizes, call_s: Of policy calls on one thread, by batch [s].
        cpus: How many there are.
    """

    env_s: float
    sizes: tuple[int, ...]
    call_s: tuple[float, ...]
    cpus: int

    def call(self, batch: int) -> float:
        """A policy call's time [s], between measured sizes proportionally."""
        logs = np.interp(np.log(batch), np.log(self.sizes), np.log(self.call_s))
        return float(np.exp(logs))

    def waiting(self, num_envs: int, workers: int) -> float:
        """An iteration in which the policy waits for all environments, and they for it [s]."""
        return num_envs * self.env_s / min(workers, self.cpus) + self.call(num_envs)

    def overlapping(self, num_envs: int, batch: int) -> float:
        """An iteration in batches, while the policy serves one others being stepped [s]."""
        policy = num_envs / batch * self.call(batch)
        return max((num_envs * self.env_s + policy) / self.cpus, policy)


def models(results: Results, what: str) -> dict[str, Model]:
    """By network."""
    units = results.part("units").set_index("what")["env_s"]
    return {
        row.network: Model(float(units[what]), tuple(row.sizes), tuple(row.call_s), results.cpus)
        for row in results.part("policy").itertuples()
    }


class Reader:
    """Rates by contestant, and their ratios.

    Args:
        results: What was measured.
        config: Its sizes.
    """

    def __init__(self, results: Results, config: Config):
        self.results, self.config = results, config
        self.short = config.timeout[0]
        self.small, self.large = min(config.envs_per_worker), max(config.envs_per_worker)

    def rates(self, name: str, size: int, part: str = "", **about: Any) -> list[float]:
        """Round by round; of the small network from the document's runs."""
        about = {"workers": self.config.workers, "network": SMALL, "timeout": NONE} | about
        part = part or ("runs" if about["network"] == SMALL else "networks")
        return self.results.rounds(part, "rate", contestant=name, B=size, **about)

    def overlap(self, size: int, network: str) -> Ratio:
        """Batches of fixed size over the barrier."""
        return compare(
            self.rates(BY_B, size, network=network), self.rates(STEP, size, network=network)
        )

    def timeout(self, size: int, part: str = "", **about: Any) -> Ratio:
        """The short timeout over waiting for all."""
        waiting = self.rates(QUEUES, size, part, **about)
        return compare(self.rates(QUEUES, size, part, timeout=self.short, **about), waiting)

    def over_queues(self, name: str, size: int, timeout: float = NONE) -> Ratio:
        """A contestant over the document's program that waits for all."""
        mine, theirs = self.rates(name, size, timeout=timeout), self.rates(QUEUES, size)
        return compare(mine, theirs[: len(mine)])  # they have more rounds

    def gaps(self, size: int) -> list[float]:
        """The slowest worker's step minus the fastest's, where all were waited for [s]."""
        frame = self.results.part("runs").query("contestant == @QUEUES and timeout == @NONE")
        return [gap for gaps in frame[size == frame.B].gaps for gap in gaps]


def report(results: Results, config: Config) -> Report:
    """Tables, ratios and pictures."""
    reader = Reader(results, config)
    small, large, short = reader.small, reader.large, reader.short
    overlaps = {network: reader.overlap(large, network) for network in config.networks}
    best = max(overlaps, key=lambda network: overlaps[network].mean)
    largest, following = config.networks[-1], config.networks[min(1, len(config.networks) - 1)]
    waiting, in_time = (reader.rates(QUEUES, small, timeout=t) for t in (NONE, short))
    ratios: dict[str, Ratio | None] = {
        "waiting_small": compare(waiting, in_time),
        "short_over_long": None,
        "timeout_small": reader.timeout(small),
        "timeout_large": reader.timeout(large),
        "timeout_small_network": reader.timeout(small, network=largest),
        "timeout_large_network": reader.timeout(large, network=largest),
        "overlap_small_network": overlaps[SMALL],
        "overlap_next": overlaps[following],
        "overlap_best": overlaps[best],
        "step_small": reader.over_queues(STEP, small),
        "step_large": reader.over_queues(STEP, large),
        "rollout_small": reader.over_queues(ROLLOUT, small),
        "more_environments": compare(reader.rates(QUEUES, large), reader.rates(QUEUES, small)),
        "our_physics": compare(reader.rates(STEP, small), reader.rates(PROCESSES, small)),
    }
    if 0.1 in config.timeout:
        one, other = (reader.rates(QUEUES, large, timeout=t) for t in (short, 0.1))
        ratios["short_over_long"] = compare(one, other)
    runs, steps = results.part("runs"), np.asarray(results.part("steps").step_s[0])
    of_large = runs[large == runs.B]
    units = results.part("units").set_index("what")["env_s"]
    cut = runs.query("contestant == @QUEUES and timeout == @short")
    few_workers = results.part("workers").query("timeout == @short and B == @small")
    scale, ours = results.part("scale"), models(results, "ours")
    measured = scale.dropna(subset=["rate"]) if "rate" in scale else scale[:0]
    envpool = measured[measured.contestant == ENVPOOL].tail(1)
    values = {
        "few": f"{config.workers * small:,} environments",
        "many": f"{config.workers * large:,} environments",
        "small_envs": config.workers * small,
        "num_envs": config.workers * large,
        "short": short,
        "next_network": following,
        "largest": largest,
        "best": best,
        "our_mib": of_large[of_large.contestant.isin(OURS)].memory_mib.agg(["min", "max"]).tolist(),
        "their_mib": of_large[of_large.contestant == QUEUES].memory_mib.median(),
        "envpool": [(config.workers * row.B, row.memory_mib) for row in envpool.itertuples()],
        "together": few_workers.groupby("workers").per_receive.mean() / small,
        "arrived": cut[small == cut.B].per_receive.mean() / small,
        "calls": {n: cut[n == cut.B].calls.mean() for n in (small, large)},
        "call_ms": lambda network, n: 1e3 * ours[network].call(n),
        "steal": runs.steal.max(),
        "others": runs.others.max(),
        "env_us": {name: 1e6 * value for name, value in units.items()},
        "step_us": (1e6 * steps.mean(), 1e6 * steps.std()),
        "spread_ms": {n: 1e3 * _RANGE_OF_8 * steps.std() * n**0.5 for n in config.envs_per_worker},
        "queues": QUEUES,
        "step": STEP,
        "by_b": BY_B,
        "ours": OURS,
        "document_s": lambda name, size, timeout: (
            DOCUMENT.get(timeout, "") if (name, size) == (QUEUES, 4_000) else ""
        ),
        "label": label,
        "reader": reader,
        "predicted": partial(predicted, reader),
        "megabytes": {name: Policy(name).megabytes for name in config.networks},
    }
    return Report(values, ratios, _pictures(reader, steps))


def label(name: str, timeout: float) -> str:
    """A contestant with its timeout, if it can have one."""
    if name not in (QUEUES, SEND_RECV):
        return name
    per = " in all" if name == SEND_RECV else ""
    return f"{name}, {f'{timeout:g} s{per}' if timeout else 'waits for all'}"


def predicted(reader: Reader, name: str, size: int, network: str) -> float:
    """A contestant's rate by the model [environment steps/s]."""
    count = reader.config.workers * size
    model = models(reader.results, "rows" if name == QUEUES else "ours")[network]
    if name == BY_B:
        return count / model.overlapping(count, size)
    return count / model.waiting(count, reader.config.workers if name == QUEUES else model.cpus)


# ---- pictures ------------------------------------------------------------------------------------


def _pictures(reader: Reader, steps: Any) -> dict[str, Figure]:
    config, frame = reader.config, reader.results.part("runs")
    rates, axes = pictures.panels(
        len(config.envs_per_worker), size=(11, 3.6), columns=2, sharey=True
    )
    by_size: list[dict[str, list[float]]] = []
    paint: dict[str, str] = {}
    for each, size in zip(axes, config.envs_per_worker, strict=True):
        groups = frame[size == frame.B].groupby(["contestant", "timeout"], sort=False)
        by_size.append({label(*key): list(group.rate / 1e3) for key, group in groups})
        paint |= {label(*key): COLOURS[0 if key[0] in OURS else 1] for key, _ in groups}
        each.set_title(f"{config.workers} × {size:,} environments", loc="left", fontsize=10)
    pictures.points_side_by_side(
        axes, by_size, colour=paint, label="thousand environment steps per second"
    )
    why, (left, right) = pictures.panels(2, size=(11, 3.8), columns=2)
    _draw_gains(left, reader)
    _draw_spread(right, reader, steps)
    return {"rates": rates, "why": why}


def _draw_gains(axes: Any, reader: Reader) -> None:
    size, num_envs = reader.large, reader.config.workers * reader.large
    queues, by_b, model = f"queues: {reader.short:g} s / waiting", "send/recv by B / step", "model"
    series: dict[str, dict[float, list[float]]] = {queues: {}, by_b: {}, model: {}}
    for network, costs in models(reader.results, "ours").items():
        x, about = Policy(network).megabytes, {"network": network}
        short = reader.rates(QUEUES, size, timeout=reader.short, **about)
        for name, one, other in (
            (queues, short, reader.rates(QUEUES, size, **about)),
            (by_b, reader.rates(BY_B, size, **about), reader.rates(STEP, size, **about)),
        ):
            series[name][x] = [a / b for a, b in zip(one, other, strict=True)]
        series[model][x] = [costs.waiting(num_envs, costs.cpus) / costs.overlapping(num_envs, size)]
    pictures.lines(
        axes, series, styles={model: "--"}, log="x", xlabel="parameters of the policy [MB]",
        colour={model: pictures.GREY, queues: COLOURS[1], by_b: COLOURS[0]},
        ylabel=f"times as fast, {num_envs:,} environments",
    )  # fmt: skip
    axes.axhline(1.0, color="black", linewidth=0.6)


def _draw_spread(axes: Any, reader: Reader, steps: Any) -> None:
    rng = np.random.default_rng(0)
    independent, measured = {}, {}
    for size in (1, 4, 20, 100, 400, 1_000, 4_000):
        sums = np.array([rng.choice(steps, (8, size)).sum(1) for _ in range(30)])
        independent[float(size)] = list(100 * np.ptp(sums, axis=1) / (size * steps.mean()))
    for size in reader.config.envs_per_worker:
        measured[float(size)] = [100 * gap / (size * steps.mean()) for gap in reader.gaps(size)]
    pictures.lines(
        axes, {"independent steps": independent, "measured": measured}, log="xy",
        xlabel="environments per worker, B", ylabel="slowest − fastest worker [% of its steps]",
    )  # fmt: skip
