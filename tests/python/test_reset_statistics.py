"""Resets are distributed as gymnasium's, and environments and episodes are independent.

Equal seeds give equal bits (test_parity.py); that says nothing of environments that share a stream,
or of later episodes, whose starts come from the middle of a stream. Here gymnasium's starts have
other seeds than ours, and the two are compared as samples: Kolmogorov-Smirnov, mean and variance of
every dimension of the observation. Bounds are Bonferroni's over everything one test compares; seeds
are fixed, so a test that passes once passes always.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import gymnasium
import numpy as np
import pytest
from distributions import Starts, assert_distributed_alike, assert_independent
from meta_references import REFERENCES as META_REFERENCES
from parity import GYMNASIUM_IDS, META_IDS, MODES

import pyfastenv

NUM_ENVS = 4_000
EPISODES = 3
SIGNIFICANCE = 1e-3  # of a whole test, if the distributions are equal
SEED = 5
THEIR_SEED = 10**9  # far from ours
FAST_IDS = ["CartPole-v1", "Pendulum-v1", "InvertedPendulum-v5", "HalfCheetahDir-v5", "Hopper-v4"]


@cache
def gymnasium_starts(env_id: str) -> Starts:
    """First observations of gymnasium's environment, every one from a seed of its own."""
    if env_id in META_IDS:
        env: gymnasium.Env[Any, Any] = META_REFERENCES[env_id]()
    else:
        env = gymnasium.make(env_id, disable_env_checker=True)
    starts = np.stack([env.reset(seed=THEIR_SEED + i)[0] for i in range(NUM_ENVS)])
    env.close()
    return starts.astype(np.float64)


def our_starts(env_id: str, mode: str, seed: int | None) -> Iterator[Starts]:
    """First observations of the episodes 1, 2, … of every environment."""
    envs = pyfastenv.make_vec(
        env_id,
        NUM_ENVS,
        autoreset_mode=mode,
        obs_dtype="float64",  # in float32 two starts may be equal at random
        max_episode_steps=1,
        infos=False,
    )
    rng = np.random.default_rng(SEED)
    space = envs.single_action_space
    obs, _ = envs.reset(seed=seed)
    for _ in range(EPISODES):
        yield obs.astype(np.float64)
        if hasattr(space, "n"):
            actions = rng.integers(0, space.n, NUM_ENVS)
        else:
            actions = rng.uniform(space.low, space.high, (NUM_ENVS, *space.shape))
        obs, _, terminations, truncations, _ = envs.step(actions)
        assert truncations.all()
        if mode == "NextStep":
            obs, _, terminations, truncations, _ = envs.step(actions)
            assert not (terminations | truncations).any()
        elif mode == "Disabled":
            obs, _ = envs.reset(options={"reset_mask": truncations})
    envs.close()


def check(env_id: str, mode: str, seed: int | None = SEED) -> None:
    theirs = gymnasium_starts(env_id)
    each = SIGNIFICANCE / (3 * EPISODES)
    before: Starts | None = None
    seen: list[Starts] = []
    for episode, ours in enumerate(our_starts(env_id, mode, seed), start=1):
        try:
            assert_distributed_alike(ours, theirs, each)
            assert_independent(ours[:-1], ours[1:], each)  # neighbours
            if before is not None:
                assert_independent(before, ours, each)  # an environment's episodes
        except AssertionError as error:
            raise AssertionError(f"{env_id}, {mode}, episode {episode}: {error}") from None
        before = ours
        seen.append(ours)
    every = np.concatenate(seen)
    assert len(np.unique(every, axis=0)) == len(every), f"{env_id}, {mode}: two starts are equal"


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("env_id", FAST_IDS)
def test_starts_are_distributed_as_gymnasiums(env_id: str, mode: str) -> None:
    check(env_id, mode)


@pytest.mark.slow
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    "env_id", [env_id for env_id in GYMNASIUM_IDS + META_IDS if env_id not in FAST_IDS]
)
def test_starts_of_the_others(env_id: str, mode: str) -> None:
    check(env_id, mode)


def test_starts_without_seeds() -> None:
    """Seeds from the system's entropy: environments differ, and differ from run to run."""
    first, second = (next(our_starts("InvertedPendulum-v5", "NextStep", None)) for _ in range(2))
    assert len(np.unique(np.concatenate([first, second]), axis=0)) == 2 * NUM_ENVS


# ---- the comparisons see what they are for -------------------------------------------------------

MISTAKES: dict[str, Callable[[Starts], Any]] = {
    "noise 6 % too small": lambda x: 0.94 * x,
    "shifted by a tenth of a deviation": lambda x: x + 0.13 * x.std(axis=0),
    "normal instead of uniform": lambda x: np.random.default_rng(0).normal(0, x.std(0), x.shape),
    "no noise": lambda x: 0.0 * x,
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_another_distribution_is_seen(mistake: str) -> None:
    theirs = gymnasium_starts("InvertedPendulum-v5")
    ours = next(our_starts("InvertedPendulum-v5", "NextStep", SEED))
    assert_distributed_alike(ours, theirs, SIGNIFICANCE)
    with pytest.raises(AssertionError):
        assert_distributed_alike(MISTAKES[mistake](ours), theirs, SIGNIFICANCE)


def test_streams_that_depend_on_each_other_are_seen() -> None:
    ours = next(our_starts("InvertedPendulum-v5", "NextStep", SEED))
    assert_independent(ours[:-1], ours[1:], SIGNIFICANCE)
    alike = ours.copy()
    alike[7] = alike[6]  # two environments, one seed
    with pytest.raises(AssertionError, match="equal rows"):
        assert_independent(alike[:-1], alike[1:], SIGNIFICANCE)
    mixed = ours[1:] + 0.15 * ours[:-1]
    with pytest.raises(AssertionError, match="correlated"):
        assert_independent(ours[:-1], mixed, SIGNIFICANCE)
