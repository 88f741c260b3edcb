"""gymnasium-robotics beside ours, under the same seeds and actions.

``python tests/python/robotics_suite.py`` (``make parity NAME=suites``) compares every id for
1,000 steps and writes down how many numbers were equal. It goes on where it stopped.
"""

import enum
import types
import warnings
from functools import partial
from typing import Any

import counts
import gymnasium
import mujoco
import numpy as np
from parity import MODES

import pyfastenv
from pyfastenv.suites import robotics_ids

IDS = list(robotics_ids())
SHORT = 100  # steps of an episode at most, that there are starts to compare


def load(
    env_id: str, num_envs: int, mode: str, max_episode_steps: int | None = None
) -> gymnasium.vector.SyncVectorEnv:
    """gymnasium-robotics' own environments of an id."""
    register()
    _mend()
    make = partial(
        gymnasium.make, env_id, disable_env_checker=True, max_episode_steps=max_episode_steps
    )
    return gymnasium.vector.SyncVectorEnv([make] * num_envs, autoreset_mode=mode)


def register() -> None:
    """Makes gymnasium-robotics' ids known."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import gymnasium_robotics

        gymnasium.register_envs(gymnasium_robotics)


def _mend() -> None:
    """gymnasium-robotics 1.4.2 takes MuJoCo's enums for numbers, which MuJoCo 4's are no more."""
    from gymnasium_robotics.utils import mujoco_utils

    numbers = {
        name: enum.IntEnum(name, {k: int(v) for k, v in getattr(mujoco, name).__members__.items()})
        for name in ("mjtJoint", "mjtEq")
    }
    mujoco_utils.mujoco = types.SimpleNamespace(**{**vars(mujoco), **numbers})


def numbers_of(values: Any) -> Any:
    """An array of numbers; of objects None counts as nothing, as where gymnasium has no info."""
    if values.dtype == object:
        values = np.array([0.0 if value is None else value for value in values])
    return values.astype(np.float64)


def count_equal(ours: Any, theirs: Any, where: str) -> int:
    """How many numbers there are; all must be equal, whatever their types."""
    if isinstance(theirs, dict):
        assert set(ours) == set(theirs), f"{where}: keys {set(ours) ^ set(theirs)}"
        return sum(count_equal(ours[key], theirs[key], f"{where}[{key!r}]") for key in theirs)
    if isinstance(theirs, tuple):
        pairs = enumerate(zip(ours, theirs, strict=True))
        return sum(count_equal(a, b, f"{where}[{i}]") for i, (a, b) in pairs)
    if theirs is None:
        assert ours is None, where
        return 0
    if theirs.dtype == object and any(isinstance(each, dict | np.ndarray) for each in theirs):
        return count_equal(tuple(ours), tuple(theirs), where)
    np.testing.assert_array_equal(numbers_of(ours), numbers_of(theirs), where)
    return theirs.size


def compare(
    env_id: str,
    mode: str,
    num_steps: int,
    *,
    num_envs: int = 2,
    seed: int = 0,
    max_episode_steps: int | None = None,
) -> tuple[int, int]:
    """Runs both under the same seeds and actions; counts numbers compared and episodes ended."""
    theirs = load(env_id, num_envs, mode, max_episode_steps)
    ours = pyfastenv.make_vec(
        env_id, num_envs, autoreset_mode=mode, num_threads=2, max_episode_steps=max_episode_steps
    )
    assert ours.single_observation_space == theirs.single_observation_space
    assert ours.single_action_space == theirs.single_action_space
    rng = np.random.default_rng(seed)
    compared = count_equal(ours.reset(seed=seed), theirs.reset(seed=seed), f"{env_id}: reset")
    episodes = 0
    for step in range(num_steps):
        where = f"{env_id} {mode}, step {step}"
        actions = rng.uniform(-1.1, 1.1, ours.action_space.shape).astype(np.float32)
        results = ours.step(actions)
        compared += count_equal(results, theirs.step(actions), where)
        ended = results[2] | results[3]
        episodes += int(ended.sum())
        if mode == "Disabled" and ended.any():
            ours_reset, theirs_reset = (
                envs.reset(options={"reset_mask": ended}) for envs in (ours, theirs)
            )
            compared += count_equal(ours_reset, theirs_reset, f"{where}: reset")
    theirs.close()
    ours.close()
    return compared, episodes


def measure(env_id: str, num_steps: int) -> dict[str, Any]:
    """A row of the table: two environments, in one of the modes."""
    mode = MODES[IDS.index(env_id) % len(MODES)]
    limit = min(SHORT, gymnasium.spec(env_id).max_episode_steps or SHORT)
    numbers, episodes = compare(env_id, mode, num_steps // 2, seed=1, max_episode_steps=limit)
    return {"autoreset_mode": mode, "episodes": episodes, "numbers": numbers, "differences": 0}


if __name__ == "__main__":
    register()
    counts.run("robotics_parity", IDS, measure, __doc__, most_steps=SHORT)
