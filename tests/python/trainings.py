"""Helpers of several algorithms' tests, around a training."""

import io
import math
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from pyfastenv.runs import checkpoint
from pyfastenv.runs.evaluation import evaluate, make_eval_envs
from pyfastenv.runs.logger import read_metrics


def through_a_file(state: dict[str, Any]) -> dict[str, Any]:
    """The state that a checkpoint would give back."""
    file = io.BytesIO()
    torch.save(state, file)
    file.seek(0)
    loaded: dict[str, Any] = torch.load(file, weights_only=True)
    return loaded


def untimed(metrics: dict[str, float]) -> dict[str, float]:
    """Metrics but for those that no two runs share."""
    return {name: value for name, value in metrics.items() if not name.startswith("time/")}


def final_state(folder: Path) -> dict[str, Any]:
    return checkpoint.load(checkpoint.resolve(folder))["ranks"][0]


def difference(a: Any, b: Any, where: str = "") -> str:
    """Where two states differ by a bit; empty if nowhere."""
    if isinstance(a, dict) and isinstance(b, dict):
        if a.keys() != b.keys():
            return f"{where}: {sorted(a)} and {sorted(b)}"
        pairs = [(f"{where}[{key!r}]", a[key], b[key]) for key in a]
    elif isinstance(a, list | tuple) and isinstance(b, list | tuple):
        if len(a) != len(b):
            return f"{where}: lengths {len(a)} and {len(b)}"
        pairs = [(f"{where}[{i}]", x, y) for i, (x, y) in enumerate(zip(a, b, strict=True))]
    elif isinstance(a, Tensor):
        same = isinstance(b, Tensor) and a.dtype == b.dtype and torch.equal(a, b)
        return "" if same else f"{where}: tensors"
    else:
        return "" if a == b else f"{where}: {a} and {b}"
    return next(filter(None, (difference(x, y, name) for name, x, y in pairs)), "")


def assert_equal(a: Any, b: Any) -> None:
    """Equal to the last bit."""
    where = difference(a, b)
    assert not where, where


def untimed_rows(folder: Path) -> list[dict[str, float]]:
    return [untimed(row) for row in read_metrics(folder)]


def assert_same_run(a: Path, b: Path) -> None:
    assert_equal(final_state(a), final_state(b))
    assert untimed_rows(a) == untimed_rows(b)


def assert_learns(algorithm: Any, iterations: int, *, first: float, last: float) -> None:
    """Trains until its evaluations, every so many iterations, exceed ``last``; begins below
    ``first``."""
    config = algorithm.config
    envs = make_eval_envs(config.env_id, {**config.env_kwargs, "num_threads": 1}, 20)

    def score() -> float:
        return evaluate(envs, algorithm.eval_policy(), 20, seed=12_345).metrics()["eval/return"]

    assert score() < first
    best = -math.inf
    while best < last and algorithm.global_step < config.total_steps:
        for _ in range(iterations):
            algorithm.iterate()
        best = score()
    assert best > last
    envs.close()


def pendulum(obs: Tensor, actions: Tensor) -> Tensor:
    """gymnasium's Pendulum-v1: the observation after ``obs``."""
    theta = torch.atan2(obs[:, 1], obs[:, 0])
    speed = (obs[:, 2] + (15.0 * theta.sin() + 3.0 * actions[:, 0]) * 0.05).clamp(-8.0, 8.0)
    theta = theta + speed * 0.05
    return torch.stack((theta.cos(), theta.sin(), speed), 1)
