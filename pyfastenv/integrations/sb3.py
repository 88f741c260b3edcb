"""Stable-Baselines3: the environments as a ``VecEnv``. Needs stable-baselines3 >= 2.0.

The VecEnv contract, as DummyVecEnv of 2.9 keeps it: the row of an ending step is the first
observation of the next episode, its last one is in ``info["terminal_observation"]``, and
``info["TimeLimit.truncated"]`` says that only time ended it. So SAME_STEP is the mode.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode
from numpy.typing import NDArray
from stable_baselines3.common.vec_env import VecEnv, VecMonitor

from pyfastenv.integrations import require
from pyfastenv.tasks.language.task import Task
from pyfastenv.tasks.pool.make import make_vec
from pyfastenv.vector.rows import Row, info_rows
from pyfastenv.vector.vector_env import FastVectorEnv

Indices = int | Iterable[int] | None


def make_sb3(
    env_id: str | type[Task], num_envs: int = 1, *, seed: int | None = None, **kwargs: Any
) -> VecEnv:
    """Stands for ``make_vec_env``: environments with episode statistics, seeded.

    Args:
        env_id: As for :func:`pyfastenv.make_vec`: ``"HalfCheetah-v5"``, an own task …
        num_envs: How many.
        seed: Environment i starts with ``seed + i``.
        **kwargs: See :class:`pyfastenv.FastVectorEnv`; the autoreset mode is chosen here.
            ``infos=False`` saves the time it takes to make dicts of gymnasium's info entries.

    Returns:
        A ``VecMonitor``.
    """
    envs = make_vec(env_id, num_envs, autoreset_mode=AutoresetMode.SAME_STEP, **kwargs)
    venv = VecMonitor(to_sb3(envs))
    venv.seed(seed)
    return venv


def to_sb3(envs: FastVectorEnv) -> VecEnv:
    """The environments as a ``VecEnv``, whose ``close`` closes them.

    Raises:
        ValueError: Their autoreset mode is not SAME_STEP.
    """
    require(envs, AutoresetMode.SAME_STEP, "Stable-Baselines3", takes_dicts=True)
    return FastVecEnv(envs)


class FastVecEnv(VecEnv):
    """Use :func:`to_sb3`.

    Observations, rewards (float32), dones and infos are those of a DummyVecEnv of gymnasium's
    environments, bit for bit; a Dict space's observations are dicts, as ``MultiInputPolicy`` takes
    them. ``get_attr``, ``set_attr`` and ``env_method`` act on one
    :class:`~pyfastenv.vector.rows.Row` per environment.
    """

    def __init__(self, envs: FastVectorEnv):
        self.envs = envs
        self._rows = [Row(envs, i) for i in range(envs.num_envs)]
        self._actions: NDArray[Any] | None = None
        super().__init__(envs.num_envs, envs.single_observation_space, envs.single_action_space)
        self.metadata = self._rows[0].metadata

    # ---- reset and step ----------------------------------------------------------------------

    def reset(self) -> Any:
        """Starts all episodes, with what ``seed`` and ``set_options`` said since the last time."""
        seeds, options = self._seeds, self._options
        self._reset_seeds()
        self._reset_options()
        if all(one == options[0] for one in options):
            obs, infos = self.envs.reset(seed=seeds, options=options[0])
            self.reset_infos = info_rows(infos, self.num_envs)
            return obs
        results = [
            row.reset(seed=seed, options=one)
            for row, seed, one in zip(self._rows, seeds, options, strict=True)
        ]
        self.reset_infos = [info for _, info in results]
        every = [obs for obs, _ in results]
        if isinstance(every[0], Mapping):
            return {name: np.stack([obs[name] for obs in every]) for name in every[0]}
        return np.stack(every)

    def step_async(self, actions: NDArray[Any]) -> None:
        """Keeps the actions; :meth:`step_wait` steps (the calling thread is one of the pool)."""
        self._actions = actions

    def step_wait(
        self,
    ) -> tuple[Any, NDArray[np.float32], NDArray[np.bool_], list[dict[str, Any]]]:
        """Steps all environments; the last observation of an ended episode is in its info."""
        if self._actions is None:
            raise RuntimeError("step_wait: expected step_async before it")
        actions, self._actions = self._actions, None
        obs, rewards, terminations, truncations, infos = self.envs.step(actions)
        dones = terminations | truncations
        final_obs = infos.pop("final_obs", None)
        final_infos = infos.pop("final_info", {})
        diverged = infos.pop("diverged", None)
        rows = info_rows(infos, self.num_envs)
        if final_obs is not None:
            final_rows = info_rows(final_infos, self.num_envs)
            for i in np.flatnonzero(dones):
                self.reset_infos[i] = rows[i]
                rows[i] = {**final_rows[i], "terminal_observation": final_obs[i]}
                if diverged is not None and diverged[i]:
                    rows[i]["diverged"] = True
        for row, out_of_time in zip(rows, (truncations & ~terminations).tolist(), strict=True):
            row["TimeLimit.truncated"] = out_of_time
        return obs, rewards.astype(np.float32), dones, rows

    def close(self) -> None:
        """Closes the environments."""
        self.envs.close()

    # ---- one environment at a time -----------------------------------------------------------

    def _selected(self, indices: Indices) -> list[Row]:
        return [self._rows[i] for i in self._get_indices(indices)]

    def get_attr(self, attr_name: str, indices: Indices = None) -> list[Any]:
        """Attributes of :class:`Row`, or what ``set_attr`` has set."""
        return [getattr(row, attr_name) for row in self._selected(indices)]

    def set_attr(self, attr_name: str, value: Any, indices: Indices = None) -> None:
        """Sets attributes; physics changes through ``env_method("set_model_field", …)``.

        Raises:
            AttributeError: The environment's own attribute, such as a space.
        """
        for row in self._selected(indices):
            setattr(row, attr_name, value)

    def env_method(
        self, method_name: str, *method_args: Any, indices: Indices = None, **method_kwargs: Any
    ) -> list[Any]:
        """Calls a method of :class:`Row`: ``reset``, ``set_state``, ``set_model_field`` …"""
        return [
            getattr(row, method_name)(*method_args, **method_kwargs)
            for row in self._selected(indices)
        ]

    def env_is_wrapped(
        self, wrapper_class: type[gymnasium.Wrapper[Any, Any, Any, Any]], indices: Indices = None
    ) -> list[bool]:
        """False: there is nothing between the pool and its environments."""
        return [False for _ in self._get_indices(indices)]

    def get_images(self) -> Sequence[NDArray[np.uint8] | None]:
        """One frame per environment; Nones, with a warning, without ``render_mode``."""
        if self.render_mode != "rgb_array":
            warnings.warn(
                "get_images() without a render mode: make the environments with "
                "render_mode='rgb_array'",
                stacklevel=2,
            )
            return [None] * self.num_envs
        return list(self.envs.render() or ())
