"""Does a timeout on the result queue help synchronous sampling? The experiment of document 003.

Worker processes with shared memory and queues, as the document has them, beside pyfastenv's
barrier, send/recv and rollout, on one machine in one run. See docs/async.md.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from pyfastenv.experiments.measure import Summary, available_memory_bytes, summary
from pyfastenv.experiments.queue_workers import make_env
from pyfastenv.experiments.samplers import (
    NUM_WORKERS,
    Policy,
    QueueSampler,
    RolloutSampler,
    Sampler,
    SendRecvSampler,
    StepSampler,
    clock,
    envpool,
    gymnasium_async,
    our_envs,
    trim_memory,
)
from pyfastenv.experiments.study import Row, Study, spread, table
from pyfastenv.training.plots import COLOURS
from pyfastenv.vector.cpus import available_cpus

if TYPE_CHECKING:
    from matplotlib.axes import Axes

TIMEOUTS = (0.0001, 0.1, None)
NETWORKS = {"small": (64, 64), "large": (1024, 1024, 1024)}
DOCUMENT = {0.0001: 314.17, 0.1: 341.86}  # [s] for 1,000 iterations of 8 × 4,000 environments
QUEUE_GYMNASIUM, QUEUE_OURS = "queues, gymnasium", "queues, our physics"
SEND_RECV, BLOCKWISE, STEP, ROLLOUT = "send/recv", "send/recv by B", "step", "rollout"
ASYNC, ENVPOOL = "gymnasium Async", "EnvPool"
OURS = (STEP, SEND_RECV, BLOCKWISE, ROLLOUT)
# which of ours answers to which baseline, besides the best of ours
LIKE = {QUEUE_GYMNASIUM: SEND_RECV, QUEUE_OURS: SEND_RECV, ASYNC: STEP, ENVPOOL: STEP}
_MJDATA_BYTES = 460 * 1024  # of one HalfCheetah
_RELATIVE_RANGE_OF_8 = 2.85  # expected range of 8 standard normals


@dataclass(frozen=True)
class Group:
    """A size, a network and where it computes: the contestants in it are compared."""

    envs_per_worker: int
    network: str
    device: str = "cpu"

    @property
    def num_envs(self) -> int:
        """Environments of all workers."""
        return NUM_WORKERS * self.envs_per_worker

    @property
    def name(self) -> str:
        """For headings and keys."""
        where = "" if self.device == "cpu" else " on the GPU"
        return f"{self.num_envs:,} envs, {self.network} network{where}"


@dataclass(frozen=True)
class Cell:
    """A contestant's result in a group; ``row`` is :func:`clock`'s or ``{"skipped": why}``."""

    group: Group
    sampler: str
    timeout: float | None
    row: Row

    @property
    def name(self) -> str:
        """With the timeout, for those that have one."""
        has_timeout = self.sampler in (QUEUE_GYMNASIUM, QUEUE_OURS, SEND_RECV)
        return self.sampler + (f", {_timeout(self.timeout)}" if has_timeout else "")

    @property
    def rate(self) -> Summary:
        """Environment steps/s."""
        return summary(self.row["rates"])


def run(study: Study) -> Path:
    """Measures, draws and writes the report."""
    with _one_thread():
        cells = [cell for group in _groups(study.quick) for cell in _measure(study, group)]
        steps = study.measure("step times", partial(_step_times, 3_000 if study.quick else 20_000))
        policy = study.measure("policy times", partial(_policy_times, study.quick))
    measured = [cell for cell in cells if "skipped" not in cell.row]
    _draw_rates(study, measured)
    _draw_receives(study, measured)
    _draw_spread(study, measured, steps["seconds"])
    _draw_policy(study, policy)
    sections = [("What is measured", _setting(study.quick))]
    for group in dict.fromkeys(cell.group for cell in cells):
        sections.append((group.name, _table([cell for cell in cells if cell.group == group])))
    sections.append(("Spread of sums", _spread_text(measured, steps["seconds"])))
    title = "Does a timeout on the result queue help synchronous sampling?"
    return study.report(title, sections, verdict(cells))


# ---- measurements ----------------------------------------------------------------------------


def _groups(quick: bool) -> list[Group]:
    groups = [Group(20, "small"), Group(20, "large"), Group(4_000, "small")]
    if not quick:
        groups += [Group(4_000, "large"), Group(20, "large", "cuda"), Group(4_000, "large", "cuda")]
    return groups


def _measure(study: Study, group: Group) -> list[Cell]:
    """All contestants of a group, round by round (machines drift); the rounds are put together."""
    contestants = list(_contestants(group, study.quick))
    rounds = 1 if study.quick else 3
    rows: dict[tuple[str, float | None], list[Row]] = {}
    for r in range(rounds):
        for sampler, timeout, num_envs, make in contestants:
            small = num_envs < 1_000
            key = f"{group.name}/{Cell(group, sampler, timeout, {}).name}/round {r}"
            measure = partial(
                _clock,
                make,
                need=_memory_need(sampler, num_envs),
                num_envs=num_envs,
                chunk=_chunk(group, study.quick),
                seconds=(0.3 if small else 0.0) if study.quick else 4.0,
                min_chunks=3 if small else 2,
                warm_up=small or not study.quick,
            )
            row = study.measure(key, measure, needs_cuda=group.device == "cuda")
            rows.setdefault((sampler, timeout), []).append(row)
    return [Cell(group, *which, _together(parts)) for which, parts in rows.items()]


def _chunk(group: Group, quick: bool) -> int:
    """Iterations per timing (and of a rollout)."""
    if group.num_envs >= 1_000:
        return 1 if quick else 2
    return 20 if not quick else 4 if group.network == "large" else 10


Contestant = tuple[str, float | None, int, Callable[[], Sampler]]


def _contestants(group: Group, quick: bool) -> Iterator[Contestant]:
    size, num_envs = group.envs_per_worker, group.num_envs
    hidden, device = NETWORKS[group.network], group.device

    def policy(obs_size: int = 20) -> Policy:
        return Policy(hidden, device, obs_size)

    for timeout in TIMEOUTS:
        for sampler, block in ((QUEUE_GYMNASIUM, "gymnasium"), (QUEUE_OURS, "pyfastenv")):
            make = partial(_make_queue, policy, size, block, timeout)
            yield sampler, timeout, num_envs, make
        yield SEND_RECV, timeout, num_envs, partial(_make_send_recv, policy, num_envs, timeout)
    yield BLOCKWISE, None, num_envs, lambda: SendRecvSampler(policy(), num_envs, None, size)
    yield STEP, None, num_envs, lambda: StepSampler(policy(), our_envs(num_envs))
    chunk = _chunk(group, quick)
    yield ROLLOUT, None, num_envs, lambda: RolloutSampler(policy(), num_envs, chunk)
    if quick and group != Group(20, "small"):
        return  # gymnasium Async and EnvPool are slow to make
    if size == 20:  # a process for each environment
        count = 16 if quick else num_envs
        yield ASYNC, None, count, lambda: StepSampler(policy(), gymnasium_async(count))
    yield ENVPOOL, None, num_envs, lambda: _make_envpool(policy(17), num_envs)


def _make_queue(
    policy: Callable[[], Policy], size: int, block: str, timeout: float | None
) -> Sampler:
    return QueueSampler(policy(), size, block, timeout)


def _make_send_recv(policy: Callable[[], Policy], num_envs: int, timeout: float | None) -> Sampler:
    return SendRecvSampler(policy(), num_envs, timeout)


def _make_envpool(policy: Policy, num_envs: int) -> Sampler:
    return StepSampler(policy, envpool(num_envs), np.float64)


def _memory_need(sampler: str, num_envs: int) -> int:
    return {ENVPOOL: _MJDATA_BYTES, ASYNC: 40 * 2**20}.get(sampler, 0) * num_envs


def _clock(make: Callable[[], Sampler], *, need: int, **options: Any) -> Row:
    free = available_memory_bytes()
    if need > 0.8 * free:
        return {"skipped": f"needs {need / 2**30:.0f} GiB, {free / 2**30:.0f} GiB are free"}
    try:
        return clock(make, **options)
    except ImportError:
        return {"skipped": "not installed"}
    finally:
        trim_memory()  # of EnvPool's 32,000 mjData


def _together(rows: Sequence[Row]) -> Row:
    skipped = [row for row in rows if "skipped" in row]
    if skipped:
        return skipped[0]
    merged: Row = {
        name: float(np.mean([row[name] for row in rows]))
        for name in ("num_envs", "per_receive", "calls", "cpus", "others")
    }
    merged["memory_mib"] = max(row["memory_mib"] for row in rows)
    for name in ("rates", "gaps"):
        merged[name] = [value for row in rows for value in row[name]]
    return merged


def _step_times(count: int) -> Row:
    """CPU times of single steps of one gymnasium environment [s]: without other programs' time."""
    env = make_env()
    env.reset(seed=0)
    actions = np.random.default_rng(0).uniform(-1.0, 1.0, (count, 6)).astype(np.float32)
    seconds = []
    for action in actions:
        start = time.thread_time()
        truncated = env.step(action)[3]
        seconds.append(round(time.thread_time() - start, 9))
        if truncated:
            env.reset()
    env.close()
    return {"seconds": seconds}


def _policy_times(quick: bool) -> Row:
    """Times of policy calls [s], by network and batch size."""
    sizes = (
        (1, 4, 20, 80, 160, 1_000, 4_000) if quick else (1, 4, 20, 80, 160, 1_000, 4_000, 32_000)
    )
    result: Row = {"sizes": list(sizes)}
    for network, hidden in NETWORKS.items():
        policy = Policy(hidden)
        result[network] = []
        for size in sizes:
            obs = np.zeros((size, 20))
            policy(obs)
            times: list[float] = []
            end = time.perf_counter() + 0.15
            while len(times) < 3 or time.perf_counter() < end:
                start = time.perf_counter()
                policy(obs)
                times.append(time.perf_counter() - start)
            result[network].append(dict(summary(times)))
    return result


@contextmanager
def _one_thread() -> Iterator[None]:
    """The policy has one CPU, as it would have a GPU: it must not take the environments'."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


# ---- the verdict -----------------------------------------------------------------------------


def compare(a: Cell, b: Cell) -> int:
    """1 if a is faster than b, -1 if slower, 0 if the quartiles overlap."""
    if a.rate["q1"] > b.rate["q3"]:
        return 1
    return -1 if a.rate["q3"] < b.rate["q1"] else 0


def verdict(cells: Sequence[Cell]) -> str:
    """What the numbers say of the document's claims, of ours, and what to do.

    Args:
        cells: All results.
    """
    groups = list(dict.fromkeys(cell.group for cell in cells))
    paragraphs = ["**The document's claims, in its own design (queues, gymnasium).**"]
    paragraphs += [f"- {_claim(cells, group)}" for group in groups]
    measured = [cell for cell in cells if "skipped" not in cell.row]
    paragraphs += ["", "**Ours beside the baselines.**", *_ours(measured)]
    paragraphs += ["", "**What to do.**"]
    paragraphs += [f"- {_advice(measured, group)}" for group in groups if _in(measured, group)]
    if any(map(_disturbed, measured)):
        worst = max(cell.row["others"] for cell in measured)
        paragraphs += [
            "",
            f"**Other programs took up to {worst:.1f} of {available_cpus()} CPUs meanwhile**, and "
            "contestants with more processes get a larger share of the rest (column *CPUs*). Rates "
            "are not comparable then, steps per CPU second roughly; measure again on a quiet "
            "machine.",
        ]
    return "\n".join(paragraphs)


def _in(cells: Sequence[Cell], group: Group) -> list[Cell]:
    return [cell for cell in cells if cell.group == group and "skipped" not in cell.row]


def _find(cells: Sequence[Cell], group: Group, sampler: str, timeout: float | None) -> Cell | None:
    for cell in _in(cells, group):
        if (cell.sampler, cell.timeout) == (sampler, timeout):
            return cell
    return None


def _claim(cells: Sequence[Cell], group: Group) -> str:
    """Does the short timeout help in the document's design?"""
    short = _find(cells, group, QUEUE_GYMNASIUM, TIMEOUTS[0])
    others = [_find(cells, group, QUEUE_GYMNASIUM, timeout) for timeout in TIMEOUTS[1:]]
    waiting = [cell for cell in others if cell is not None]
    if short is None or not waiting:
        return f"{group.name}: not measured."
    best = max(waiting, key=lambda cell: cell.rate["median"])
    gain = short.rate["median"] / best.rate["median"] - 1
    found = compare(short, best)
    pays = group.network == "large" or group.envs_per_worker >= 4_000
    expected = "the timeout of 0.0001 s pays" if pays else "waiting for all is faster"
    if _disturbed(short) or _disturbed(best):
        outcome = "**cannot be told** here: other programs took CPUs meanwhile"
    elif found == 0:
        outcome = "**cannot be told** here: the quartiles overlap"
    else:
        outcome = "**holds**" if (found == 1) == pays else "**does not hold**"
    of = NUM_WORKERS
    arrived = (cell.row["per_receive"] / group.envs_per_worker for cell in (short, best))
    first, second = arrived
    return (
        f"{group.name}: the document says that {expected}; this {outcome} (0.0001 s: {gain:+.0%} "
        f"beside {_timeout(best.timeout)}; {first:.1f} and {second:.1f} of {of} workers' results "
        "per receive)."
    )


def _ours(cells: Sequence[Cell]) -> list[str]:
    """Where ours is not ahead, and why.

    Compared are each baseline with our best and with what does the same, and our rollout with the
    best baseline.
    """
    pairs: list[tuple[Cell, Cell]] = []
    for cell in cells:
        if cell.sampler == ROLLOUT:
            baselines = [c for c in cells if c.group == cell.group and c.sampler not in OURS]
            if baselines:
                pairs.append((cell, max(baselines, key=lambda c: c.rate["median"])))
        elif cell.sampler not in OURS:
            best = _best(cells, cell.group)
            like = _find(cells, cell.group, LIKE[cell.sampler], cell.timeout)
            pairs += [(ours, cell) for ours in (best, like) if ours is not None]
    different = [pair for i, pair in enumerate(pairs) if pair not in pairs[:i]]
    lines = []
    for ours, theirs in different:
        result = compare(ours, theirs)
        if result != 1:
            word = "behind" if result == -1 else "not clearly ahead of"
            factor = ours.rate["median"] / theirs.rate["median"]
            lines.append(
                f"- {theirs.group.name}: our {ours.name} is {word} {theirs.name} "
                f"({factor:.2f} times its rate): {_why(ours, theirs)}."
            )
    count = len(different)
    if count == 0:
        return ["- Nothing was compared."]
    if not lines:
        return [f"- Ours is ahead in all {count} comparisons (quartiles apart)."]
    return [f"- Ours is ahead in {count - len(lines)} of {count} comparisons. Not in:", *lines]


def _why(ours: Cell, theirs: Cell) -> str:
    if _disturbed(ours) and ours.row["cpus"] < 0.9 * theirs.row["cpus"]:
        return (
            f"other programs ran, it got {ours.row['cpus']:.1f} CPUs, the other "
            f"{theirs.row['cpus']:.1f}; per CPU second it makes "
            f"{per_cpu(ours) / per_cpu(theirs):.1f} times as many steps"
        )
    if ours.row["calls"] > 1.5 * theirs.row["calls"]:
        return (
            f"it calls the policy {ours.row['calls']:.1f} times per iteration, the other "
            f"{theirs.row['calls']:.1f} times"
        )
    if ours.sampler == ROLLOUT and ours.group.network == "large":
        return "the core evaluates a large network slower than torch does in one large batch"
    if ours.group.network == "large":
        return "the policy takes nearly all the time, whoever steps the environments"
    return "the numbers here do not tell"


def per_cpu(cell: Cell) -> float:
    """Environment steps per CPU second."""
    return float(cell.rate["median"] / max(cell.row["cpus"], 1e-9))


def _best(cells: Sequence[Cell], group: Group) -> Cell | None:
    ours = [cell for cell in _in(cells, group) if cell.sampler in OURS]
    return max(ours, key=lambda cell: cell.rate["median"], default=None)


def _advice(cells: Sequence[Cell], group: Group) -> str:
    best = _best(cells, group)
    if best is None:
        return f"{group.name}: ours was not measured."
    text = f"{group.name}: use `{best.name}` ({best.rate['median']:,.0f} steps/s)"
    if _disturbed(best):
        text = f"(disturbed) {text}"
    step = _find(cells, group, STEP, None)
    if step is None or best is step:
        return text + "; nothing that avoids the barrier was faster."
    words = {1: "clearly faster than", 0: "not clearly faster than", -1: "slower than"}
    ratio = best.rate["median"] / step.rate["median"]
    return text + f"; it is {words[compare(best, step)]} the plain `step` ({ratio:.2f} times)."


def _disturbed(cell: Cell) -> bool:
    """Whether other programs took more than a tenth of the CPUs."""
    return bool(cell.row["others"] > 0.1 * available_cpus())


# ---- the report ------------------------------------------------------------------------------


def _timeout(timeout: float | None) -> str:
    return "no timeout" if timeout is None else f"{timeout:g} s"


def _setting(quick: bool) -> str:
    short = (
        "Quick: a few iterations of each, at 32,000 environments without warming up; "
        "gymnasium Async with 16 processes. "
        if quick
        else ""
    )
    return (
        f"{NUM_WORKERS} workers × B environments of HalfCheetahDir-v5, horizon 100, and a Gaussian "
        f"tanh policy: small {NETWORKS['small']} or large {NETWORKS['large']}, on one CPU thread. "
        f"{short}*1,000 iterations* is the measured time per iteration (one step of every "
        "environment) times 1,000; the document ran all 1,000. Rates are medians [quartiles] of "
        "timings after some steps that warm up.\n\n"
        f"- **{QUEUE_GYMNASIUM}**: the document's design, written anew: processes, shared memory, "
        "queues. Each worker has one mjModel and mjData and rows of state for its B environments "
        "(an mjData each would need some 15 GB at 32,000), which favours it. Every environment "
        "gets its task; results are copied as in the document, then dropped.\n"
        f"- **{QUEUE_OURS}**: the same with our physics, one thread per worker: what remains is "
        "the cost of processes and queues.\n"
        f"- **{STEP}**, **{SEND_RECV}**, **{BLOCKWISE}** (always B results at a time, no timeout), "
        f"**{ROLLOUT}**: ours, on {available_cpus()} threads, float32 observations, no infos. In "
        "`rollout` the policy is in the core, so a *receive* is a whole batch.\n"
        f"- **{ASYNC}** has a process per environment, **{ENVPOOL}** runs HalfCheetah-v5: for "
        "scale.\n\n*Memory* is what the contestant added, its processes included (shared pages "
        "counted once), at the end of its run. *CPUs* is what it got on average."
    )


def _table(cells: Sequence[Cell]) -> str:
    columns = (
        "", "steps/s", "steps per CPU second", "CPUs", "others' CPUs",
        "1,000 iterations [s]", "document [s]", "results per receive", "policy calls per iteration",
        "memory [MiB]",
    )  # fmt: skip
    rows: list[list[str]] = []
    for cell in cells:
        row, group = cell.row, cell.group
        name = f"**{cell.name}**" if cell.sampler in OURS else cell.name
        if "skipped" in row:
            rows.append([name, row["skipped"], *[""] * 8])
            continue
        if row["num_envs"] != group.num_envs:
            name += f" ({row['num_envs']:,.0f} envs)"
        theirs = ""
        if cell.sampler == QUEUE_GYMNASIUM and (group.num_envs, group.network) == (32_000, "small"):
            theirs = f"{DOCUMENT[cell.timeout]}" if cell.timeout is not None else "not measured"
        seconds = 1_000 * row["num_envs"] / cell.rate["median"]
        rows.append(
            [
                name,
                _spread(cell.rate),
                f"{per_cpu(cell):,.0f}",
                f"{row['cpus']:.2f}",
                f"{row['others']:.2f}",
                f"{seconds:,.1f}",
                theirs,
                f"{row['per_receive']:,.0f}",
                f"{row['calls']:.2f}",
                f"{row['memory_mib']:,.0f}",
            ]
        )
    return table(columns, rows)


def _spread(values: Summary, scale: float = 1.0, form: str = ",.0f") -> str:
    scaled = Summary(
        median=scale * values["median"], q1=scale * values["q1"], q3=scale * values["q3"]
    )
    return spread(scaled, form)


def _spread_text(cells: Sequence[Cell], seconds: Sequence[float]) -> str:
    mean, sd = float(np.mean(seconds)), float(np.std(seconds))
    lines = [
        f"One environment step of gymnasium takes {mean * 1e6:.1f} ± {sd * 1e6:.1f} µs (CPU "
        "time, mean ± s.d.). The s.d. of a sum of B independent steps grows as √B, as the "
        "document says. But its mean grows as B: the share of an iteration that waiting for "
        "the slowest costs falls as 1/√B. So this is no reason for a timeout to pay with "
        "more environments."
    ]
    for cell in _queues_that_waited(cells):
        gap, size = summary(cell.row["gaps"]), cell.group.envs_per_worker
        expected = _RELATIVE_RANGE_OF_8 * sd * size**0.5
        lines.append(
            f"- B = {size:,}: slowest minus fastest of {NUM_WORKERS} workers, measured: "
            f"{_spread(gap, 1e3, '.2f')} ms"
            f"; independent steps would give {expected * 1e3:.2f} ms. Beyond that it is the "
            "operating system's scheduling, of more workers than CPUs or of other programs."
        )
    return "\n".join(lines)


def _queues_that_waited(cells: Sequence[Cell]) -> list[Cell]:
    return [
        cell
        for cell in cells
        if (cell.sampler, cell.timeout, cell.group.network) == (QUEUE_GYMNASIUM, None, "small")
        and cell.row["gaps"]
    ]


# ---- the pictures ----------------------------------------------------------------------------


def _colour(sampler: str) -> str:
    return {
        QUEUE_GYMNASIUM: COLOURS[1], QUEUE_OURS: COLOURS[4], ASYNC: COLOURS[3], ENVPOOL: COLOURS[2],
    }.get(sampler, COLOURS[0])  # fmt: skip


def _plain(axes: Axes) -> None:
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(alpha=0.25, linewidth=0.6)


def _draw_rates(study: Study, cells: Sequence[Cell]) -> None:
    from matplotlib import pyplot

    groups = list(dict.fromkeys(cell.group for cell in cells))
    heights = [len(_in(cells, group)) + 2 for group in groups]
    figure, all_axes = pyplot.subplots(
        len(groups), 1, figsize=(8, 0.24 * sum(heights)), layout="constrained",
        height_ratios=heights, squeeze=False,
    )  # fmt: skip
    for axes, group in zip(all_axes[:, 0], groups, strict=True):
        members = sorted(_in(cells, group), key=lambda cell: cell.rate["median"])
        for y, cell in enumerate(members):
            low, middle, high = (cell.rate[name] / 1e3 for name in ("q1", "median", "q3"))
            axes.barh(y, middle, color=_colour(cell.sampler), height=0.7)
            axes.plot((low, high), (y, y), color="0.2", linewidth=1.2)
            count = cell.row["num_envs"]
            note = "" if count == group.num_envs else f" ({count:.0f} envs)"
            axes.annotate(
                f"{middle:,.1f}{note}", (max(middle, high), y), xytext=(4, 0), va="center",
                textcoords="offset points", fontsize=8,
            )  # fmt: skip
        axes.set_yticks(range(len(members)), [cell.name for cell in members], fontsize=8)
        for label, cell in zip(axes.get_yticklabels(), members, strict=True):
            label.set_color(_colour(cell.sampler))
        axes.set_title(group.name, loc="left", fontsize=10)
        axes.margins(x=0.12)
        _plain(axes)
        axes.grid(visible=False, axis="y")
    all_axes[-1, 0].set_xlabel("thousand environment steps per second")
    caption = (
        "Sampling rates: median, and quartiles as lines. Blue: ours; the others are baselines."
    )
    study.picture("rates", figure, caption)


def _draw_receives(study: Study, cells: Sequence[Cell]) -> None:
    from matplotlib import pyplot

    groups = list(dict.fromkeys(cell.group for cell in cells))
    figure, all_axes = pyplot.subplots(
        1, len(groups), figsize=(3.6 * len(groups), 3.6), layout="constrained", squeeze=False,
        sharey=True,
    )  # fmt: skip
    for axes, group in zip(all_axes[0], groups, strict=True):
        for sampler in (QUEUE_GYMNASIUM, QUEUE_OURS, SEND_RECV):
            found = [_find(cells, group, sampler, timeout) for timeout in TIMEOUTS]
            values = [
                cell.row["per_receive"] / group.envs_per_worker if cell else np.nan
                for cell in found
            ]
            x = range(len(TIMEOUTS))
            style = {QUEUE_GYMNASIUM: "o-", QUEUE_OURS: "s--", SEND_RECV: "^:"}[sampler]
            axes.plot(x, values, style, color=_colour(sampler), label=sampler)
        axes.set_xticks(range(len(TIMEOUTS)), ["0.0001 s", "0.1 s", "none"])
        axes.set_xlabel("timeout")
        axes.set_title(group.name, loc="left", fontsize=9)
        axes.set_yscale("log")
        _plain(axes)
    all_axes[0, 0].set_ylabel(f"results per receive\n[worker's worth of B envs, of {NUM_WORKERS}]")
    all_axes[0, 0].set_yticks(
        (0.001, 0.01, 0.1, 1, NUM_WORKERS), ("0.001", "0.01", "0.1", "1", "8")
    )
    all_axes[0, 0].legend(frameon=False, fontsize=8, loc="center right")
    caption = (
        "How much arrives together. The document saw about 4 workers of 8 with 0.0001 s and all 8 "
        "with 0.1 s at 160 environments. Means of the run."
    )
    study.picture("receives", figure, caption)


def _draw_spread(study: Study, cells: Sequence[Cell], seconds: Sequence[float]) -> None:
    """The document's spread-of-sums figure, from measured times."""
    from matplotlib import pyplot

    rng = np.random.default_rng(0)
    times = np.asarray(seconds)
    sizes = np.array([1, 4, 20, 100, 400, 1_000, 4_000])
    gaps = []
    for size in sizes:  # 60 iterations of 8 workers, each worker's steps drawn anew
        sums = np.array([rng.choice(times, (NUM_WORKERS, size)).sum(1) for _ in range(60)])
        gaps.append(np.ptp(sums, axis=1))
    figure, (left, right) = pyplot.subplots(1, 2, figsize=(9, 3.8), layout="constrained")
    for axes, scale in ((left, np.full(len(sizes), 1e3)), (right, 100 / (sizes * times.mean()))):
        scaled = [gap * factor for gap, factor in zip(gaps, scale, strict=True)]
        q1, middle, q3 = np.quantile(scaled, (0.25, 0.5, 0.75), axis=1)
        axes.errorbar(
            sizes, middle, yerr=(middle - q1, q3 - middle), color=COLOURS[0], marker="o",
            markersize=4, capsize=2, label="independent steps (CPU times, resampled)",
        )  # fmt: skip
        for i, cell in enumerate(_queues_that_waited(cells)):
            size, found = cell.group.envs_per_worker, summary(cell.row["gaps"])
            factor = float(np.interp(size, sizes, scale))
            low, mid, high = (found[name] * factor for name in ("q1", "median", "q3"))
            axes.errorbar(
                size, mid, yerr=([mid - low], [high - mid]), color=COLOURS[1], marker="s",
                capsize=3, linestyle="none", label=None if i else "measured in the 8 workers",
            )  # fmt: skip
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_xlabel("environments per worker, B")
        _plain(axes)
    left.set_ylabel("slowest − fastest worker [ms]")
    left.set_title("The spread of a sum grows as √B …", loc="left", fontsize=10)
    right.set_ylabel("the same [% of a worker's computing time]")
    right.set_title("… but falls relative to the sum", loc="left", fontsize=10)
    left.legend(frameon=False, fontsize=8, loc="upper left")
    caption = "Spread of sums: medians and quartiles of slowest minus fastest of 8 workers."
    study.picture("spread", figure, caption)


def _draw_policy(study: Study, times: Row) -> None:
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(6.5, 3.8), layout="constrained")
    for network, colour in zip(NETWORKS, COLOURS, strict=False):
        values = [
            {name: value * 1e6 / size for name, value in entry.items()}
            for size, entry in zip(times["sizes"], times[network], strict=True)
        ]
        middle = np.array([entry["median"] for entry in values])
        below = middle - [entry["q1"] for entry in values]
        above = np.array([entry["q3"] for entry in values]) - middle
        axes.errorbar(
            times["sizes"], middle, yerr=(below, above), color=colour, marker="o", markersize=4,
            capsize=2,
        )  # fmt: skip
        axes.annotate(
            f"{network} {NETWORKS[network]}", (times["sizes"][-1], middle[-1]), xytext=(0, 8),
            textcoords="offset points", color=colour, ha="right", fontsize=9,
        )  # fmt: skip
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("observations in a policy call")
    axes.set_ylabel("time per observation [µs]")
    axes.set_title("What a partial batch costs", loc="left", fontsize=10)
    _plain(axes)
    caption = (
        "Policy calls, one CPU thread: medians and quartiles. Where a line falls, half a batch "
        "costs more than half; where it is flat, partial batches cost nothing."
    )
    study.picture("policy", figure, caption)
