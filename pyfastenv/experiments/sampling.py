"""Does a timeout on the result queue help synchronous sampling? The experiment of document 003.

Worker processes with shared memory and queues, as the document has them, beside pyfastenv's
barrier, send/recv and rollout: fixed numbers of iterations, round by round in turn. And a model of
two numbers, what a step and what a policy call take, that says beforehand what pays.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch

from pyfastenv.experiments import pictures
from pyfastenv.experiments.baselines.queue_workers import BLOCKS, FIELDS, Arrays, make_env
from pyfastenv.experiments.claims import Claim, Ratio, compare
from pyfastenv.experiments.clock import Clock, memory_bytes, milliseconds, trim_memory
from pyfastenv.experiments.measure import available_memory_bytes
from pyfastenv.experiments.report import Report, median, number, spread, table
from pyfastenv.experiments.samplers import (
    Policy,
    QueueSampler,
    RolloutSampler,
    Sampler,
    SendRecvSampler,
    StepSampler,
    envpool,
    gymnasium_async,
    our_envs,
)
from pyfastenv.experiments.study import Measurement, Results, Row, Sizes, rounds
from pyfastenv.training.plots import COLOURS
from pyfastenv.vector.cpus import available_cpus

QUEUES, OBJECTS, PROCESSES = "queues", "queues, environment objects", "queues, our physics"
STEP, SEND_RECV, BY_B, ROLLOUT = "step", "send/recv", "send/recv by B", "rollout"
ENVPOOL, ASYNC = "EnvPool", "gymnasium Async"
OURS = (STEP, SEND_RECV, BY_B, ROLLOUT)
DOCUMENT = {0.0001: 314.17, 0.1: 341.86}  # [s] for 1,000 iterations of 8 x 4,000 environments
SMALL = "64x64"
NONE = 0.0  # no timeout, in results.json
_RANGE_OF_8 = 2.85  # expected range of 8 standard normals
_MJDATA_BYTES, _PROCESS_BYTES = 700 * 1024, 40 * 2**20


@dataclass(frozen=True, kw_only=True)
class Config(Sizes):
    """Document 003: a timeout on the result queue."""

    workers: int = 8
    """Worker processes of the document's program."""
    envs_per_worker: tuple[int, ...] = (20, 4_000)
    """B: environments that each of them steps in a row."""
    timeout: tuple[float, ...] = (0.0001, 0.1)
    """How long each further worker is waited for [s]; beside it always: for all."""
    iterations: int = 1_000
    """Steps of every environment; with many of them in all rounds together."""
    rounds: int = 10
    """How often each contestant has its turn."""
    fewer_workers: tuple[int, ...] = (1, 2, 4, 8)
    """Numbers of workers between which the regime changes."""
    networks: tuple[str, ...] = (SMALL, "1024x1024x1024", "2200x2200", "3400x3400")
    """Hidden layers of policies; the last two have 20 and 47 MB."""
    network_rounds: int = 5
    """Rounds of the comparisons by network and by number of workers."""
    objects_per_worker: int = 400
    """B with an environment object each."""


QUICK = Config(
    quick=True,
    envs_per_worker=(20, 1_000),
    iterations=8,
    rounds=3,
    fewer_workers=(1, 4),
    networks=(SMALL, "1024x1024"),
    network_rounds=2,
    objects_per_worker=4,
)


# ---- what is measured ----------------------------------------------------------------------------


def plan(config: Config) -> list[Measurement]:
    """Units first, then the document's runs, then by network, by workers, and for scale."""
    torch.set_num_threads(1)  # the policy has one CPU: it must not take the environments'
    steps = 2_000 if config.quick else 20_000
    made = [
        Measurement("steps", {"what": "gymnasium"}, partial(_step_times, steps), steps * 5e-5),
        Measurement("units", {"what": "rows"}, partial(_block_time, "rows"), 5),
        Measurement("units", {"what": "ours"}, partial(_block_time, "ours"), 5),
    ]
    sizes = sorted({1, 20, 160, *(b * w for b in config.envs_per_worker for w in (1, 8))})
    for network in config.networks:
        times = partial(_policy_times, network, sizes, config.quick)
        made.append(Measurement("policy", {"network": network}, times, 2 * len(sizes)))
    for size in config.envs_per_worker:
        contestants = [
            _contestant(config, name, size, timeout=timeout)
            for name, timeouts in (
                (QUEUES, (*config.timeout, NONE)),
                (PROCESSES, (NONE,)),
                (STEP, (NONE,)),
                (SEND_RECV, (config.timeout[0],)),
                (BY_B, (NONE,)),
                (ROLLOUT, (NONE,)),
            )
            for timeout in timeouts
        ]
        made += rounds(config.rounds, "runs", contestants)
    for size in config.envs_per_worker:
        for network in config.networks[1:]:
            contestants = [
                _contestant(config, name, size, network=network, timeout=timeout, short=True)
                for name, timeout in (
                    (QUEUES, config.timeout[0]),
                    (QUEUES, NONE),
                    (STEP, NONE),
                    (BY_B, NONE),
                )
            ]
            made += rounds(config.network_rounds, "networks", contestants)
    for size in (config.envs_per_worker[0], config.envs_per_worker[-1] // 4):
        contestants = [
            _contestant(config, QUEUES, size, workers=workers, timeout=timeout, short=True)
            for workers in config.fewer_workers
            for timeout in (config.timeout[0], NONE)
        ]
        made += rounds(config.network_rounds, "workers", contestants)
    size = config.objects_per_worker
    contestants = [_contestant(config, name, size, short=True) for name in (QUEUES, OBJECTS)]
    made += rounds(config.network_rounds, "objects", contestants)
    largest = max(config.envs_per_worker)
    for name, size in ((ENVPOOL, largest), (ASYNC, 2 if config.quick else 20)):
        about, run, seconds = _contestant(config, name, size, short=True)
        made.append(Measurement("scale", about, run, seconds))
    return made


def _contestant(
    config: Config,
    name: str,
    size: int,
    *,
    network: str = SMALL,
    workers: int | None = None,
    timeout: float = NONE,
    short: bool = False,
) -> tuple[Row, Callable[[], Row], float]:
    workers = workers or config.workers
    num_envs = workers * size
    if short:  # some seconds
        iterations = max(2, round(config.iterations / (5 if num_envs < 1_000 else 100)))
    else:
        in_parts = num_envs >= 1_000
        iterations = max(1, config.iterations // (config.rounds if in_parts else 1))
    about = {
        "contestant": name,
        "workers": workers,
        "B": size,
        "network": network,
        "timeout": timeout,
    }
    run = partial(_run, name, workers, size, network, timeout, iterations)
    per_step = 1.8e-5 if name not in OURS else 1.1e-5
    per_step += 4e-6 if network == SMALL else 2 * Policy(_hidden(network)).megabytes / 4 / 1e5
    return about, run, 3 + num_envs * iterations * per_step


def _hidden(network: str) -> tuple[int, ...]:
    return tuple(int(width) for width in network.split("x"))


def _make(name: str, workers: int, size: int, network: str, timeout: float) -> Sampler:
    policy, num_envs, wait = Policy(_hidden(network)), workers * size, timeout or None
    blocks = {QUEUES: "rows", OBJECTS: "objects", PROCESSES: "ours"}
    if name in blocks:
        return QueueSampler(policy, blocks[name], workers, size, wait)
    if name == STEP:
        return StepSampler(policy, our_envs(num_envs))
    if name == ROLLOUT:
        return RolloutSampler(policy, num_envs, 20 if num_envs < 1_000 else 2)
    if name == ENVPOOL:
        return StepSampler(Policy(_hidden(network), obs_size=17), envpool(num_envs), np.float64)
    if name == ASYNC:
        return StepSampler(policy, gymnasium_async(num_envs))
    return SendRecvSampler(policy, num_envs, wait, size if name == BY_B else None)


def _run(name: str, workers: int, size: int, network: str, timeout: float, iterations: int) -> Row:
    """So many steps of every environment, from the first reset on; none of it warms up."""
    num_envs = workers * size
    need = {ENVPOOL: _MJDATA_BYTES, ASYNC: _PROCESS_BYTES, OBJECTS: 2 * _MJDATA_BYTES}
    free = available_memory_bytes()
    if need.get(name, 0) * num_envs > 0.9 * free:
        wanted = need[name] * num_envs / 2**30
        return {"skipped": f"needs {wanted:.0f} GiB of memory, {free / 2**30:.0f} GiB are free"}
    torch.set_num_threads(1)
    trim_memory()
    before = memory_bytes()
    try:
        sampler = _make(name, workers, size, network, timeout)
    except ImportError:
        return {"skipped": "not installed"}
    try:
        with Clock(sampler.pids) as clock:
            sampler.run(iterations * num_envs)
        memory = memory_bytes(sampler.pids) - before
    finally:
        sampler.close()
        trim_memory()
    counts = sampler.counts
    return clock.row() | {
        "iterations": iterations,
        "rate": counts.env_steps / clock.seconds,
        "per_receive": counts.env_steps / counts.receives,
        "calls": counts.receives * num_envs / counts.env_steps,
        "memory_mib": memory / 2**20,
        "gaps": counts.gaps[:100],
    }


def _step_times(count: int) -> Row:
    """CPU times of single steps of one gymnasium environment [s]: without other programs' time."""
    import time

    env = make_env()
    env.reset(seed=0)
    actions = np.random.default_rng(0).uniform(-1.0, 1.0, (count, 6)).astype(np.float32)
    times = []
    for action in actions:
        start = time.thread_time()
        truncated = env.step(action)[3]
        times.append(round(time.thread_time() - start, 9))
        if truncated:
            env.reset()
    env.close()
    return {"step_s": times}


def _block_time(block: str, count: int = 200, steps: int = 60) -> Row:
    """CPU time of an environment's step in a worker's block, alone on one CPU [s]."""
    import time

    made = BLOCKS[block](count)
    out: Arrays = {
        name: np.zeros((count, *shape), dtype) for name, (dtype, shape) in FIELDS.items()
    }
    made.reset(0, np.ones(count), out)
    rng = np.random.default_rng(0)
    times = []
    for _ in range(steps):
        out["actions"][:] = rng.uniform(-1, 1, (count, 6))
        start = time.process_time()
        made.step(out)
        times.append((time.process_time() - start) / count)
    return {"env_s": median(times)}


def _policy_times(network: str, sizes: list[int], quick: bool) -> Row:
    """Times of policy calls by batch size [s], on one thread."""
    torch.set_num_threads(1)
    policy = Policy(_hidden(network))
    times = []
    for size in sizes:
        obs = np.zeros((size, 20))
        costly = size * policy.megabytes > 1e4
        repeats = 3 if costly or quick else 30
        times.append(median(milliseconds(partial(policy, obs), repeats=repeats)) / 1e3)
    return {"sizes": sizes, "call_s": times, "megabytes": policy.megabytes}


# ---- the model -----------------------------------------------------------------------------------


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


def models(results: Results[Any], what: str) -> dict[str, Model]:
    """By network."""
    units = results.part("units").set_index("what")["env_s"]
    return {
        row.network: Model(
            float(units[what]), tuple(row.sizes), tuple(row.call_s), available_cpus()
        )
        for row in results.part("policy").itertuples()
    }


# ---- the report ----------------------------------------------------------------------------------


class _Reader:
    """Rates by contestant, and their ratios."""

    def __init__(self, results: Results[Any], config: Config):
        self.results, self.config = results, config

    def rates(self, part: str, name: str, size: int, **about: Any) -> list[float]:
        about = {"workers": self.config.workers, "network": SMALL, "timeout": NONE} | about
        return self.results.rounds(part, "rate", contestant=name, B=size, **about)

    def ratio(
        self, part: str, one: tuple[str, float], other: tuple[str, float], size: int, **about: Any
    ) -> Ratio:
        return compare(
            self.rates(part, one[0], size, timeout=one[1], **about),
            self.rates(part, other[0], size, timeout=other[1], **about),
        )


def report(results: Results[Any], config: Config) -> Report:
    """Tables, claims and pictures."""
    reader = _Reader(results, config)
    short, small, large = (
        config.timeout[0],
        min(config.envs_per_worker),
        max(config.envs_per_worker),
    )
    timeout = {b: reader.ratio("runs", (QUEUES, short), (QUEUES, NONE), b) for b in (small, large)}
    made = Report()
    made.claims = list(_claims(reader, timeout))
    by_b = {
        network: reader.ratio(
            "runs" if network == SMALL else "networks",
            (BY_B, NONE),
            (STEP, NONE),
            large,
            network=network,
        )
        for network in config.networks
    }
    policies = results.part("policy").set_index("network")
    biggest = config.networks[-1]
    best = max(by_b, key=lambda network: by_b[network].mean)
    runs, scale = results.part("runs"), results.part("scale").set_index("contestant")
    ours = runs[runs.contestant.isin(OURS) & (large == runs.B)]
    theirs = runs[(runs.contestant == QUEUES) & (large == runs.B)]
    units = results.part("units").set_index("what")["env_s"]
    steps = np.asarray(results.part("steps").step_s[0])
    made.values = {
        "num_envs": config.workers * large,
        "small_envs": config.workers * small,
        "cpus": available_cpus(),
        "short": short,
        "timeout_large": timeout[large],
        "timeout_small": timeout[small],
        "by_b_small_network": by_b[SMALL],
        "by_b_best": by_b[best],
        "best_mb": policies.megabytes[best],
        "biggest_mb": policies.megabytes[biggest],
        "ours_over_queues": reader.ratio("runs", (STEP, NONE), (QUEUES, NONE), large),
        "rollout_over_queues": reader.ratio("runs", (ROLLOUT, NONE), (QUEUES, NONE), small),
        "our_mib": (ours.memory_mib.min(), ours.memory_mib.max()),
        "their_mib": theirs.memory_mib.median(),
        "arrived": _arrived(runs, small, short),
        "steal": runs.steal.max(),
        "others": runs.others.max(),
        "env_us": {name: 1e6 * value for name, value in units.items()},
        "step_us": (1e6 * steps.mean(), 1e6 * steps.std()),
        "runs": {b: _runs_table(reader, b) for b in config.envs_per_worker},
        "networks": _networks_table(reader),
        "workers": _workers_table(reader),
        "objects": _objects_table(reader),
        "scale": table(
            ("", "environments", "steps/s", "memory [MiB]"),
            [_scale_row(name, row) for name, row in scale.iterrows()],
        ),
        "spread": _spread_table(reader, steps),
        "rounds": config.rounds,
    }
    _draw(made, reader, steps)
    return made


def _claims(reader: _Reader, timeout: dict[int, Ratio]) -> Iterator[Claim]:
    config = reader.config
    small, large = min(config.envs_per_worker), max(config.envs_per_worker)
    short = config.timeout[0]
    yield Claim(
        f"document: with {config.workers * small:,} environments waiting for all is faster",
        f"no timeout / {short:g} s, steps/s",
        "more",
        reader.ratio("runs", (QUEUES, NONE), (QUEUES, short), small),
    )
    if 0.1 in config.timeout:
        yield Claim(
            f"document: with {config.workers * large:,} a timeout of {short:g} s is faster than "
            "0.1 s (314 s, 342 s: 1.09 times)",
            f"{short:g} s / 0.1 s, steps/s",
            "more",
            reader.ratio("runs", (QUEUES, short), (QUEUES, 0.1), large),
        )
    network = config.networks[-1]
    for size in (small, large):
        yield Claim(
            f"document: with a large network the timeout pays; {config.workers * size:,} "
            f"environments, {Policy(_hidden(network)).megabytes:.0f} MB",
            f"{short:g} s / no timeout, steps/s",
            "more",
            reader.ratio("networks", (QUEUES, short), (QUEUES, NONE), size, network=network),
        )
    for network, expected in ((SMALL, "equal"), (config.networks[1], "more")):
        part = "runs" if network == SMALL else "networks"
        yield Claim(
            f"ours: overlap by batches of B {'pays' if expected == 'more' else 'does not matter'} "
            f"with {config.workers * large:,} environments and hidden layers {network}",
            "send/recv by B / step, steps/s",
            "more" if expected == "more" else "equal",
            reader.ratio(part, (BY_B, NONE), (STEP, NONE), large, network=network),
        )
    for size in (small, large):
        yield Claim(
            f"ours: step is faster than the document's program, {config.workers * size:,}",
            "step / queues without timeout, steps/s",
            "more",
            reader.ratio("runs", (STEP, NONE), (QUEUES, NONE), size),
        )


def _arrived(frame: Any, size: int, timeout: float) -> float:
    """Workers whose results come together."""
    rows = frame[(frame.contestant == QUEUES) & (size == frame.B) & (frame.timeout == timeout)]
    return float(rows.per_receive.mean() / size)


def label(name: str, timeout: float) -> str:
    """A contestant with its timeout, if it can have one."""
    if name in (QUEUES, SEND_RECV):
        per = " in all" if name == SEND_RECV else ""
        return f"{name}, {f'{timeout:g} s{per}' if timeout else 'waits for all'}"
    return name


def _runs_table(reader: _Reader, size: int) -> str:
    config, frame = reader.config, reader.results.part("runs")
    rows = []
    for (name, timeout), group in frame[size == frame.B].groupby(
        ["contestant", "timeout"], sort=False
    ):
        group = group.sort_values("round")
        seconds = 1_000 * config.workers * size / group.rate
        document = DOCUMENT.get(timeout) if (name, size) == (QUEUES, 4_000) else None
        baseline = reader.rates("runs", QUEUES, size)
        rows.append(
            (
                f"**{label(name, timeout)}**" if name in OURS else label(name, timeout),
                document if document is not None else "",
                spread(list(seconds)),
                compare(list(group.rate), baseline).mark,
                number(group.per_receive.mean() / size),
                number(group.calls.mean()),
                f"{group.cpus.mean():.2f} / {group.others.mean():.2f} / {group.steal.mean():.2f}",
                f"{group.memory_mib.max():.0f}",
            )
        )
    columns = (
        f"{config.workers} × {size:,}, {SMALL}", "document [s]", "1,000 iterations [s]",
        "times queues that wait", "workers' results per receive", "policy calls per iteration",
        "CPUs: mine / others' / stolen", "memory [MiB]",
    )  # fmt: skip
    return table(columns, rows)


def _networks_table(reader: _Reader) -> str:
    config, rows = reader.config, []
    ours, theirs = models(reader.results, "ours"), models(reader.results, "rows")
    short = config.timeout[0]
    for size in config.envs_per_worker:
        num_envs = config.workers * size
        for network in config.networks:
            part = "runs" if network == SMALL else "networks"
            model = ours[network]
            step = median(reader.rates(part, STEP, size, network=network))
            by_b = median(reader.rates(part, BY_B, size, network=network))
            queues = median(reader.rates(part, QUEUES, size, network=network))
            rows.append(
                (
                    f"{num_envs:,}",
                    f"{network} ({number(Policy(_hidden(network)).megabytes)} MB)",
                    f"{1e3 * model.call(num_envs):,.3g}",
                    reader.ratio(part, (QUEUES, short), (QUEUES, NONE), size, network=network).mark,
                    f"{queues:,.0f} "
                    f"({num_envs / theirs[network].waiting(num_envs, config.workers):,.0f})",
                    f"{step:,.0f} ({num_envs / model.waiting(num_envs, model.cpus):,.0f})",
                    f"{by_b:,.0f} ({num_envs / model.overlapping(num_envs, size):,.0f})",
                    reader.ratio(part, (BY_B, NONE), (STEP, NONE), size, network=network).mark,
                )
            )
    columns = (
        "environments", "hidden layers", "policy call for all [ms]",
        f"queues: {short:g} s / waiting", "queues, waiting: steps/s (model)",
        "step: steps/s (model)", "send/recv by B: steps/s (model)", "by B / step",
    )  # fmt: skip
    return table(columns, rows)


def _workers_table(reader: _Reader) -> str:
    frame, short, rows = reader.results.part("workers"), reader.config.timeout[0], []
    for (size, workers), group in frame.groupby(["B", "workers"], sort=False):
        partial_ones = group[group.timeout == short]
        rows.append(
            (
                workers,
                f"{size:,}",
                f"{partial_ones.per_receive.mean() / size:.1f}",
                f"{group.rate[group.timeout == NONE].median():,.0f}",
                reader.ratio(
                    "workers", (QUEUES, short), (QUEUES, NONE), size, workers=workers
                ).mark,
            )
        )
    columns = ("workers", "B", f"results per receive, {short:g} s", "waiting: steps/s",
               f"{short:g} s / waiting")  # fmt: skip
    return table(columns, rows)


def _objects_table(reader: _Reader) -> str:
    frame, rows = reader.results.part("objects"), []
    size = reader.config.objects_per_worker
    for name, group in frame.groupby("contestant", sort=False):
        if "skipped" in group and group["skipped"].notna().any():
            rows.append((name, group["skipped"].dropna().iloc[0], ""))
            continue
        rates = list(group.sort_values("round").rate)
        rows.append((name, spread(rates), f"{group.memory_mib.max():,.0f}"))
    return table((f"{reader.config.workers} × {size:,}", "steps/s", "memory [MiB]"), rows)


def _scale_row(name: Any, row: Any) -> tuple[object, ...]:
    count = f"{row.workers * row.B:,}"
    if isinstance(row.get("skipped"), str):
        return name, count, row.skipped, None
    return name, count, f"{row.rate:,.0f}", f"{row.memory_mib:,.0f}"


def _gaps(reader: _Reader, size: int) -> list[float]:
    frame = reader.results.part("runs")
    frame = frame[(frame.contestant == QUEUES) & (size == frame.B) & (frame.timeout == NONE)]
    return [gap for gaps in frame.gaps for gap in gaps]


def _spread_table(reader: _Reader, steps: Any) -> str:
    rows = []
    for size in reader.config.envs_per_worker:
        independent = _RANGE_OF_8 * steps.std() * size**0.5
        rows.append(
            (
                f"{size:,}",
                number(1e3 * size * steps.mean()),
                number(1e3 * independent),
                f"{independent / (size * steps.mean()):.1%}",
                spread(_gaps(reader, size), 1e3),
            )
        )
    columns = ("B", "a worker's steps [ms]", "slowest − fastest, independent steps [ms]",
               "share of its steps", "measured in the workers [ms]")  # fmt: skip
    return table(columns, rows)


# ---- pictures ------------------------------------------------------------------------------------


def _draw(made: Report, reader: _Reader, steps: Any) -> None:
    config = reader.config
    frame = reader.results.part("runs")
    figure, axes = pictures.panels(
        len(config.envs_per_worker), size=(11, 3.6), columns=2, sharey=True
    )
    for each, size in zip(axes, config.envs_per_worker, strict=True):
        groups = frame[size == frame.B].groupby(["contestant", "timeout"], sort=False)
        rows = {label(*key): list(group.rate / 1e3) for key, group in groups}
        paint = {label(*key): COLOURS[0 if key[0] in OURS else 1] for key, _ in groups}
        pictures.points(each, rows, colour=paint, label="thousand environment steps per second")
        each.set_title(f"{config.workers} × {size:,} environments", loc="left", fontsize=10)
    made.pictures["rates"] = (
        figure,
        "Sampling rates: medians and quartiles of rounds. Blue: ours; red: the document's design.",
    )
    figure, (left, right) = pictures.panels(2, size=(11, 3.8), columns=2)
    _draw_gains(left, reader)
    _draw_spread(right, reader, steps)
    made.pictures["why"] = (
        figure,
        "Left: what partial batches gain over waiting for all, by the policy's size; dashed: the "
        "model. Right: how far the slowest of 8 workers is behind the fastest, as a share of its "
        "steps: it falls with the number of environments.",
    )


def _draw_gains(axes: Any, reader: _Reader) -> None:
    config = reader.config
    large, short = max(config.envs_per_worker), config.timeout[0]
    num_envs = config.workers * large
    series: dict[str, dict[float, list[float]]] = {"send/recv by B / step": {}, "the model": {}}
    series[f"queues: {short:g} s / waiting"] = {}
    by_network = models(reader.results, "ours")
    for network in config.networks:
        part, x = "runs" if network == SMALL else "networks", Policy(_hidden(network)).megabytes
        for name, (one, other) in {
            "send/recv by B / step": ((BY_B, NONE), (STEP, NONE)),
            f"queues: {short:g} s / waiting": ((QUEUES, short), (QUEUES, NONE)),
        }.items():
            pair = [
                reader.rates(part, c, large, network=network, timeout=t) for c, t in (one, other)
            ]
            series[name][x] = [a / b for a, b in zip(*pair, strict=True)]
        model = by_network[network]
        gain = model.waiting(num_envs, model.cpus) / model.overlapping(num_envs, large)
        series["the model"][x] = [gain]
    pictures.lines(
        axes,
        series,
        styles={"the model": "--"},
        colour={"the model": pictures.GREY, f"queues: {short:g} s / waiting": COLOURS[1]},
        log="x",
        xlabel="parameters of the policy [MB]",
        ylabel=f"times as fast, {num_envs:,} environments",
    )
    axes.axhline(1.0, color="black", linewidth=0.6)


def _draw_spread(axes: Any, reader: _Reader, steps: Any) -> None:
    rng = np.random.default_rng(0)
    resampled: dict[float, list[float]] = {}
    for size in (1, 4, 20, 100, 400, 1_000, 4_000):
        sums = np.array([rng.choice(steps, (8, size)).sum(1) for _ in range(30)])
        resampled[size] = list(100 * np.ptp(sums, axis=1) / (size * steps.mean()))
    measured: dict[float, list[float]] = {
        size: [100 * gap / (size * steps.mean()) for gap in _gaps(reader, size)]
        for size in reader.config.envs_per_worker
    }
    pictures.lines(
        axes,
        {"independent steps": resampled, "measured": measured},
        log="xy",
        xlabel="environments per worker, B",
        ylabel="slowest − fastest worker [% of its steps]",
    )
