"""Drives ours and gymnasium's SyncVectorEnv with the same seeds and actions; compares all bits.

Where lanes step an environment, mj_step does it too, beside them, against the same results.
"""

from copy import deepcopy
from itertools import pairwise
from typing import Any

import gymnasium
import numpy as np
import pytest
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


def with_every_engine(env: Any, num_envs: int, **kwargs: Any) -> dict[str, pyfastenv.FastVectorEnv]:
    """The environments as a user has them and, where lanes step those, with mj_step as well."""
    envs = pyfastenv.make_vec(env, num_envs, **kwargs)
    pools = {envs.stats()["engine"]: envs}
    if "lanes" in pools:
        pools["mujoco"] = pyfastenv.make_vec(env, num_envs, engine="mujoco", **kwargs)
    return pools


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
    space: gymnasium.Space[Any],
    rng: np.random.Generator,
    num_envs: int,
    dtype: Any = np.float32,
    most: float = 1e3,
) -> np.ndarray:
    """Uniform actions, a little beyond the bounds of a Box, or ``most`` where these are wider."""
    if isinstance(space, gymnasium.spaces.Discrete):
        return rng.integers(0, space.n, num_envs)
    low, high = np.maximum(space.low, -most), np.minimum(space.high, most)
    return (rng.uniform(1.1 * low, 1.1 * high, (num_envs, *space.shape))).astype(dtype)


def step_both(
    ours: Any, theirs: Any, num_steps: int, *, seed: int = 0, where: str = "", most: float = 1e3
) -> int:
    """Steps both under the same random actions, every bit of the results alike.

    With autoreset disabled, what ends is reset.

    Returns:
        How many episodes ended.
    """
    rng = np.random.default_rng(seed)
    space, num_envs, ended = ours.single_action_space, ours.num_envs, 0
    disabled = ours.autoreset_mode == AutoresetMode.DISABLED
    for step in range(num_steps):
        actions = random_actions(space, rng, num_envs, space.dtype, most)
        result = ours.step(actions)
        assert_same(result, theirs.step(actions), f"{where} step {step}")
        ends = result[2] | result[3]
        ended += int(ends.sum())
        if disabled and ends.any():
            results = [envs.reset(options={"reset_mask": ends}) for envs in (ours, theirs)]
            assert_same(*results, f"{where} reset after step {step}")
    return ended


def both_engines(env: Any, num_envs: int, **kwargs: Any) -> list[pyfastenv.FastVectorEnv]:
    """The same environments with each engine, lanes first."""
    return [
        pyfastenv.make_vec(env, num_envs, engine=engine, **kwargs) for engine in ("lanes", "mujoco")
    ]


def compare_engines(env: Any, num_envs: int = 9, num_steps: int = 60) -> dict[str, Any]:
    """Runs lanes and mj_step under the same actions, all bits alike; returns lanes' stats."""
    lanes, mujoco = both_engines(env, num_envs, num_threads=2, max_episode_steps=25)
    assert_same(lanes.reset(seed=3), mujoco.reset(seed=3))
    step_both(lanes, mujoco, num_steps, most=1.0 / 1.1)  # from -1 to 1
    assert lanes.get_state().tobytes() == mujoco.get_state().tobytes()
    return lanes.stats()


def random_policy(
    envs: Any, *hidden: int, num_policies: int = 1, seed: int = 0, log_std: float = 0.0
) -> pyfastenv.PolicySpec:
    """Policies of random weights: Gaussian, or categorical where actions are discrete."""
    rng = np.random.default_rng(seed)
    space = envs.single_action_space
    discrete = isinstance(space, gymnasium.spaces.Discrete)
    outputs = int(space.n) if discrete else space.shape[0]
    sizes = list(pairwise((envs.obs_size, *hidden, outputs)))
    return pyfastenv.PolicySpec(
        weights=[rng.normal(0, 0.3, (num_policies, a, b)).astype(np.float32) for a, b in sizes],
        biases=[np.zeros((num_policies, b), np.float32) for _, b in sizes],
        distribution="categorical" if discrete else "gaussian",
        log_std=None if discrete else np.full((num_policies, outputs), log_std, np.float32),
    )


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
    pools = with_every_engine(
        task or env_id,
        num_envs,
        autoreset_mode=mode,
        num_threads=num_threads,
        max_episode_steps=max_episode_steps,
        **kwargs,
    )

    def same(method: str, *args: Any, **kwargs: Any) -> Any:
        """A call's result, which is everybody's."""
        expected = getattr(theirs, method)(*args, **deepcopy(kwargs))  # it empties options
        for engine, ours in pools.items():
            where = f"{env_id} {mode} step {step} {method}, engine {engine}"
            assert_same(getattr(ours, method)(*args, **deepcopy(kwargs)), expected, where)
        return expected

    rng = np.random.default_rng(seed)
    episodes = step = 0
    try:
        same("reset", seed=seed)
        for step in range(num_steps):
            actions = random_actions(theirs.single_action_space, rng, num_envs, dtype)
            result = same("step", actions)
            ended = result[2] | result[3]
            episodes += int(ended.sum())
            if mode == AutoresetMode.DISABLED.value and ended.any():
                same("reset", options={"reset_mask": ended})
            if (step + 1) % reset_every == 0:
                mask = rng.random(num_envs) < 0.5
                mask[rng.integers(num_envs)] = True
                seeds = [int(s) if s % 3 else None for s in rng.integers(0, 2**40, num_envs)]
                same("reset", seed=seeds, options={"reset_mask": mask})
    finally:
        for envs in (*pools.values(), theirs):
            envs.close()
    return episodes


def wrong_mode(library: str, needed: str, mode: str) -> Any:
    """Expects the sentence about environments whose autoreset mode a library cannot use."""
    message = f"{library} needs environments made with autoreset_mode='{needed}', "
    message += f"got autoreset_mode='{mode}'"
    return pytest.raises(ValueError, match=f"^{message}$")
