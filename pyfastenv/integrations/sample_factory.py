"""Sample Factory: the environments as one batched environment. For sample-factory 2.1.

Its pins (gymnasium < 1, NumPy < 2) and ours exclude each other, so pip installs the two together
only with ``--no-deps``. With gymnasium >= 1 one thing in it is broken, the two attributes that one
of its wrappers expects gymnasium to pass on; :func:`register_sample_factory` mends that.

Sample Factory takes the row that a step returns as the next observation, so SAME_STEP is the mode.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode
from numpy.typing import NDArray
from sample_factory.algo.utils import make_env
from sample_factory.envs.env_utils import register_env

from pyfastenv.integrations import require, tiled_picture
from pyfastenv.tasks.pool.make import make_vec
from pyfastenv.vector.vector_env import FastVectorEnv

StepReturn = tuple[
    NDArray[Any], NDArray[np.float32], NDArray[np.bool_], NDArray[np.bool_], dict[str, Any]
]


def register_sample_factory(env_id: str, num_envs: int, **kwargs: Any) -> str:
    """Registers environments with Sample Factory; the name returned is the one for ``--env``.

    They need ``--batched_sampling=True`` and ``--num_envs_per_worker=1``. Each worker has a pool of
    ``num_envs``, with as many threads as the CPUs that Sample Factory leaves to it. Register in
    the main process.

    Args:
        env_id: As for :func:`pyfastenv.make_vec`: ``"HalfCheetah-v5"``, an own task …
        num_envs: How many per worker.
        **kwargs: See :class:`pyfastenv.FastVectorEnv`; the autoreset mode is chosen here, and
            observations are float32 and gymnasium's info entries left out unless asked for.

    Returns:
        ``"pyfastenv_" + env_id``.
    """
    env_id = env_id.removeprefix("pyfastenv/")
    name = f"pyfastenv_{env_id}"  # it makes file names of it
    kwargs = {"obs_dtype": "float32", "infos": False, **kwargs}
    kwargs.setdefault("autoreset_mode", AutoresetMode.SAME_STEP)
    register_env(name, partial(_make, env_id, num_envs, kwargs))
    return name


# at module level and without closures: Sample Factory pickles it for the processes it spawns
def _make(
    env_id: str,
    num_envs: int,
    kwargs: dict[str, Any],
    name: str,
    cfg: Any,
    env_config: Any,
    render_mode: str | None = None,
) -> gymnasium.Env[Any, Any]:
    _pass_attributes_on()
    return to_sample_factory(make_vec(env_id, num_envs, render_mode=render_mode, **kwargs))


def _pass_attributes_on() -> None:
    """Gives a wrapper of Sample Factory what gymnasium's wrappers had by themselves until 1.0."""
    wrapper = make_env.BatchedListToDictWrapper
    wrapper.is_multiagent = property(lambda self: self.env.is_multiagent)
    wrapper.num_agents = property(lambda self: self.env.num_agents)


def to_sample_factory(envs: FastVectorEnv) -> gymnasium.Env[Any, Any]:
    """The environments as one environment of ``num_agents``, whose ``close`` closes them.

    Raises:
        ValueError: Their autoreset mode is not SAME_STEP.
    """
    require(envs, AutoresetMode.SAME_STEP, "Sample Factory")
    return FastSampleFactoryEnv(envs)


class FastSampleFactoryEnv(gymnasium.Env[Any, Any]):
    """Use :func:`register_sample_factory` or :func:`to_sample_factory`."""

    is_multiagent = True

    def __init__(self, envs: FastVectorEnv):
        self.envs = envs
        self.num_agents = envs.num_envs
        self.observation_space = envs.single_observation_space
        self.action_space = envs.single_action_space
        self.metadata = {k: v for k, v in envs.metadata.items() if k != "autoreset_mode"}
        self.render_mode = envs.render_mode

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[Any], dict[str, Any]]:
        """Starts all episodes.

        Args:
            seed: Sample Factory's number of this pool: environment i gets
                ``seed * num_envs + i``, so that no two pools share one.
            options: As for :meth:`FastVectorEnv.reset`.
        """
        if seed is not None:
            seed *= self.num_agents
        return self.envs.reset(seed=seed, options=options)

    def step(self, actions: Any) -> StepReturn:  # type: ignore[override]
        """One row per environment; ``truncated`` only where not ``terminated``, for bootstraps."""
        obs, rewards, terminations, truncations, infos = self.envs.step(actions)
        return obs, rewards.astype(np.float32), terminations, truncations & ~terminations, infos

    def render(self) -> NDArray[Any] | None:
        """One picture of all environments; None without ``render_mode="rgb_array"``."""
        return tiled_picture(self.envs)

    def close(self) -> None:
        """Closes the environments."""
        self.envs.close()
