"""Where to sample and where to learn? The experiment of document 001.

A textbook's PPO, PPO with a trajectory pool and DDPG, by network size, placement and how often the
policy is copied to where it acts, beside ours: as much work for each, round by round in turn. Then
CartPole-v0 itself: what 500 episodes take, how soon it is solved, and by which network.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch

import pyfastenv
from pyfastenv.algorithms import ddpg, ppo
from pyfastenv.experiments import pictures
from pyfastenv.experiments.baselines.textbook import (
    PLACEMENTS,
    POOL_SIZE,
    Run,
    TextbookDDPG,
    TextbookPPO,
)
from pyfastenv.experiments.claims import Claim, Ratio, compare
from pyfastenv.experiments.clock import Clock
from pyfastenv.experiments.report import Report, cell, median, number, spread, table
from pyfastenv.experiments.study import Measurement, Results, Row, Sizes, rounds
from pyfastenv.training.evaluation import evaluate
from pyfastenv.training.plots import COLOURS

PPO, POOL, DDPG = "PPO", "PPO + pool", "DDPG"
OURS, TEXTBOOK = "ours", "textbook"
CPU, COPY, BESIDE = "cpu", "cpu, a copy acts", "cpu, actor beside critic"
# episodes (PPO) or steps (DDPG) that are sampled with one copy of the policy
COPY_EVERY = {PPO: (1, 3, 10), POOL: (1, 3, 10), DDPG: (1, 10, 50, 200)}
DOCUMENT = {"cuda": ("128", "27", "45", "5"), CPU: ("47.4–53", "100", "–", "3–4"),
            "sample-cpu": ("43.4–45.1", "22–25", "22", "–")}  # fmt: skip
SOLVED, WINDOW = 195.0, 100  # CartPole-v0: the mean of so many episodes in a row
LENGTH = 200  # steps of an episode of CartPole-v0 that succeeds, and of every one of Pendulum
_EVAL_SEED = 1_000_000


@dataclass(frozen=True, kw_only=True)
class Config(Sizes):
    """Document 001: the CPU samples, the GPU learns."""

    sizes: tuple[str, ...] = ("64", "64x64", "128", "128x128", "256", "256x256")
    """Hidden layers in the grid."""
    episodes: int = 500
    """Of the document's table, which has a hidden layer of 128, and of the learning curves."""
    table_rounds: int = 3
    """How often each contestant of that table trains."""
    grid_rounds: int = 6
    """How often each contestant of the grid has its turn …"""
    grid_episodes: int = 10
    """… and for how many episodes of 200 steps."""
    seeds: int = 10
    """Trainings of ours to the goal, for each network."""
    curve_seeds: int = 3
    """Trainings of the textbook's for each kind of start."""


QUICK = Config(
    quick=True, sizes=("64", "128"), episodes=25, table_rounds=2, grid_rounds=2, grid_episodes=1,
    seeds=3, curve_seeds=1,
)  # fmt: skip


# ---- what is measured ----------------------------------------------------------------------------


def plan(config: Config) -> list[Measurement]:
    """The table, the grid, the trainings to the goal, the learning curves."""
    torch.set_num_threads(1)  # more only slow networks of these sizes down
    cpu = [name for name, place in PLACEMENTS.items() if not place.needs_cuda]
    made = []
    contestants: list[Any] = [
        _textbook(PPO, "128", place, 1, config.episodes, None) for place in (CPU, COPY)
    ]
    contestants.append(_ours(PPO, "128", 100 * config.episodes))
    made += rounds(config.table_rounds, "table", contestants)
    grid: list[Any] = []
    for algorithm, frequencies in COPY_EVERY.items():
        for size in config.sizes:
            episodes = config.grid_episodes
            grid += [
                _textbook(algorithm, size, place, every, episodes, LENGTH)
                for place in cpu
                for every in frequencies
                if place == CPU or every in (frequencies[0], frequencies[-1])
                if not (place == BESIDE and (algorithm == DDPG or every > 1))
            ]
            grid.append(_ours(algorithm, size, max(8_192, LENGTH * episodes)))
    made += rounds(config.grid_rounds, "grid", grid)
    for seed in range(config.seeds):
        for size in config.sizes if "128" in config.sizes else (*config.sizes, "128"):
            made.append(
                Measurement("solved", {"size": size, "seed": seed}, partial(solve, size, seed), 1.5)
            )
    for seed in range(config.curve_seeds):
        for start in ("fixed", "honest"):
            run = partial(curve, config.episodes, start == "fixed", seed)
            made.append(
                Measurement("curves", {"start": start, "seed": seed}, run, 0.1 * config.episodes)
            )
    for place in (name for name, each in PLACEMENTS.items() if each.needs_cuda):
        for algorithm in COPY_EVERY:
            for size in config.sizes:
                about, run, seconds = _textbook(
                    algorithm, size, place, 1, config.grid_episodes, LENGTH
                )
                made.append(Measurement("grid", about | {"round": 0}, run, seconds, True))
        about, run, seconds = _textbook(PPO, "128", place, 1, config.episodes, None)
        made.append(Measurement("table", about | {"round": 0}, run, seconds, True))
    return made


def _textbook(
    algorithm: str, size: str, placement: str, every: int, episodes: int, length: int | None
) -> tuple[Row, Any, float]:
    about = {
        "algorithm": algorithm,
        "size": size,
        "who": TEXTBOOK,
        "placement": placement,
        "every": every,
    }
    run = partial(textbook_run, algorithm, size, placement, every, episodes, length)
    return about, run, 0.1 * episodes + 0.5


def _ours(algorithm: str, size: str, env_steps: int) -> tuple[Row, Any, float]:
    about = {"algorithm": algorithm, "size": size, "who": OURS, "placement": CPU, "every": 0}
    return about, partial(our_run, algorithm, size, env_steps), env_steps * 3e-5 + 0.5


def _widths(size: str) -> tuple[int, ...]:
    return tuple(int(width) for width in size.split("x"))


def textbook_run(
    algorithm: str, size: str, placement: str, every: int, episodes: int, length: int | None
) -> Row:
    """One training of the textbook's program, with the document's fixed start."""
    torch.set_num_threads(1)
    options: dict[str, Any] = {"placement": placement, "copy_every": every}
    with Clock(gpu=PLACEMENTS[placement].needs_cuda) as clock:
        if algorithm == DDPG:
            trained = TextbookDDPG(_widths(size), minimum=LENGTH, **options).train(1 + episodes)
        else:
            pool = POOL_SIZE if algorithm == POOL else 1
            trainer = TextbookPPO(_widths(size), pool_size=pool, length=length, **options)
            trained = trainer.train(episodes)
    return _row(clock, trained)


def our_run(algorithm: str, size: str, env_steps: int) -> Row:
    """One training of ours with the textbook's hyper-parameters, honest starts.

    It has the same networks' sizes, passes over the data and minibatches per step, and at least
    ``env_steps`` steps, rounded up to whole iterations.
    """
    torch.set_num_threads(1)
    torch.manual_seed(0)
    trained = Run()
    common: dict[str, Any] = {
        "hidden_sizes": _widths(size),
        "total_steps": 10**9,
        "gamma": 0.98,
    }
    with Clock() as clock:
        trainer: ppo.PPO | ddpg.DDPG
        if algorithm == DDPG:
            trainer = ddpg.DDPG(
                ddpg.Config(
                    buffer_size=10_000,
                    noise=0.005,  # of half the action space's width: the textbook's 0.01 of [-2, 2]
                    policy_learning_rate=3e-4,
                    critic_learning_rate=3e-3,
                    num_steps=25,
                    learning_starts=LENGTH,
                    **common,
                )
            )
        else:
            pool = POOL_SIZE if algorithm == POOL else 1
            trainer = ppo.PPO(
                ppo.Config.preset("CartPole-v0", update_epochs=10, pool_size=pool, **common)
            )
        while trainer.global_step < env_steps:
            metrics = trainer.iterate()
            trained.sample_s += metrics["time/sample_s"]
            trained.update_s += metrics["time/update_s"]
            trained.updates += 1
    trained.env_steps = trainer.global_step
    if isinstance(trainer, ppo.PPO):
        trainer.collector.close()
    else:
        trained.updates = trainer.global_step
    trainer.envs.close()
    return _row(clock, trained)


def _row(clock: Clock, trained: Run) -> Row:
    return clock.row() | {
        "env_steps": trained.env_steps,
        "cost_us": 1e6 * clock.seconds / trained.env_steps,
        "update_ms": 1e3 * trained.update_s / max(trained.updates, 1),
        "sample_share": trained.sample_s / clock.seconds,
        "copy_share": trained.copy_s / clock.seconds,
        "copy_us": 1e6 * trained.copy_s / max(trained.updates, 1),
    }


def first_solved(returns: Sequence[float]) -> int | None:
    """The episode after which the last 100 have a mean of 195, or None."""
    sums = np.concatenate(([0.0], np.cumsum(returns)))
    means = (sums[WINDOW:] - sums[:-WINDOW]) / WINDOW
    solved = np.flatnonzero(means >= SOLVED)
    return int(solved[0]) + WINDOW - 1 if len(solved) else None


def curve(num_episodes: int, fixed_start: bool, seed: int) -> Row:
    """Trains the textbook's PPO on the CPU; evaluates it on the fixed start and on honest ones."""
    torch.set_num_threads(1)
    trainer = TextbookPPO((128,), fixed_start=fixed_start, seed=seed)
    trained = trainer.train(num_episodes)
    reached = first_solved(trained.returns)
    return {
        "returns": trained.returns,
        "seconds": trained.seconds,
        "episodes": None if reached is None else reached + 1,
        "solved_s": None if reached is None else trained.seconds[reached],
        "fixed_return": float(_greedy_returns(trainer.actor, 1, 0)[0]),
        "honest_return": float(_greedy_returns(trainer.actor, WINDOW, _EVAL_SEED).mean()),
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


def solve(size: str, seed: int, max_steps: int = 300_000) -> Row:
    """Trains ours until 100 training episodes in a row average 195; then evaluates it greedily.

    The clock includes making environments and networks, not the evaluation, which has 100 episodes
    from seeds that training never saw.
    """
    torch.set_num_threads(1)
    torch.manual_seed(seed)
    began = time.perf_counter()
    trainer = ppo.PPO(ppo.Config.preset("CartPole-v0", seed=seed, hidden_sizes=_widths(size)))
    lengths: list[float] = []  # in CartPole also the returns
    while (len(lengths) < WINDOW or np.mean(lengths[-WINDOW:]) < SOLVED) and (
        trainer.global_step < max_steps
    ):
        trainer.iterate()
        assert trainer.episodes is not None
        lengths += trainer.episodes.lengths.tolist()
    total = time.perf_counter() - began
    solved = bool(np.mean(lengths[-WINDOW:]) >= SOLVED)
    trainer.collector.close()
    envs = pyfastenv.make_vec("CartPole-v0", 50, autoreset_mode="SameStep")
    honest = evaluate(envs, trainer.eval_policy(), WINDOW, _EVAL_SEED).returns
    envs.close()
    trainer.envs.close()
    return {
        "solved_s": total if solved else None,
        "episodes": len(lengths) if solved else None,
        "env_steps": trainer.global_step,
        "honest_return": float(honest.mean()),
    }


# ---- the report ----------------------------------------------------------------------------------


def _costs(results: Results[Any], part: str, **about: Any) -> list[float]:
    about = {"who": TEXTBOOK, "placement": CPU, "every": 1} | about
    return results.rounds(part, "cost_us", **about)


def _gain(results: Results[Any], algorithm: str, size: str, **about: Any) -> Ratio:
    """How many times as fast as on the CPU with a copy each time."""
    about = {"algorithm": algorithm, "size": size} | about
    return compare(
        _costs(results, "grid", algorithm=algorithm, size=size), _costs(results, "grid", **about)
    )


def report(results: Results[Any], config: Config) -> Report:
    """Tables, claims and pictures."""
    made = Report()
    solved, curves = results.part("solved"), results.part("curves")
    frame, last = results.part("table"), config.sizes[-1]
    by_size = {size: list(group.episodes.dropna()) for size, group in solved.groupby("size")}
    first = config.sizes[0]
    faster = _gain(results, PPO, last, who=OURS, every=0)
    copies = frame[frame.placement == COPY]
    theirs = frame[(frame.who == TEXTBOOK) & (frame.placement == CPU)]
    ours = frame[frame.who == OURS]
    share = results.part("grid").query("who == @TEXTBOOK").sample_share
    of_128 = solved[solved["size"] == "128"]
    paired = solved.pivot(index="seed", columns="size", values="episodes").dropna()
    converge = compare(list(paired[first]), list(paired[last]), 0.1) if len(paired) > 0 else None
    made.values = {
        "gpu": bool(results.state["machine"]["gpu"]),
        "seconds_128": median(list(theirs.seconds)),
        "steps_128": theirs.env_steps.median(),
        "ours_128": median(list(ours.cost_us)) * theirs.env_steps.median() / 1e6,
        "copy_share": copies.copy_share.median(),
        "copy_us": copies.copy_us.median(),
        "update_ms": theirs.update_ms.median(),
        "sample_share": share.median(),
        "solved_128": cell(of_128.solved_s.median()),
        "solved_all": f"{of_128.solved_s.notna().sum()} of {len(of_128)}",
        "ours_faster": faster,
        "table": _table(results),
        "advice": _advice(results, config),
        "by_size": table(
            ("hidden layers", "episodes to 195", "seconds", "greedy, other starts", "seeds"),
            [
                (
                    size,
                    spread(by_size[size]) if by_size[size] else "not solved",
                    spread(list(group.solved_s.dropna())) if by_size[size] else "–",
                    f"{group.honest_return.mean():.1f}",
                    f"{len(by_size[size])} of {len(group)}",
                )
                for size, group in solved.groupby("size", sort=False)
            ],
        ),
        "starts": table(
            (
                "trained from",
                "episodes to 195",
                "seconds",
                "greedy from its start",
                "greedy from 100 other starts",
                "trainings",
            ),
            [
                (
                    start,
                    cell(group.episodes.median()),
                    cell(group.solved_s.median()),
                    f"{group.fixed_return.mean():.1f}",
                    f"{group.honest_return.mean():.1f}",
                    f"{group.solved_s.notna().sum()} of {len(group)} solved",
                )
                for start, group in curves.groupby("start", sort=False)
            ],
        ),
        "loss": (curves.fixed_return - curves.honest_return)[curves.start == "fixed"].mean(),
    }
    made.claims = list(_claims(results, config, converge))
    _draw(made, results, config)
    return made


def _claims(results: Results[Any], config: Config, converge: Ratio | None) -> list[Claim]:
    first, last = config.sizes[0], config.sizes[-1]
    seldom = {algorithm: every[-1] for algorithm, every in COPY_EVERY.items()}
    needs = "needs a GPU"
    claims = [
        Claim("document: networks of 64 are fastest on the CPU", "–", "more", None, needs),
        Claim(
            "document: from 128 on, the CPU samples and the GPU learns", "–", "more", None, needs
        ),
    ]
    for algorithm, expected in ((DDPG, "more"), (POOL, "equal")):
        pair = [
            _costs(results, "grid", algorithm=algorithm, size=last, placement=COPY, every=every)
            for every in (1, seldom[algorithm])
        ]
        claims.append(
            Claim(
                f"document: fewer copies {'help' if expected == 'more' else 'are no help to'} "
                f"{algorithm} ({last}; here from CPU to CPU)",
                f"every {seldom[algorithm]} / every 1, speed",
                "more" if expected == "more" else "equal",
                compare(pair[0], pair[1]),
            )
        )
    return [
        *claims,
        Claim(
            "document: larger networks converge faster",
            f"episodes to 195 with ours, {first} / {last}",
            "more",
            converge,
            "not all sizes solved it",
        ),
        Claim(
            "document: actor and critic side by side pay (here two threads)",
            f"speed beside one after the other, PPO {last}",
            "more",
            _gain(results, PPO, last, placement=BESIDE),
        ),
        Claim(
            "ours: environments in a batch, the policy beside them, beat any placement",
            f"speed per environment step, PPO {last}",
            "more",
            _gain(results, PPO, last, who=OURS, every=0),
        ),
    ]


def _table(results: Results[Any]) -> str:
    rows = []
    for (who, placement), group in results.part("table").groupby(["who", "placement"], sort=False):
        theirs = DOCUMENT.get(placement, ("", "", "", "")) if who == TEXTBOOK else ("", "", "", "")
        cpus = results.state["machine"]["cpus_available"]
        gpu = group.gpu_percent.median() if "gpu_percent" in group else None
        rows.append(
            (
                f"{who}, {placement}",
                *theirs,
                spread(list(group.seconds)),
                spread(list(group.cost_us)),
                f"{100 * group.cpus.median() / cpus:.0f}",
                cell(gpu),
                number(group.update_ms.median()),
                f"{group.copy_us.median():.0f} µs ({group.copy_share.median():.2%})"
                if group.copy_us.max() > 0.0
                else "none",
            )
        )
    columns = ["PPO, CartPole-v0, 128", "document: time [s]", "CPU [%]", "GPU [%]", "update [ms]",
               "here: time [s]", "per step [µs]", "CPU [%]", "GPU [%]", "update [ms]",
               "a copy (of the time)"]  # fmt: skip
    return table(columns, rows)


def _advice(results: Results[Any], config: Config) -> str:
    parts = []
    for algorithm, frequencies in COPY_EVERY.items():
        rows = []
        for size in config.sizes:
            gain = partial(_gain, results, algorithm, size)
            beside = "–" if algorithm == DDPG else gain(placement=BESIDE).mark
            rows.append(
                (
                    size,
                    spread(_costs(results, "grid", algorithm=algorithm, size=size)),
                    gain(placement=COPY).mark,
                    *(gain(every=every).mark for every in frequencies[1:]),
                    beside,
                    gain(who=OURS, every=0).mark,
                )
            )
        unit = "steps" if algorithm == DDPG else "episodes"
        columns = [f"{algorithm}: hidden layers", "cpu [µs per step]", "a copy acts",
                   *(f"every {every} {unit}" for every in frequencies[1:]), "actor beside critic",
                   "ours"]  # fmt: skip
        parts.append(table(columns, rows))
    return "\n\n".join(parts)


def _draw(made: Report, results: Results[Any], config: Config) -> None:
    grid = results.part("grid")
    figure, axes = pictures.panels(3, size=(11, 3.6), columns=3, sharey=True)
    names = {(TEXTBOOK, CPU): "textbook", (TEXTBOOK, BESIDE): "side by side", (OURS, CPU): "ours"}
    by_name = pictures.colours(list(names.values()))
    for each, algorithm in zip(axes, COPY_EVERY, strict=True):
        series: dict[str, dict[float, list[float]]] = {}
        frame = grid[(grid.algorithm == algorithm) & (grid.every <= 1)]
        for (who, placement), group in frame.groupby(["who", "placement"], sort=False):
            if (who, placement) in names:
                series[names[who, placement]] = {
                    float(config.sizes.index(size)): list(part.cost_us)
                    for size, part in group.groupby("size", sort=False)
                }
        pictures.lines(each, series, colour=by_name, log="y", xlabel="hidden layers")
        each.set_xticks(range(len(config.sizes)), config.sizes, fontsize=8)
        each.set_title(algorithm, loc="left", fontsize=10)
    axes[0].set_ylabel("time per environment step [µs]")
    made.pictures["grid"] = (figure, "Sampling and learning, per environment step.")
    figure, (left, right) = pictures.panels(2, size=(11, 3.8), columns=2)
    curves, ends = results.part("curves"), []
    for start, paint in (("fixed", COLOURS[1]), ("honest", COLOURS[0])):
        for row in curves[curves.start == start].itertuples():
            means = np.convolve(row.returns, np.ones(20) / 20, "valid")
            left.plot(range(20, 20 + len(means)), means, color=paint, linewidth=1.1)
        ends.append((float(means[-1]), f"textbook,\n{start} start", paint))
    left.axhline(SOLVED, color=pictures.GREY, linestyle=":")
    pictures.name_ends(left, ends, gap=0.14)
    left.set_xlabel("training episodes")
    left.set_ylabel("return, mean of 20")
    solved = results.part("solved").dropna(subset=["solved_s"])
    pictures.points(
        right,
        {str(size): list(group.solved_s) for size, group in solved.groupby("size", sort=False)},
        label="seconds until ours has solved CartPole-v0, by network",
    )
    made.pictures["cartpole"] = (
        figure,
        "Left: the textbook's learning curves, every seed a line. Right: medians and quartiles of "
        "seeds.",
    )
