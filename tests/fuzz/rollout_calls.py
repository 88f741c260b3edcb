"""Rollouts as calls: their columns are what step gives for the recorded actions."""

import random
from collections.abc import Collection
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from kinds import kind, own_reference
from reference import Result
from session import Plan, Session

import pyfastenv


@kind(
    1,
    "mode steps policy policy_id nan",
    lambda s: own_reference(s) and s.settings.torch and not s.extreme,
)
def rollout(s: Session, rng: random.Random, fault: str | None) -> Plan:
    num_steps = rng.randint(1, 8)
    n = s.settings.num_envs
    policy: Any = _policy(s, rng.randrange(3), nan=fault == "nan")
    policy_id = [rng.randrange(2) for _ in range(n)]
    errors = s.model.errors(s.model.ids, reset=True)
    if s.settings.mode == "Disabled" or fault == "nan":
        errors.add(ValueError)
    if fault == "steps":
        num_steps = 0
        errors.add(ValueError)
    elif fault == "policy":
        policy = object()
        errors.add(TypeError)
    elif fault == "policy_id":
        policy_id[-1] = rng.choice([2, -1])
        errors.add(IndexError)

    def call() -> Any:
        out = None
        if num_steps:
            out = pyfastenv.RolloutBatch.allocate(s.pool, num_steps, dtype=torch.float64)
        return pyfastenv.rollout(s.pool, policy, num_steps, policy_id=policy_id, out=out)

    def check(batch: Any, failed: Collection[int]) -> None:
        assert not failed, f"rollout failed in {failed}"
        for i in s.model.ids:
            _check_rollout(s, i, batch, policy, policy_id[i])

    text = f"rollout({num_steps} steps, policy_id={policy_id})"
    return Plan(text, call, errors, check)


def _policy(s: Session, seed: int, *, nan: bool) -> Any:
    """Two small policies that fit the session's environments."""
    space = s.pool.single_action_space
    rng = np.random.default_rng(seed)
    obs_size = s.pool.single_observation_space.shape[0]  # type: ignore[index]
    outputs = int(space.n) if s.discrete else space.shape[0]  # type: ignore[attr-defined, index]
    sizes = [obs_size, 8, outputs]
    layers = list(pairwise(sizes))
    weights = [rng.normal(0, 0.3, (2, a, b)).astype(np.float32) for a, b in layers]
    if nan:
        weights[0][0, 0, 0] = np.nan
    return pyfastenv.PolicySpec(
        weights=weights,
        biases=[np.zeros((2, b), np.float32) for _, b in layers],
        distribution="categorical" if s.discrete else "gaussian",
        log_std=None if s.discrete else np.full((2, outputs), -0.5, np.float32),
    )


def _check_rollout(s: Session, i: int, batch: Any, policy: Any, policy_id: int) -> None:
    """Environment i's column: what step gives for its actions; then its policy's own stream."""
    envs = s.references[i].envs
    before = envs.get_state()
    actions = batch.actions[:, i].numpy()
    if not s.discrete:
        space: Any = s.pool.single_action_space
        actions = np.clip(actions, space.low, space.high)
    num_steps = batch.num_steps
    after = [batch.obs[t + 1, i] for t in range(num_steps - 1)] + [batch.last_obs[i]]
    for t in range(num_steps):
        where = f"rollout, environment {i}, step {t}"
        autoreset = s.model.envs[i].autoreset
        expected = s.step_reference(i, actions[t])
        assert isinstance(expected, Result), f"{where}: {expected}"
        assert bool(batch.autoresets[t, i]) == autoreset, where
        said = (
            float(batch.rewards[t, i]),
            bool(batch.terminations[t, i]),
            bool(batch.truncations[t, i]),
        )
        assert said == tuple(expected[1:4]), f"{where}: {said}, expected {expected[1:4]}"
        obs = after[t].numpy().astype(expected.obs.dtype)
        assert obs.tobytes() == expected.obs.tobytes(), f"{where}: obs {obs}"
    envs.set_state(before)
    out = pyfastenv.RolloutBatch.allocate(envs, num_steps, dtype=torch.float64)
    alone = pyfastenv.rollout(envs, policy, num_steps, policy_id=[policy_id], out=out)
    assert torch.equal(alone.actions[:, 0], batch.actions[:, i]), f"actions of environment {i}"
    assert np.array_equal(envs.get_state(), s.pool.get_state([i])), f"state of environment {i}"
