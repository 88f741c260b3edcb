"""The experiment `placement`: where to sample and where to learn (document 001).

PPO, PPO with a trajectory pool and DDPG, by network size, placement and how often the policy is
copied to where it samples: a textbook's program and ours. Then CartPole-v0 itself: how soon it is
solved, and what a fixed start is worth elsewhere. run() measures, draws and judges.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import torch

import pyfastenv
from pyfastenv.algorithms import ddpg, ppo
from pyfastenv.experiments.measure import Summary, geometric_mean, summary
from pyfastenv.experiments.study import NEEDS_CUDA, Row, Study, table
from pyfastenv.experiments.textbook import (
    PLACEMENTS,
    POOL_SIZE,
    Run,
    TextbookDDPG,
    TextbookPPO,
)
from pyfastenv.training.evaluation import evaluate
from pyfastenv.training.plots import COLOURS
from pyfastenv.vector.cpus import available_cpus

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PPO, POOL, DDPG = "PPO", "PPO + pool", "DDPG"
ALGORITHMS = (PPO, POOL, DDPG)
SIZES = ((64,), (64, 64), (128,), (128, 128), (256,), (256, 256))
THE_SIZE = (128,)  # of the document's first table
OURS = "ours"
OUR_PLACEMENTS = ("cpu", "sample-cpu", "cuda")
# how many episodes (PPO) or steps (DDPG) the textbook samples with one copy of its policy
COPY_EVERY = {PPO: (1, 10), POOL: (1, 10), DDPG: (1, 200)}
# how many steps of each environment ours samples with one copy
OUR_NUM_STEPS = {PPO: (64, 16), POOL: (32, 16), DDPG: (8, 25)}
OUR_NUM_ENVS = {PPO: 32, POOL: 32, DDPG: 8}
SOLVED, WINDOW = 195.0, 100  # CartPole-v0: the mean of so many episodes in a row
_EVAL_SEED = 1_000_000


@dataclass(frozen=True, kw_only=True)
class Scale:
    """How much is measured."""

    sizes: tuple[tuple[int, ...], ...]
    repeats: int
    episodes: Mapping[str, int]
    curve_episodes: int
    curve_seeds: int
    solve_seeds: int

    @classmethod
    def of(cls, quick: bool) -> Self:
        """Short, or the document's."""
        if quick:
            return cls(
                sizes=((64,), (128,), (256, 256)),
                repeats=2,
                episodes={PPO: 16, POOL: 16, DDPG: 7},
                curve_episodes=130,
                curve_seeds=1,
                solve_seeds=3,
            )
        return cls(
            sizes=SIZES,
            repeats=2,
            episodes={PPO: 500, POOL: 500, DDPG: 200},
            curve_episodes=500,
            curve_seeds=3,
            solve_seeds=10,
        )


def run(study: Study) -> Path:
    """Measures what is not measured yet; returns report.md's path."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # more only slow networks of these sizes down
    try:
        scale = Scale.of(study.quick)
        _warm_up()
        lines = _grid(study, scale)
        curves = _curves(study, scale)
        solved = [
            study.measure(f"solved, ours, seed {seed}", partial(solve, seed))
            for seed in range(scale.solve_seeds)
        ]
    finally:
        torch.set_num_threads(threads)
    measured = [line for line in lines if line.cost is not None]
    study.picture("time", draw_time(measured), _TIME_CAPTION)
    study.picture("shares", draw_shares(measured), _SHARES_CAPTION)
    study.picture("cartpole", draw_curves(curves, solved), _CURVES_CAPTION)
    return study.report(
        "Where to sample and where to learn",
        [
            ("The document's figures and ours", _beside(lines, scale)),
            ("The grid", _grid_text(lines)),
            ("Fixed starts and honest ones", _honest_text(curves)),
            ("CartPole-v0 solved", _solved_text(curves, solved)),
            ("How it was measured", _method(scale)),
        ],
        verdict(lines, curves, solved),
    )


# ---- measuring -----------------------------------------------------------------------------------


class Usage:
    """Time, CPU and GPU of a ``with`` block.

    Attributes:
        seconds: Wall-clock time [s].
        cpu_percent: CPU time by wall-clock time and CPU; 100: all CPUs busy.
        gpu_percent: nvidia-smi's utilisation, mean of samples every 0.2 s; None: not measured.
    """

    def __init__(self, gpu: bool):
        self.seconds = 0.0
        self.cpu_percent = 0.0
        self.gpu_percent: float | None = None
        self._gpu = gpu
        self._smi: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        if self._gpu:
            self._start_smi()
        self._cpu = _cpu_seconds()
        self._began = time.perf_counter()
        return self

    def __exit__(self, *exception: object) -> None:
        self.seconds = time.perf_counter() - self._began
        busy = _cpu_seconds() - self._cpu
        self.cpu_percent = 100.0 * busy / self.seconds / available_cpus()
        if self._smi is not None:
            self._read_smi()

    def _start_smi(self) -> None:
        query = ["--query-gpu=utilization.gpu", "--format=csv,noheader,nounits", "-i", "0"]
        self._file = tempfile.TemporaryFile()  # noqa: SIM115 - _read_smi closes it
        try:
            self._smi = subprocess.Popen(["nvidia-smi", *query, "-lms", "200"], stdout=self._file)
        except OSError:
            self._file.close()

    def _read_smi(self) -> None:
        assert self._smi is not None
        self._smi.terminate()
        self._smi.wait()
        with self._file:
            self._file.seek(0)
            values = [int(x) for x in self._file.read().decode().split() if x.isdigit()]
        if values:
            self.gpu_percent = float(np.mean(values))


def _cpu_seconds() -> float:
    times = os.times()
    return times.user + times.system


def textbook_run(
    algorithm: str,
    hidden_sizes: Sequence[int],
    num_episodes: int,
    *,
    placement: str = "cpu",
    copy_every: int = 1,
    seed: int = 0,
) -> Row:
    """One training of the textbook's program, with the document's fixed start."""
    with Usage(PLACEMENTS[placement][1] == "cuda") as usage:
        options: dict[str, Any] = {"placement": placement, "copy_every": copy_every, "seed": seed}
        if algorithm == DDPG:
            trained = TextbookDDPG(hidden_sizes, **options).train(num_episodes)
        else:
            pool_size = POOL_SIZE if algorithm == POOL else 1
            trainer = TextbookPPO(hidden_sizes, pool_size=pool_size, **options)
            trained = trainer.train(num_episodes)
    return _row(usage, trained)


def our_run(
    algorithm: str,
    hidden_sizes: Sequence[int],
    env_steps: int,
    *,
    placement: str = "cpu",
    num_steps: int = 64,
    seed: int = 0,
) -> Row:
    """One training of ours with the textbook's hyper-parameters, honest starts.

    It has the same networks' sizes, passes over the data and minibatches per step, and at least
    ``env_steps`` steps, rounded up to whole iterations.
    """
    torch.manual_seed(seed)
    trained = Run()
    with Usage(placement != "cpu") as usage:
        trainer = _our_trainer(
            algorithm, tuple(hidden_sizes), env_steps, placement, num_steps, seed
        )
        while trainer.global_step < env_steps:
            metrics = trainer.iterate()
            trained.sample_s += metrics["time/sample_s"]
            trained.update_s += metrics["time/update_s"]
            trained.updates += 1
            if "train/return" in metrics:
                trained.returns.append(metrics["train/return"])
    trained.env_steps = trainer.global_step
    if isinstance(trainer, ddpg.DDPG):
        trained.updates = max(trainer.global_step - trainer.config.learning_starts, 1)
    else:
        trainer.collector.close()
    trainer.envs.close()
    return _row(usage, trained)


def _our_trainer(
    algorithm: str,
    hidden_sizes: tuple[int, ...],
    env_steps: int,
    placement: str,
    num_steps: int,
    seed: int,
) -> ppo.PPO | ddpg.DDPG:
    common: dict[str, Any] = {
        "hidden_sizes": hidden_sizes,
        "num_steps": num_steps,
        "total_steps": env_steps,
        "device": placement,
        "seed": seed,
        "gamma": 0.98,
    }
    if algorithm != DDPG:
        pool_size = POOL_SIZE if algorithm == POOL else 1
        config = ppo.Config.preset("CartPole-v0", update_epochs=10, pool_size=pool_size, **common)
        config.check()
        return ppo.PPO(config)
    options = ddpg.Config(
        buffer_size=10_000,
        noise=0.005,  # of half the action space's width: the textbook's 0.01 of [-2, 2]
        policy_learning_rate=3e-4,
        critic_learning_rate=3e-3,
        **common,
    )
    options.check()
    return ddpg.DDPG(options)


def _row(usage: Usage, trained: Run) -> Row:
    last = trained.returns[-max(1, len(trained.returns) // 10) :]
    return {
        "seconds": usage.seconds,
        "env_steps": trained.env_steps,
        "updates": trained.updates,
        "sample_s": trained.sample_s,
        "update_s": trained.update_s,
        "copy_s": trained.copy_s,
        "cpu_percent": usage.cpu_percent,
        "gpu_percent": usage.gpu_percent,
        "last_return": float(np.mean(last)) if last else None,
    }


@dataclass(frozen=True, kw_only=True)
class Line:
    """A row of the grid: one contestant's repeats summed up; costs are None without a GPU.

    Attributes:
        who: ``"textbook"`` or :data:`OURS`.
        copy_every: In words.
        often: Whether it copies the more often of its two frequencies.
        seconds: Of the whole training [s]; of ours: of as many steps as the textbook's on the CPU.
        cost: Time per environment step [µs].
        update_ms: Time per update [ms].
        update_cost: Time of updates per environment step [µs].
        sample_cost: Time of sampling and copying per environment step [µs].
    """

    algorithm: str
    size: tuple[int, ...]
    who: str
    placement: str
    copy_every: str
    often: bool = True
    seconds: Summary | None = None
    cost: Summary | None = None
    update_ms: float = 0.0
    update_cost: float = 0.0
    sample_cost: float = 0.0
    cpu_percent: float = 0.0
    gpu_percent: float | None = None
    last_return: float | None = None

    @property
    def label(self) -> str:
        """Who, where and how often."""
        return f"{self.who}, {self.placement}, {self.copy_every}"


@dataclass(frozen=True)
class _Contestant:
    algorithm: str
    size: tuple[int, ...]
    who: str
    placement: str
    every: int

    @property
    def words(self) -> str:
        if self.who == OURS:
            return f"{self.every * OUR_NUM_ENVS[self.algorithm]:,} steps"
        unit = "step" if self.algorithm == DDPG else "episode"
        return f"{self.every:,} {unit}{'s' if self.every > 1 else ''}"

    @property
    def often(self) -> bool:
        choices = (OUR_NUM_STEPS if self.who == OURS else COPY_EVERY)[self.algorithm]
        return self.every == min(choices)


def _contestants(scale: Scale) -> list[_Contestant]:
    return [
        _Contestant(algorithm, size, who, placement, every)
        for algorithm in ALGORITHMS
        for size in scale.sizes
        for who, placements, choices in (
            ("textbook", tuple(PLACEMENTS), COPY_EVERY),
            (OURS, OUR_PLACEMENTS, OUR_NUM_STEPS),
        )
        for placement in placements
        for every in choices[algorithm]
        # on the device everything samples step by step: DDPG of ours always samples in the pool
        if not (who == OURS and algorithm == DDPG and placement == "cuda")
    ]


def _warm_up() -> None:
    """What is loaded and chosen at first use is not to be the first contestant's cost."""
    for algorithm in (PPO, DDPG):
        textbook_run(algorithm, (8,), 6 if algorithm == DDPG else 1)
        our_run(algorithm, (8,), 1_200, num_steps=8)


def _grid(study: Study, scale: Scale) -> list[Line]:
    """Every contestant once per repeat, so that a machine's drift meets them all."""
    contestants = _contestants(scale)
    rows: dict[_Contestant, list[Row]] = {each: [] for each in contestants}
    for seed in range(scale.repeats):
        env_steps: dict[tuple[str, tuple[int, ...]], int] = {}
        for each in contestants:
            key = f"{each.algorithm}, {name_of(each.size)}, {each.who}, {each.placement}, "
            key += f"copy every {each.words}, seed {seed}"
            steps = env_steps.get((each.algorithm, each.size), 0)
            row = study.measure(
                key, _measurement(each, scale, seed, steps), needs_cuda=each.placement != "cpu"
            )
            if each.who != OURS and each.placement == "cpu" and each.every == 1:
                env_steps[each.algorithm, each.size] = row["env_steps"]
            rows[each].append(row)
    return _lines(rows)


def _measurement(each: _Contestant, scale: Scale, seed: int, env_steps: int) -> Callable[[], Row]:
    if each.who != OURS:
        return lambda: textbook_run(
            each.algorithm,
            each.size,
            scale.episodes[each.algorithm],
            placement=each.placement,
            copy_every=each.every,
            seed=seed,
        )
    # PPO: at least some iterations, so that there is something to time
    least = 0 if each.algorithm == DDPG else 4 * 2_048
    return lambda: our_run(
        each.algorithm,
        each.size,
        max(env_steps, least),
        placement=each.placement,
        num_steps=each.every,
        seed=seed,
    )


def _lines(rows: Mapping[_Contestant, Sequence[Row]]) -> list[Line]:
    reference = {
        (each.algorithm, each.size): float(np.median([row["env_steps"] for row in measured]))
        for each, measured in rows.items()
        if each.who != OURS and each.placement == "cpu" and each.every == 1
    }
    return [_line(each, rows[each], reference[each.algorithm, each.size]) for each in rows]


def _line(each: _Contestant, rows: Sequence[Row], steps: float) -> Line:
    about: dict[str, Any] = {
        "algorithm": each.algorithm,
        "size": each.size,
        "who": each.who,
        "placement": each.placement,
        "copy_every": each.words,
        "often": each.often,
    }
    if any("skipped" in row for row in rows):
        return Line(**about)

    def median(values: Sequence[float]) -> float:
        return float(np.median(values))

    costs = [1e6 * row["seconds"] / row["env_steps"] for row in rows]
    seconds = [cost * steps / 1e6 for cost in costs]
    if each.who != OURS:
        seconds = [row["seconds"] for row in rows]
    gpu = [row["gpu_percent"] for row in rows if row["gpu_percent"] is not None]
    last = [row["last_return"] for row in rows if row["last_return"] is not None]
    return Line(
        **about,
        seconds=summary(seconds),
        cost=summary(costs),
        update_ms=median([1e3 * row["update_s"] / max(row["updates"], 1) for row in rows]),
        update_cost=median([1e6 * row["update_s"] / row["env_steps"] for row in rows]),
        sample_cost=median(
            [1e6 * (row["sample_s"] + row["copy_s"]) / row["env_steps"] for row in rows]
        ),
        cpu_percent=median([row["cpu_percent"] for row in rows]),
        gpu_percent=median(gpu) if gpu else None,
        last_return=median(last) if last else None,
    )


# ---- CartPole-v0 itself --------------------------------------------------------------------------


def textbook_curve(num_episodes: int, *, fixed_start: bool, seed: int) -> Row:
    """Trains the textbook's PPO on the CPU; evaluates it on the fixed start and on honest ones."""
    trainer = TextbookPPO(THE_SIZE, fixed_start=fixed_start, seed=seed)
    trained = trainer.train(num_episodes)
    honest = _greedy_returns(trainer.actor, WINDOW, _EVAL_SEED)
    reached = first_solved(trained.returns)
    return {
        "returns": trained.returns,
        "seconds": trained.seconds,
        "env_steps": trained.env_steps,
        "solved_s": None if reached is None else trained.seconds[reached],
        "fixed_return": float(_greedy_returns(trainer.actor, 1, 0)[0]),
        "honest_return": float(honest.mean()),
        "honest_std": float(honest.std()),
    }


@torch.no_grad()
def _greedy_returns(actor: torch.nn.Module, num_episodes: int, seed: int) -> Any:
    """Returns of first episodes from ``seed, seed + 1, …``, always the likeliest action."""
    envs = pyfastenv.make_vec("CartPole-v0", num_episodes, autoreset_mode="NextStep")
    obs, _ = envs.reset(seed=seed)
    returns, running = np.zeros(num_episodes), np.ones(num_episodes, bool)
    while running.any():
        actions = actor(torch.as_tensor(obs, dtype=torch.float32)).argmax(1).numpy()
        obs, rewards, terminated, truncated, _ = envs.step(actions)
        returns += rewards * running
        running &= ~(terminated | truncated)
    envs.close()
    return returns


def first_solved(returns: Sequence[float]) -> int | None:
    """The episode after which the last 100 have a mean of 195, or None."""
    sums = np.concatenate(([0.0], np.cumsum(returns)))
    means = (sums[WINDOW:] - sums[:-WINDOW]) / WINDOW
    solved = np.flatnonzero(means >= SOLVED)
    return int(solved[0]) + WINDOW - 1 if len(solved) else None


def solve(seed: int, max_steps: int = 500_000) -> Row:
    """Trains ours until 100 training episodes in a row average 195; then evaluates it greedily.

    The clock includes making environments and networks, not the evaluation, which has 100 episodes
    from seeds that training never saw.
    """
    torch.manual_seed(seed)
    began = time.perf_counter()
    trainer = ppo.PPO(ppo.Config.preset("CartPole-v0", seed=seed))
    lengths: list[float] = []  # in CartPole also the returns
    seconds: list[float] = []
    while (len(lengths) < WINDOW or np.mean(lengths[-WINDOW:]) < SOLVED) and (
        trainer.global_step < max_steps
    ):
        trainer.iterate()
        assert trainer.episodes is not None
        ended = trainer.episodes.lengths.tolist()
        lengths += ended
        seconds += [time.perf_counter() - began] * len(ended)
    total = time.perf_counter() - began
    solved = bool(np.mean(lengths[-WINDOW:]) >= SOLVED)
    trainer.collector.close()
    envs = pyfastenv.make_vec("CartPole-v0", 50, autoreset_mode="SameStep")
    honest = evaluate(envs, trainer.eval_policy(), WINDOW, _EVAL_SEED).returns
    envs.close()
    trainer.envs.close()
    return {
        "returns": lengths,
        "seconds": seconds,
        "env_steps": trainer.global_step,
        "solved_s": total if solved else None,
        "honest_return": float(honest.mean()),
        "honest_std": float(honest.std()),
    }


def _curves(study: Study, scale: Scale) -> dict[str, list[Row]]:
    """The textbook's PPO by start: ``{"fixed": [...], "honest": [...]}``."""
    curves: dict[str, list[Row]] = {"fixed": [], "honest": []}
    for seed in range(scale.curve_seeds):
        for start, rows in curves.items():
            row = study.measure(
                f"CartPole-v0, textbook, {start} start, seed {seed}",
                partial(
                    textbook_curve, scale.curve_episodes, fixed_start=start == "fixed", seed=seed
                ),
            )
            rows.append(row)
    return curves


# ---- judging -------------------------------------------------------------------------------------


def verdict(
    lines: Sequence[Line], curves: Mapping[str, Sequence[Row]], solved: Sequence[Row]
) -> str:
    """What the numbers say of the document's claims, and what to do."""
    measured = [line for line in lines if line.cost is not None]
    parts = [
        "**Does the document's claim hold?** " + _on_placement(measured),
        _on_copies(measured),
        "**Ours.** " + _on_ours(measured),
        _on_solved(curves, solved),
        "**What to do.** " + _advice(measured),
    ]
    return "\n\n".join(parts)


def _median(line: Line) -> float:
    assert line.cost is not None
    return line.cost["median"]


def _cells(lines: Sequence[Line]) -> dict[tuple[str, tuple[int, ...]], list[Line]]:
    cells: dict[tuple[str, tuple[int, ...]], list[Line]] = {}
    for line in lines:
        cells.setdefault((line.algorithm, line.size), []).append(line)
    return cells


def advised(algorithm: str, size: Sequence[int]) -> tuple[str, ...]:
    """The placements that the document calls fastest."""
    if max(size) <= 64:
        return ("cpu",)
    if algorithm == PPO and max(size) <= 128:
        return ("cpu", "sample-cpu")
    return ("sample-cpu",)


def _on_placement(measured: Sequence[Line]) -> str:
    theirs = [line for line in measured if line.who != OURS]
    if not any(line.placement != "cpu" for line in theirs):
        share = np.median([line.sample_cost / _median(line) for line in theirs])
        return (
            "It says that small networks are fastest on the CPU and larger ones when the CPU "
            f"samples and the GPU learns. That {NEEDS_CUDA}, which this machine has not: those "
            "rows are listed without figures, and the claim is neither confirmed nor refuted here. "
            "What can be said: on the CPU the textbook's program spends "
            f"{share:.0%} of its time (median over the grid) sampling one environment, one policy "
            "call per step, which no placement of the learner makes faster."
        )
    best = {
        cell: min(rows, key=_median).placement
        for cell, rows in _cells(theirs).items()
        if len({row.placement for row in rows}) > 1
    }
    wrong = [
        f"{algorithm} {name_of(size)} ({placement})"
        for (algorithm, size), placement in best.items()
        if placement not in advised(algorithm, size)
    ]
    text = (
        f"Its advice on the fastest placement holds in {len(best) - len(wrong)} of {len(best)} "
        "combinations of algorithm and size."
    )
    return text + (f" Fastest was another in: {', '.join(wrong)}." if wrong else "")


def _on_copies(measured: Sequence[Line]) -> str:
    """Fewer copies of the policy, where copies cost something; else on the CPU."""
    placement = "sample-cpu" if any(line.placement == "sample-cpu" for line in measured) else "cpu"
    found = []
    for algorithm in (DDPG, POOL):
        gains = []
        for rows in _cells(measured).values():
            mine = [
                row
                for row in rows
                if (row.who, row.placement, row.algorithm) == ("textbook", placement, algorithm)
            ]
            often = [_median(row) for row in mine if row.often]
            seldom = [_median(row) for row in mine if not row.often]
            if often and seldom:
                gains.append(often[0] / seldom[0])
        if gains:
            found.append(f"{algorithm} runs at {geometric_mean(gains):.2f} times the speed")
    if not found:
        return ""
    text = f"With fewer copies of the policy (placement {placement}) {' and '.join(found)}."
    if placement == "cpu":
        text += (
            " On the CPU a copy costs nothing, so this is only the effect of doing steps and "
            f"updates in blocks; that fewer copies help DDPG and not the pool {NEEDS_CUDA}."
        )
    else:
        text += " The document: it helps DDPG and does not help PPO with a pool."
    return text


def _on_ours(measured: Sequence[Line]) -> str:
    """Each row of ours against the textbook's fastest for the same algorithm and size."""
    ratios, behind = [], []
    for (algorithm, size), rows in _cells(measured).items():
        theirs = min((row for row in rows if row.who != OURS), key=_median)
        for mine in (row for row in rows if row.who == OURS):
            ratios.append(_median(theirs) / _median(mine))
            if ratios[-1] <= 1.0:
                part, a, b = max(
                    ("update", mine.update_cost, theirs.update_cost),
                    ("sampling", mine.sample_cost, theirs.sample_cost),
                    key=lambda each: each[1] - each[2],
                )
                behind.append(
                    f"{algorithm} {name_of(size)}, {mine.label} against {theirs.label}: "
                    f"{_median(mine):,.0f} against {_median(theirs):,.0f} µs per step, because "
                    f"its {part} takes {a:,.0f} against {b:,.0f} µs"
                )
    if not ratios:
        return "Nothing was measured."
    text = (
        f"Per environment step ours is {geometric_mean(ratios):,.1f} times as fast as the fastest "
        f"row of the textbook's for the same algorithm and size (geometric mean of {len(ratios)} "
        f"rows; {min(ratios):,.2f} to {max(ratios):,.1f} times)"
    )
    if not behind:
        return text + ": ahead of every baseline in every row."
    return text + f". It is **not** ahead in {len(behind)}: " + "; ".join(behind) + "."


def _on_solved(curves: Mapping[str, Sequence[Row]], solved: Sequence[Row]) -> str:
    times = [row["solved_s"] for row in solved if row["solved_s"] is not None]
    if not times:
        return "**CartPole-v0** was not solved by ours."
    held = sum(row["honest_return"] >= SOLVED for row in solved)
    text = (
        f"**CartPole-v0 is solved in {np.median(times):.2f} s** ({min(times):.2f} to "
        f"{max(times):.2f} s, {len(times)} of {len(solved)} seeds): 100 training episodes in a row "
        f"averaged 195. Afterwards the greedy policy of {held} of {len(solved)} seeds averages 195 "
        "over 100 episodes that training never saw "
        f"(mean {np.mean([row['honest_return'] for row in solved]):.1f})."
    )
    honest = curves.get("honest", ())
    theirs = [row["solved_s"] for row in honest if row["solved_s"] is not None]
    if theirs:
        text += f" The textbook's program, with honest starts, needs {np.median(theirs):.1f} s"
        text += f" ({len(theirs)} of {len(honest)} seeds)."
    elif honest:
        spent = np.median([row["seconds"][-1] for row in honest])
        count = len(honest[0]["returns"])
        text += f" The textbook's program has not solved it after {count} episodes ({spent:.1f} s)."
    return text


def _advice(measured: Sequence[Line]) -> str:
    theirs = [line for line in measured if line.who != OURS]
    ours = [line for line in measured if line.who == OURS]
    if not ours or not theirs:
        return "Measure on your machine."
    gain = {
        placement: geometric_mean(
            [
                min(_median(row) for row in rows if row.placement == "cpu" and row.who != OURS)
                / min(_median(row) for row in rows if row.placement == placement)
                for rows in _cells(theirs).values()
                if any(row.placement == placement for row in rows)
            ]
        )
        for placement in PLACEMENTS
        if placement != "cpu" and any(row.placement == placement for row in theirs)
    }
    best_ours = {cell: min(rows, key=_median).placement for cell, rows in _cells(ours).items()}
    on_cpu = sum(placement == "cpu" for placement in best_ours.values())
    text = "Change the program before the placement: step many environments at once and run the "
    text += "policy beside them; then the copies and the device matter little. "
    if gain:
        moved = " and ".join(f"{name} {value:.2f} ×" for name, value in gain.items())
        text += f"Moving the textbook's program changes its speed by {moved} against the CPU. "
        text += f"Of ours, `--device cpu` is fastest in {on_cpu} of {len(best_ours)} combinations."
    else:
        text += "Use `--device cpu` for networks of these sizes (`--device sample-cpu` with a GPU "
        text += "and larger ones: measure it there with this experiment)."
    return text


# ---- tables --------------------------------------------------------------------------------------


def name_of(size: Sequence[int]) -> str:
    """``64x64``."""
    return "x".join(map(str, size))


def _or_cuda(value: float | None, form: str, measured: bool = True) -> str:
    if not measured:
        return NEEDS_CUDA
    return "–" if value is None else format(value, form)


def _beside(lines: Sequence[Line], scale: Scale) -> str:
    """The document's first table, and ours."""
    document = {
        "cuda": ("128", "27", "45", "5"),
        "cpu": ("47.4–53", "100", "–", "3–4"),
        "sample-cpu": ("43.4–45.1", "22–25", "22", "–"),
    }
    rows: list[list[object]] = []
    for placement, theirs in document.items():
        here = _find(lines, "textbook", placement)
        rows.append([f"textbook, {placement}", *theirs, *_figures(here)])
    for placement in ("cpu", "sample-cpu"):
        here = _find(lines, OURS, placement)
        rows.append([f"ours, {placement}", "", "", "", "", *_figures(here)])
    columns = ["PPO, CartPole-v0, 128"]
    for where in ("document", "here"):
        columns += [f"{where}: time [s]", "CPU [%]", "GPU [%]", "update [ms]"]
    return (
        table(columns, rows)
        + f"\n\nThe document trains for 500 episodes, this for {scale.episodes[PPO]}; ours for as "
        "many environment steps. An update of the textbook's is ten passes over one episode (of up "
        "to 200 steps), of ours ten passes over 2,048 steps. CPU: 100 % are all CPUs; the "
        "document's percentages are its system monitor's, of another machine."
    )


def _find(lines: Sequence[Line], who: str, placement: str) -> Line:
    for line in lines:
        same = (line.who, line.placement, line.algorithm, line.size)
        # the textbook copies every episode, ours every 2,048 steps
        if same == (who, placement, PPO, THE_SIZE) and line.often == (who != OURS):
            return line
    raise KeyError((who, placement))


def _figures(line: Line) -> list[str]:
    done = line.seconds is not None
    seconds = line.seconds["median"] if line.seconds is not None else None
    return [
        _or_cuda(seconds, ".2f", done),
        _or_cuda(line.cpu_percent, ".0f", done),
        _or_cuda(line.gpu_percent, ".0f", done),
        _or_cuda(line.update_ms, ".2f", done),
    ]


def _grid_text(lines: Sequence[Line]) -> str:
    parts = [
        "Time of the whole training (of ours: of as many environment steps as the textbook's takes "
        "on the CPU); time per environment step as median [quartiles]; return: mean of the "
        "last tenth of training episodes. Compare by time per step: a program that learns sooner "
        "has longer CartPole episodes and so more steps in the same number of episodes. "
        "And the textbook makes ten gradient steps per episode, however short: the less its policy "
        "has learned, the more a step costs; in quick runs, of few episodes, most of all."
    ]
    for algorithm in ALGORITHMS:
        rows: list[list[object]] = []
        for line in (each for each in lines if each.algorithm == algorithm):
            cost = line.cost
            rows.append(
                [
                    name_of(line.size),
                    line.who,
                    line.placement,
                    line.copy_every,
                    _figures(line)[0],
                    NEEDS_CUDA
                    if cost is None
                    else f"{cost['median']:,.0f} [{cost['q1']:,.0f}, {cost['q3']:,.0f}]",
                    *_figures(line)[1:],
                    _or_cuda(line.last_return, ",.0f", cost is not None),
                ]
            )
        columns = ["network", "program", "placement", "policy copied every", "time [s]"]
        columns += ["per step [µs]", "CPU [%]", "GPU [%]", "update [ms]", "return"]
        parts.append(f"### {algorithm}\n\n{table(columns, rows)}")
    return "\n\n".join(parts)


def _honest_text(curves: Mapping[str, Sequence[Row]]) -> str:
    rows = [
        [
            start,
            f"{np.mean([row['fixed_return'] for row in given]):.1f}",
            f"{np.mean([row['honest_return'] for row in given]):.1f} ± "
            f"{np.mean([row['honest_std'] for row in given]):.1f}",
        ]
        for start, given in curves.items()
    ]
    columns = ["trained from", "greedy from reset(seed=0)", "greedy from 100 other starts"]
    loss = np.mean([row["fixed_return"] - row["honest_return"] for row in curves["fixed"]])
    count = len(curves["fixed"][0]["returns"])
    return (
        "The document resets with `seed=0` before every episode, so that every episode starts in "
        f"the same state. The textbook's PPO, 128, after {count} episodes each way (mean of "
        f"{len(curves['fixed'])} seed(s), ± standard deviation between episodes):\n\n"
        f"{table(columns, rows)}\n\n"
        f"Trained from the fixed start, it has {abs(loss):.1f} {'less' if loss >= 0 else 'more'} "
        "from other starts than from its own. Ours always starts anew."
    )


def _solved_text(curves: Mapping[str, Sequence[Row]], solved: Sequence[Row]) -> str:
    def line(name: str, row: Row) -> list[object]:
        time_s = row["solved_s"]
        honest = f"{row['honest_return']:.1f} ± {row['honest_std']:.1f}"
        reached = "not solved" if time_s is None else f"{time_s:.2f}"
        return [name, reached, f"{row['env_steps']:,}", honest]

    rows = [line(f"ours, seed {i}", row) for i, row in enumerate(solved)]
    for start, given in curves.items():
        rows += [line(f"textbook, {start} start, seed {i}", row) for i, row in enumerate(given)]
    columns = ["", "solved [s]", "steps in all", "greedy, 100 other starts"]
    return (
        "Solved: 100 training episodes in a row average 195 (`Config.preset`, one hidden layer of "
        "64; environments and networks are made within the time). The last column is honest: other "
        f"seeds than training's.\n\n{table(columns, rows)}"
    )


def _method(scale: Scale) -> str:
    return (
        "One process; PyTorch with one thread (more slow networks of these sizes down), ours steps "
        f"environments and learns on {available_cpus()} threads. {scale.repeats} repeats, each "
        "contestant once per repeat and all in turn. Textbook: CartPole-v0 and Pendulum-v1 of "
        "gymnasium, actor lr 1e-3, critic lr 1e-2, γ 0.98, λ 0.95, 10 passes, clip 0.2, an update "
        "per episode; DDPG lr 3e-4 and 3e-3, τ 0.005, buffer 10,000, 1,000 steps before learning, "
        f"batch 64, σ 0.01. The trajectory pool holds {POOL_SIZE} trajectories, ours as many "
        "batches; the document does not say how many its own held. `copied every`: so much is "
        "sampled with one copy of the policy, then as many updates follow. Ours: same sizes, "
        "passes and DDPG options, minibatches of 256 (PPO), 32 environments (PPO) or 8 (DDPG). "
        "GPU % is nvidia-smi's."
    )


# ---- pictures ------------------------------------------------------------------------------------

_TIME_CAPTION = (
    "Time per environment step (sampling and learning) by network size; points are medians, bars "
    "reach from the lower to the upper quartile. Lower is better; logarithmic."
)
_SHARES_CAPTION = "What the time per environment step goes to, per program (the largest network)."
_CURVES_CAPTION = (
    "CartPole-v0: mean of the last 20 training episodes against seconds, every seed a line; "
    "points: solved. Logarithmic time."
)


def _axes_style(axes: Axes) -> None:
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", alpha=0.3, linewidth=0.6)


def draw_time(measured: Sequence[Line]) -> Figure:
    """Cost by size: a panel per algorithm, a line per program and frequency."""
    from matplotlib import pyplot

    figure, panels = pyplot.subplots(1, 3, figsize=(13, 4.6), sharey=True)
    labels: list[list[tuple[float, str, str]]] = []
    for axes, algorithm in zip(panels, ALGORITHMS, strict=True):
        mine = [line for line in measured if line.algorithm == algorithm]
        sizes = list(dict.fromkeys(line.size for line in mine))
        names = list(dict.fromkeys((line.who, line.placement, line.copy_every) for line in mine))
        ends = []
        for who, placement, copy_every in names:
            same = [
                line
                for line in mine
                if (line.who, line.placement, line.copy_every) == (who, placement, copy_every)
            ]
            kind = list(PLACEMENTS).index(placement)
            colour = COLOURS[kind if who != OURS else 3 + kind]
            x = [sizes.index(line.size) for line in same]
            costs = [line.cost for line in same if line.cost is not None]
            y = [cost["median"] for cost in costs]
            bars = [
                [c["median"] - c["q1"] for c in costs],
                [c["q3"] - c["median"] for c in costs],
            ]
            axes.errorbar(
                x, y, yerr=bars, color=colour, marker="o", markersize=4, capsize=3,
                linestyle="-" if same[0].often else "--", linewidth=1.4,
            )  # fmt: skip
            short = "book" if who != OURS else who
            ends.append((y[-1], f"{short}, {placement}, {copy_every}", colour))
        axes.set_yscale("log")
        axes.set_xticks(range(len(sizes)), [name_of(size) for size in sizes])
        axes.set_xlim(-0.2, len(sizes) - 0.8)
        axes.set_title(f"{algorithm} ({'Pendulum-v1' if algorithm == DDPG else 'CartPole-v0'})")
        axes.set_xlabel("hidden layers")
        _axes_style(axes)
        labels.append(ends)
    panels[0].set_ylabel("time per environment step [µs]")
    figure.suptitle("What a step of training costs; dashed: the policy is copied less often")
    figure.tight_layout(w_pad=11, rect=(0, 0, 0.9, 1))
    for axes, ends in zip(panels, labels, strict=True):
        _label_ends(axes, ends)
    return figure


def _label_ends(axes: Axes, ends: Sequence[tuple[float, str, str]]) -> None:
    """Names beside the last points, in their order, pushed apart; the height is logarithmic."""
    low, high = np.log(axes.get_ylim())
    ordered = sorted(ends, key=lambda end: end[0])
    heights: list[float] = []
    for value, _, _ in ordered:
        wanted = float((np.log(value) - low) / (high - low))
        heights.append(max(wanted, heights[-1] + 0.055) if heights else wanted)
    too_high = max(0.0, heights[-1] - 1.0) if heights else 0.0
    for height, (_, text, colour) in zip(heights, ordered, strict=True):
        axes.annotate(
            text, (1, height - too_high), xytext=(5, 0), xycoords="axes fraction",
            textcoords="offset points", color=colour, va="center", fontsize=8,
        )  # fmt: skip


def draw_shares(measured: Sequence[Line]) -> Figure:
    """Sampling and update per step, stacked, for the largest network, a panel per algorithm."""
    from matplotlib import pyplot

    most = max(sum(line.algorithm == each for line in measured) for each in ALGORITHMS)
    sizes = len({line.size for line in measured})
    height = 3.0 + 0.9 * most / sizes
    figure, panels = pyplot.subplots(3, 1, figsize=(9, height))
    for axes, algorithm in zip(panels, ALGORITHMS, strict=True):
        mine = [line for line in measured if line.algorithm == algorithm]
        largest = max((line.size for line in mine), key=lambda size: (max(size), len(size)))
        rows = [line for line in mine if line.size == largest][::-1]
        y = range(len(rows))
        sampling = [line.sample_cost for line in rows]
        update = [line.update_cost for line in rows]
        axes.barh(y, sampling, color=COLOURS[0], height=0.65)
        axes.barh(y, update, left=sampling, color=COLOURS[1], height=0.65)
        reach = max(a + b for a, b in zip(sampling, update, strict=True))
        for i, (a, b) in enumerate(zip(sampling, update, strict=True)):
            text = f" {a:,.1f} + {b:,.1f}"
            axes.text(a + b, i, text, va="center", fontsize=8)
        axes.set_xlim(0, reach * 1.25)
        axes.set_yticks(y, [line.label for line in rows], fontsize=8)
        axes.set_title(f"{algorithm}, {name_of(largest)}", fontsize=10, loc="left")
        axes.spines[["top", "right"]].set_visible(False)
    panels[-1].set_xlabel("time per environment step [µs]")
    figure.tight_layout(rect=(0, 0, 1, 0.95))
    top: dict[str, Any] = {"y": 0.965, "fontsize": 12}
    figure.text(0.5, s="Where the time goes: ", ha="right", **top)
    figure.text(0.5, s="sampling", color=COLOURS[0], fontweight="bold", **top)
    figure.text(0.6, s=" + update", color=COLOURS[1], fontweight="bold", **top)
    return figure


def draw_curves(curves: Mapping[str, Sequence[Row]], solved: Sequence[Row]) -> Figure:
    """Returns against seconds: the textbook's PPO by start, and ours."""
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(8.5, 4.8))
    groups = [
        ("ours, honest starts", solved, COLOURS[2], (10, -26), "left"),
        ("textbook, fixed start", curves["fixed"], COLOURS[1], (14, -30), "left"),
        ("textbook, honest starts", curves["honest"], COLOURS[0], (-8, 12), "right"),
    ]
    for name, rows, colour, offset, side in groups:
        for row in rows:
            means = np.convolve(row["returns"], np.ones(20) / 20, "valid")
            seconds = np.asarray(row["seconds"])[19:]
            last = np.append(np.diff(seconds) > 0, True)  # of the episodes of one iteration
            seconds, means = seconds[last], means[last]
            axes.plot(seconds, means, color=colour, linewidth=1.2, alpha=0.85)
            if row["solved_s"] is not None:
                axes.plot(row["solved_s"], means[-1], "o", color=colour, markersize=5)
        # beside a place on the way up, where the curves are apart
        i = int(np.argmax(means >= 0.6 * means.max()))
        axes.annotate(
            name, (seconds[i], means[i]), xytext=offset, textcoords="offset points", color=colour,
            fontsize=10, ha=side,
        )  # fmt: skip
    axes.axhline(SOLVED, color="0.5", linewidth=0.8, linestyle=":")
    axes.text(0.01, SOLVED - 3, "solved: 195", transform=axes.get_yaxis_transform(),
              va="top", fontsize=8, color="0.35")  # fmt: skip
    axes.set_xscale("log")
    axes.set_xlabel("time since the start [s]")
    axes.set_ylabel("return, mean of 20 training episodes")
    axes.set_title("PPO on CartPole-v0: seconds to a good policy")
    _axes_style(axes)
    figure.tight_layout()
    return figure
