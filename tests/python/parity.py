"""Drives ours and gymnasium's SyncVectorEnv with the same seeds and actions; compares all bits."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode

import pyfastenv

GYMNASIUM_IDS = [
    env_id
    for env_id in pyfastenv.env_ids()
    if not env_id.startswith(("AntDir", "AntVel", "AntGoal", "HalfCheetahDir", "HalfCheetahVel"))
]
META_IDS = [env_id for env_id in pyfastenv.env_ids() if env_id not in GYMNASIUM_IDS]
MODES = [mode.value for mode in AutoresetMode]


def make_gymnasium(
    env_id: str, num_envs: int, mode: str, max_episode_steps: int | None = None, **kwargs: Any
) -> gymnasium.vector.SyncVectorEnv:
    return gymnasium.vector.SyncVectorEnv(
        [
            lambda: gymnasium.make(
                env_id, disable_env_checker=True, max_episode_steps=max_episode_steps, **kwargs
            )
        ]
        * num_envs,
        autoreset_mode=mode,
    )


def assert_same(ours: Any, theirs: Any, where: str = "result") -> None:
    """Equal structure, dtypes, shapes and values (NaN equals NaN)."""
    if isinstance(theirs, dict):
        assert isinstance(ours, dict), where
        assert set(ours) == set(theirs), f"{where}: keys {set(ours) ^ set(theirs)}"
        for key in theirs:
            assert_same(ours[key], theirs[key], f"{where}[{key!r}]")
    elif isinstance(theirs, tuple):
        assert len(ours) == len(theirs), where
        for i, (a, b) in enumerate(zip(ours, theirs, strict=True)):
            assert_same(a, b, f"{where}[{i}]")
    elif theirs is None:
        assert ours is None, where
    else:
        assert isinstance(ours, np.ndarray), where
        assert ours.dtype == theirs.dtype, f"{where}: dtype {ours.dtype}, expected {theirs.dtype}"
        assert ours.shape == theirs.shape, where
        if theirs.dtype == object:
            for i, (a, b) in enumerate(zip(ours, theirs, strict=True)):
                assert_same(a, b, f"{where}[{i}]")
        else:
            equal_nan = theirs.dtype.kind == "f"
            if not np.array_equal(ours, theirs, equal_nan=equal_nan):
                bad = np.argwhere(np.atleast_1d(ours != theirs))
                raise AssertionError(f"{where} differs at {bad[:4].tolist()}: {ours} vs {theirs}")


def random_actions(
    space: gymnasium.Space[Any], rng: np.random.Generator, num_envs: int, dtype: Any = np.float32
) -> np.ndarray:
    """Uniform actions, a little beyond the bounds of a Box."""
    if isinstance(space, gymnasium.spaces.Discrete):
        return rng.integers(0, space.n, num_envs)
    low, high = np.maximum(space.low, -1e3), np.minimum(space.high, 1e3)
    return (rng.uniform(1.1 * low, 1.1 * high, (num_envs, *space.shape))).astype(dtype)


def compare(
    env_id: str,
    mode: str,
    num_steps: int,
    *,
    num_envs: int = 4,
    seed: int = 0,
    dtype: Any = np.float32,
    reset_every: int = 701,
    num_threads: int = 2,
    max_episode_steps: int | None = None,
    task: Any = None,
    **kwargs: Any,
) -> int:
    """Runs both side by side, with masked resets in between. Returns the number of episodes ended.

    ``task`` is an own task that should equal gymnasium's environment. The first episodes are
    long-lived only where the robot survives random actions, so a time limit may be given to see
    truncations too.
    """
    theirs = make_gymnasium(env_id, num_envs, mode, max_episode_steps, **kwargs)
    ours = pyfastenv.make_vec(
        task or env_id,
        num_envs,
        autoreset_mode=mode,
        num_threads=num_threads,
        max_episode_steps=max_episode_steps,
        **kwargs,
    )
    rng = np.random.default_rng(seed)
    episodes = 0
    try:
        assert_same(ours.reset(seed=seed), theirs.reset(seed=seed), "reset")
        for step in range(num_steps):
            actions = random_actions(ours.single_action_space, rng, num_envs, dtype)
            result = ours.step(actions)
            assert_same(result, theirs.step(actions), f"{env_id} {mode} step {step}")
            ended = result[2] | result[3]
            episodes += int(ended.sum())
            if mode == AutoresetMode.DISABLED.value and ended.any():
                options = {"reset_mask": ended}
                assert_same(
                    ours.reset(options=dict(options)), theirs.reset(options=dict(options)), "mask"
                )
            if (step + 1) % reset_every == 0:
                mask = rng.random(num_envs) < 0.5
                mask[rng.integers(num_envs)] = True
                seeds = [int(s) if s % 3 else None for s in rng.integers(0, 2**40, num_envs)]
                options = {"reset_mask": mask}
                assert_same(
                    ours.reset(seed=seeds, options=dict(options)),
                    theirs.reset(seed=seeds, options=dict(options)),
                    "masked reset",
                )
    finally:
        ours.close()
        theirs.close()
    return episodes
