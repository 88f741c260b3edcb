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
from pyfastenv.experiments.baselines.textbook import (
    PLACEMENTS,
    POOL_SIZE,
    Run,
    TextbookDDPG,
    TextbookPPO,
)
from pyfastenv.experiments.clock import Clock
from pyfastenv.experiments.study import Contestant, Measurement, Row, Sizes, rounds
from pyfastenv.runs.evaluation import evaluate

PPO, POOL, DDPG = "PPO", "PPO + pool", "DDPG"
OURS, TEXTBOOK = "ours", "textbook"
CPU, COPY, BESIDE = "cpu", "cpu, a copy acts", "cpu, actor beside critic"
# episodes (PPO) or steps (DDPG) that are sampled with one copy of the policy
COPY_EVERY = {PPO: (1, 3, 10), POOL: (1, 3, 10), DDPG: (1, 10, 50, 200)}
SOLVED, WINDOW = 195.0, 100  # CartPole-v0: the mean of so many episodes in a row
ONE_CPU = "one CPU"  # both programs on a single one
LENGTH = 200  # steps of an episode of CartPole-v0 that succeeds, and of every one of Pendulum
_EVAL_SEED = 1_000_000


@dataclass(frozen=True, kw_only=True)
class Config(Sizes):
    """Document 001: the CPU samples, the GPU learns."""

    sizes: tuple[str, ...] = ("64", "64x64", "128", "128x128", "256", "256x256")
    """Hidden layers in the grid."""
    episodes: int = 500
    """Episodes of the document's table, with a hidden layer of 128, and of the learning curves."""
    table_rounds: int = 3
    """How often each contestant of that table trains."""
    grid_rounds: int = 4
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


def plan(config: Config) -> list[Measurement]:
    """The table, the grid, the trainings to the goal, the learning curves; then what needs CUDA."""
    table = [_textbook(PPO, "128", place, 1, config.episodes, None) for place in (CPU, COPY)]
    table.append(_ours(PPO, "128", 100 * config.episodes))
    made = rounds(config.table_rounds, "table", table)
    grid: list[Contestant] = []
    work, least = config.grid_episodes, 1_024 if config.quick else 8_192
    for algorithm, frequencies in COPY_EVERY.items():
        few = (frequencies[0], frequencies[-1])
        cases = [(CPU, every) for every in frequencies] + [(COPY, every) for every in few]
        cases += [] if algorithm == DDPG else [(BESIDE, 1)]
        for size in config.sizes:
            grid += [_textbook(algorithm, size, *case, work, LENGTH) for case in cases]
            grid.append(_ours(algorithm, size, max(least, LENGTH * work)))
    made += rounds(config.grid_rounds, "grid", grid)
    alone: list[Contestant] = []
    half = max(1, work // 2)
    for algorithm in COPY_EVERY:
        for size in dict.fromkeys((config.sizes[0], config.sizes[-1])):
            # as many steps of both learn in DDPG, which begins after an episode
            steps = LENGTH * (1 + half) if algorithm == DDPG else least
            alone.append(_textbook(algorithm, size, CPU, 1, half, LENGTH))
            alone.append(_ours(algorithm, size, steps, num_threads=1))
    made += rounds(config.grid_rounds, ONE_CPU, alone, apart=True)
    for seed in range(config.seeds):
        for size in dict.fromkeys((*config.sizes, "128")):
            about = {"size": size, "seed": seed}
            made.append(Measurement("solved", about, partial(solve, size, seed), 1.5))
    for seed in range(config.curve_seeds):
        for start in ("fixed", "honest"):
            run = partial(curve, config.episodes, start == "fixed", seed)
            about = {"start": start, "seed": seed}
            made.append(Measurement("curves", about, run, 0.1 * config.episodes))
    for place in (name for name, each in PLACEMENTS.items() if each.needs_cuda):
        on_gpu = [
            ("grid", _textbook(name, size, place, 1, config.grid_episodes, LENGTH))
            for name in COPY_EVERY
            for size in config.sizes
        ]
        on_gpu.append(("table", _textbook(PPO, "128", place, 1, config.episodes, None)))
        for part, (about, training, seconds) in on_gpu:
            made.append(Measurement(part, about | {"round": 0}, training, seconds, True))
    return made


def _textbook(
    algorithm: str, size: str, placement: str, every: int, episodes: int, length: int | None
) -> Contestant:
    about = {"algorithm": algorithm, "size": size, "who": TEXTBOOK}
    run = partial(textbook_run, algorithm, size, placement, every, episodes, length)
    return about | {"placement": placement, "every": every}, run, 0.1 * episodes + 0.5


def _ours(algorithm: str, size: str, env_steps: int, num_threads: int = 0) -> Contestant:
    about = {"algorithm": algorithm, "size": size, "who": OURS, "placement": CPU, "every": 0}
    return about, partial(our_run, algorithm, size, env_steps, num_threads), env_steps * 3e-5 + 0.5


def _widths(size: str) -> tuple[int, ...]:
    return tuple(int(width) for width in size.split("x"))


def textbook_run(
    algorithm: str, size: str, placement: str, every: int, episodes: int, length: int | None
) -> Row:
    """One training of the textbook's program, with the document's fixed start."""
    options: dict[str, Any] = {"placement": placement, "copy_every": every}
    with Clock(gpu=PLACEMENTS[placement].needs_cuda) as clock:
        if algorithm == DDPG:
            trained = TextbookDDPG(_widths(size), minimum=LENGTH, **options).train(1 + episodes)
        else:
            options |= {"pool_size": POOL_SIZE if algorithm == POOL else 1, "length": length}
            trained = TextbookPPO(_widths(size), **options).train(episodes)
    return _row(clock, trained)


def our_run(algorithm: str, size: str, env_steps: int, num_threads: int = 0) -> Row:
    """One training of ours with the textbook's hyper-parameters, honest starts.

    It has the same networks' sizes, passes over the data and minibatches per step, and at least
    ``env_steps`` steps, rounded up to whole iterations.
    """
    torch.manual_seed(0)
    trained = Run()
    options: dict[str, Any] = {"hidden_sizes": _widths(size), "total_steps": 10**9, "gamma": 0.98}
    options["num_threads"] = num_threads
    with Clock() as clock:
        trainer: ppo.PPO | ddpg.DDPG
        if algorithm == DDPG:
            options |= {"policy_learning_rate": 3e-4, "critic_learning_rate": 3e-3, "num_steps": 25}
            options |= {"buffer_size": 10_000, "learning_starts": LENGTH}
            # noise: of half the action space's width; the textbook's is 0.01 of [-2, 2]
            trainer = ddpg.DDPG(ddpg.Config(noise=0.005, **options))
        else:
            options |= {"update_epochs": 10, "pool_size": POOL_SIZE if algorithm == POOL else 1}
            trainer = ppo.PPO(ppo.Config.preset("CartPole-v0", **options))
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
        "cpu_us": 1e6 * clock.seconds * clock.cpus / trained.env_steps,
        "update_ms": 1e3 * trained.update_s / max(trained.updates, 1),
        "sample_share": trained.sample_s / clock.seconds,
        "copy_share": trained.copy_s / clock.seconds,
        "copy_us": 1e6 * trained.copy_s / max(trained.updates, 1),
    }


def first_solved(returns: Sequence[float]) -> int | None:
    """The episode after which the last 100 have a mean of 195, or None."""
    sums = np.concatenate(([0.0], np.cumsum(returns)))
    solved = np.flatnonzero(sums[WINDOW:] - sums[:-WINDOW] >= WINDOW * SOLVED)
    return int(solved[0]) + WINDOW - 1 if len(solved) else None


def curve(num_episodes: int, fixed_start: bool, seed: int) -> Row:
    """Trains the textbook's PPO on the CPU; evaluates it on the fixed start and on honest ones."""
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
    torch.manual_seed(seed)
    began = time.perf_counter()
    trainer = ppo.PPO(ppo.Config.preset("CartPole-v0", seed=seed, hidden_sizes=_widths(size)))
    lengths: list[float] = []  # in CartPole also the returns
    solved = False
    while not solved and trainer.global_step < max_steps:
        trainer.iterate()
        assert trainer.episodes is not None
        lengths += trainer.episodes.lengths.tolist()
        solved = len(lengths) >= WINDOW and bool(np.mean(lengths[-WINDOW:]) >= SOLVED)
    total = time.perf_counter() - began
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
