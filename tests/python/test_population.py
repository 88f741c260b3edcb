"""Populations of small policies: vectors become networks, each plays episodes of its own."""

from typing import Any

import numpy as np
import pytest

import pyfastenv
from pyfastenv.sampling.population import evaluate_population

SIZES = (11, 8, 3)
VECTORS = np.random.default_rng(0).normal(size=(5, 11 * 8 + 8 + 8 * 3 + 3))


def policies(vectors: Any = VECTORS) -> pyfastenv.PolicySpec:
    return pyfastenv.PolicySpec.of_vectors(vectors, SIZES, distribution="deterministic")


def make(num_envs: int, **kwargs: Any) -> Any:
    return pyfastenv.make_vec("Hopper-v5", num_envs, **{"autoreset_mode": "SameStep", **kwargs})


def test_outcomes_are_those_of_stepping_each_policy() -> None:
    """Episodes of different lengths; the second of each policy by another seed."""
    found = evaluate_population(make(10, max_episode_steps=70), policies(), seed=7)
    one = make(1, max_episode_steps=70)
    for k, vector in enumerate(VECTORS):
        w1, b1, w2, b2 = np.split(vector.astype(np.float32), np.cumsum([88, 8, 24]))
        for n in range(2):
            obs, _ = one.reset(seed=7 + n)
            total, length, over = 0.0, 0, False
            while not over:
                hidden = np.tanh(obs.astype(np.float32) @ w1.reshape(11, 8) + b1)
                action = np.tanh(hidden @ w2.reshape(8, 3) + b2)
                obs, rewards, terminations, truncations, infos = one.step(action)
                total, length = total + rewards[0], length + 1
                over = terminations[0] or truncations[0]
            assert found.lengths[k, n] == length
            np.testing.assert_allclose(found.returns[k, n], total, rtol=1e-3)
            np.testing.assert_allclose(found.final_obs[k, n], infos["final_obs"][0], atol=1e-2)
            x = infos["final_info"]["x_position"][0]
            np.testing.assert_allclose(found.infos["x_position"][k, n], x, atol=1e-2)
    assert len(set(found.lengths.ravel())) > 3


def test_outcomes_do_not_depend_on_threads_or_neighbours() -> None:
    found = evaluate_population(make(5, num_threads=1), policies(), seed=0)
    again = evaluate_population(make(5, num_threads=3), policies(), seed=0)
    alone = evaluate_population(make(1), policies(VECTORS[3:4]), seed=0)
    assert found.returns.tobytes() == again.returns.tobytes()
    assert found.returns[3].tobytes() == alone.returns[0].tobytes()


MISTAKES: list[tuple[Any, str]] = [
    (lambda: policies(VECTORS[:, :-1]), r"vectors: expected \(K, 123\), got \(5, 122\)"),
    (lambda: evaluate_population(make(7), policies(), 0), "envs: expected a multiple of 5, one"),
    (
        lambda: evaluate_population(make(5, autoreset_mode="NextStep"), policies(), 0),
        "envs: expected autoreset_mode SameStep, got NextStep",
    ),
    (
        lambda: evaluate_population(make(5, max_episode_steps=0), policies(), 0),
        "envs: without max_episode_steps an episode need not end",
    ),
    (lambda: evaluate_population(make(5), policies(), -1), "seed: expected at least 0, got -1"),
]


@pytest.mark.parametrize(("mistake", "message"), MISTAKES, ids=[m[:25] for _, m in MISTAKES])
def test_mistakes(mistake: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        mistake()
