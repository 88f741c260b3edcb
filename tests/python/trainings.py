"""What tests of several algorithms do with a training."""

from __future__ import annotations

import io
import math
from collections.abc import Callable
from typing import Any

import torch

from pyfastenv.training.evaluation import evaluate, make_eval_envs


def through_a_file(state: dict[str, Any]) -> dict[str, Any]:
    """What a checkpoint would give back."""
    file = io.BytesIO()
    torch.save(state, file)
    file.seek(0)
    loaded: dict[str, Any] = torch.load(file, weights_only=True)
    return loaded


def untimed(metrics: dict[str, float]) -> dict[str, float]:
    """Metrics but for those that no two runs share."""
    return {name: value for name, value in metrics.items() if not name.startswith("time/")}


def assert_goes_on_alike(algorithm: Any, resumed: Any, iterations: int) -> None:
    """The same metrics, to the last bit, in the next iterations."""
    for _ in range(iterations):
        assert untimed(algorithm.iterate()) == untimed(resumed.iterate())


def assert_learns_pendulum(
    config: Any, make: Callable[[Any], Any], iterations_per_evaluation: int
) -> Any:
    """Trains until it balances; returns the algorithm."""
    envs = make_eval_envs(config.env_id, {"num_threads": 1}, 20)

    def score() -> float:
        return evaluate(envs, algorithm.eval_policy(), 20, seed=12_345).metrics()["eval/return"]

    algorithm = make(config)
    assert score() < -900.0
    best = -math.inf
    while best < -300.0 and algorithm.global_step < config.total_steps:
        for _ in range(iterations_per_evaluation):
            algorithm.iterate()
        best = score()
    assert best > -300.0  # the best there is: about -150
    envs.close()
    return algorithm
