"""DeepMind's dm_env: one environment as a ``dm_env.Environment``. Needs dm-env >= 1.6.

Termination is a LAST step with discount 0, truncation one with discount 1; the step after a LAST
one starts the next episode, whatever the action.
"""

from __future__ import annotations

from typing import Any

import dm_env
import gymnasium
import numpy as np
from dm_env import specs

from pyfastenv.tasks.language.task import Task
from pyfastenv.tasks.pool.make import make


def make_dm_env(
    env_id: str | type[Task], *, seed: int | None = None, **kwargs: Any
) -> dm_env.Environment:
    """Makes one environment.

    Args:
        env_id: As for :func:`pyfastenv.make_vec`: ``"HalfCheetah-v5"``, an own task …
        seed: For the first episode; the later ones continue its random stream.
        **kwargs: See :class:`pyfastenv.FastEnv`, and ``max_episode_steps``.
    """
    return to_dm_env(make(env_id, **kwargs), seed=seed)


def to_dm_env(env: gymnasium.Env[Any, Any], *, seed: int | None = None) -> dm_env.Environment:
    """A gymnasium environment as a ``dm_env.Environment``, whose ``close`` closes it.

    Args:
        env: One environment, with its wrappers; Box and Discrete spaces, Dicts of observations.
        seed: For the first episode.
    """
    return DmEnv(env, seed)


class DmEnv(dm_env.Environment):
    """Use :func:`make_dm_env` or :func:`to_dm_env`."""

    def __init__(self, env: gymnasium.Env[Any, Any], seed: int | None):
        self.env = env
        self._seed = seed
        self._ended = True
        space = env.observation_space
        self._observation_spec = (
            {name: _to_spec(part, name) for name, part in space.spaces.items()}
            if isinstance(space, gymnasium.spaces.Dict)
            else _to_spec(space, "observation")
        )
        self._action_spec = _to_spec(env.action_space, "action")

    def reset(self) -> dm_env.TimeStep:
        """Starts an episode."""
        obs, _ = self.env.reset(seed=self._seed)
        self._seed = None
        self._ended = False
        return dm_env.restart(obs)

    def step(self, action: Any) -> dm_env.TimeStep:
        """Runs one step, or starts the next episode (before the first, and after a LAST step)."""
        if self._ended:
            return self.reset()
        obs, reward, terminated, truncated, _ = self.env.step(action)
        self._ended = terminated or truncated
        if terminated:
            return dm_env.termination(reward, obs)
        if truncated:
            return dm_env.truncation(reward, obs)
        return dm_env.transition(reward, obs)

    def observation_spec(self) -> Any:
        """Shape, dtype and bounds of observations; of a Dict's, by name."""
        return self._observation_spec

    def action_spec(self) -> specs.BoundedArray:
        """Shape, dtype and bounds of actions."""
        return self._action_spec

    def render(self) -> Any:
        """A frame, with ``render_mode="rgb_array"``."""
        return self.env.render()

    def close(self) -> None:
        """Closes the environment."""
        self.env.close()


def _to_spec(space: gymnasium.Space[Any], name: str) -> specs.Array:
    if isinstance(space, gymnasium.spaces.Discrete):
        return specs.DiscreteArray(int(space.n), dtype=np.int64, name=name)
    assert isinstance(space, gymnasium.spaces.Box)
    if np.isinf(space.low).all() and np.isinf(space.high).all():
        return specs.Array(space.shape, space.dtype, name)
    return specs.BoundedArray(space.shape, space.dtype, space.low, space.high, name)
