"""One environment of a pool, for whoever addresses environments one by one.

That is gymnasium's ``call`` and ``get_attr``, and several trainers. Everything here is slow
(Python, one environment at a time) except :func:`info_rows`, which is on the way of every step.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy
from typing import Any, Protocol

import gymnasium
import numpy as np
from gymnasium.envs.registration import EnvSpec
from numpy.typing import ArrayLike, NDArray

from pyfastenv.vector.obs_views import row_of

# arguments of FastVectorEnv that FastEnv chooses itself, and of gymnasium.make_vec
_POOL_ARGUMENTS = (
    *("num_envs", "num_threads", "autoreset_mode", "max_episode_steps"),
    *("vectorization_mode", "vector_kwargs", "wrappers"),
)
# entries of infos that no environment makes, there without ``infos``, too
NOT_OWN = ("final_obs", "final_info", "diverged", "env_id")


def info_columns(rows: Sequence[Mapping[str, float]]) -> dict[str, NDArray[np.float64]]:
    """Numbers ``(len(rows),)`` by name, NaN where a row has none of that name."""
    names = dict.fromkeys(name for row in rows for name in row)
    return {name: np.array([float(row.get(name, np.nan)) for row in rows]) for name in names}


def info_rows(infos: Mapping[str, Any], num_rows: int) -> list[dict[str, Any]]:
    """Turns arrays with ``_key`` masks into one dict per row, as single environments return them.

    Args:
        infos: Values ``(num_rows, …)`` by key, each with its ``_key`` mask ``(num_rows,)`` bool.
        num_rows: How many.

    Returns:
        New dicts, in order of rows; a key is missing where its mask is False.
    """
    everywhere: dict[str, Any] = {}
    somewhere: dict[str, Any] = {}
    for key, values in infos.items():
        if not key.startswith("_"):
            (everywhere if infos[f"_{key}"].all() else somewhere)[key] = values
    if everywhere:
        keys = tuple(everywhere)
        rows = [dict(zip(keys, row, strict=True)) for row in zip(*everywhere.values(), strict=True)]
    else:
        rows = [{} for _ in range(num_rows)]
    for key, values in somewhere.items():
        for i in np.flatnonzero(infos[f"_{key}"]):
            rows[i][key] = values[i]
    return rows


class Pool(Protocol):
    """Interface of the FastVectorEnv that a :class:`Row` asks."""

    metadata: dict[str, Any]
    spec: EnvSpec | None
    render_mode: str | None
    single_observation_space: gymnasium.Space[Any]
    single_action_space: gymnasium.Space[Any]
    num_envs: int

    @property
    def max_episode_steps(self) -> int | None: ...
    @property
    def np_random_seed(self) -> tuple[int, ...]: ...
    def generator(self, env_id: int) -> np.random.Generator: ...
    def action_space_of(self, env_id: int) -> gymnasium.Space[Any]: ...
    def reset(self, *, seed: Any, options: Any) -> tuple[Any, dict[str, Any]]: ...
    def render(self, env_ids: Any) -> Any: ...
    def get_state(self, env_ids: Any) -> NDArray[np.uint8]: ...
    def set_state(self, state: Any, env_ids: Any) -> None: ...
    def get_task(self) -> NDArray[np.float64]: ...
    def reset_task(self, tasks: Any, env_ids: Any) -> None: ...
    def get_model_field(self, name: str) -> NDArray[np.float64]: ...
    def set_model_field(self, name: str, values: Any, env_ids: Any) -> None: ...


class Row:
    """Environment ``env_id`` of a FastVectorEnv, with gymnasium's attributes; the pool steps it.

    Attributes may be added, as to any object; the environment's own cannot be replaced.
    """

    def __init__(self, envs: Pool, env_id: int):
        self._envs = envs
        self._env_id = env_id

    @property
    def unwrapped(self) -> Row:
        """Itself."""
        return self

    @property
    def metadata(self) -> dict[str, Any]:
        """The pool's, without its autoreset mode."""
        return {k: v for k, v in self._envs.metadata.items() if k != "autoreset_mode"}

    @property
    def spec(self) -> EnvSpec | None:
        """Such an environment's specification: ``gymnasium.make(spec)`` makes another one.

        None where the pool has none (a FastVectorEnv made directly).
        """
        spec = deepcopy(self._envs.spec)
        if spec is not None:
            spec.max_episode_steps = self._envs.max_episode_steps
            spec.kwargs = {k: v for k, v in spec.kwargs.items() if k not in _POOL_ARGUMENTS}
        return spec

    @property
    def max_episode_steps(self) -> int | None:
        """Where episodes are truncated; None: never."""
        return self._envs.max_episode_steps

    @property
    def render_mode(self) -> str | None:
        """The pool's."""
        return self._envs.render_mode

    @property
    def observation_space(self) -> gymnasium.Space[Any]:
        """The space of one environment."""
        return self._envs.single_observation_space

    @property
    def action_space(self) -> gymnasium.Space[Any]:
        """The space of one environment, with a random stream of its own."""
        return self._envs.action_space_of(self._env_id)

    @property
    def np_random(self) -> np.random.Generator:
        """A copy of the environment's generator."""
        return self._envs.generator(self._env_id)

    @property
    def np_random_seed(self) -> int:
        """The environment's seed."""
        return self._envs.np_random_seed[self._env_id]

    def reset(
        self, *, seed: int | None = None, options: Mapping[str, Any] | None = None
    ) -> tuple[NDArray[Any], dict[str, Any]]:
        """Starts a new episode here, and nowhere else."""
        seeds: list[int | None] = [None] * self._envs.num_envs
        seeds[self._env_id] = seed
        mask = np.arange(self._envs.num_envs) == self._env_id
        obs, infos = self._envs.reset(seed=seeds, options={**(options or {}), "reset_mask": mask})
        return row_of(obs, self._env_id), info_rows(infos, self._envs.num_envs)[self._env_id]

    def render(self) -> NDArray[np.uint8] | None:
        """Draws a ``(height, width, 3)`` uint8 frame, or returns None without a render mode."""
        frames = self._envs.render([self._env_id])
        return None if frames is None else frames[0]

    def get_state(self) -> NDArray[np.uint8]:
        """Takes a snapshot, ``(state_bytes,)``."""
        state: NDArray[np.uint8] = self._envs.get_state([self._env_id])[0]
        return state

    def set_state(self, state: NDArray[np.uint8]) -> None:
        """Restores a snapshot."""
        self._envs.set_state(state[None], [self._env_id])

    def get_task(self) -> NDArray[np.float64]:
        """The task, ``(task_size,)``."""
        task: NDArray[np.float64] = self._envs.get_task()[self._env_id]
        return task

    def reset_task(self, task: Any) -> None:
        """Sets the task, ``(task_size,)`` or a dict."""
        self._envs.reset_task([task], [self._env_id])

    @property
    def task(self) -> NDArray[np.float64]:
        """The task, ``(task_size,)``; assign such an array, or a dict, to set it."""
        return self.get_task()

    @task.setter
    def task(self, task: Any) -> None:
        self.reset_task(task)

    def get_model_field(self, name: str) -> NDArray[np.float64]:
        """Returns the environment's own values of a model field."""
        values: NDArray[np.float64] = self._envs.get_model_field(name)[self._env_id]
        return values

    def set_model_field(self, name: str, values: ArrayLike) -> None:
        """Gives this environment its own values of a model field, ``(*field shape)``."""
        self._envs.set_model_field(name, values, [self._env_id])
