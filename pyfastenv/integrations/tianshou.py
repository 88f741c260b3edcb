"""Tianshou: the environments as a ``BaseVectorEnv``. Needs tianshou >= 2.0.

Tianshou's collectors step some environments (``step(action, id)``) and reset the ended ones
themselves, so DISABLED is the mode.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from gymnasium.vector import AutoresetMode
from numpy.typing import ArrayLike, NDArray
from tianshou.env import BaseVectorEnv

from pyfastenv.integrations import require
from pyfastenv.tasks.language.task import Task
from pyfastenv.tasks.pool.make import make_vec
from pyfastenv.vector.rows import Row, info_rows
from pyfastenv.vector.vector_env import FastVectorEnv, StepReturn

Ids = int | Iterable[int] | None
Results = tuple[
    NDArray[Any], NDArray[np.float64], NDArray[np.bool_], NDArray[np.bool_], NDArray[np.object_]
]


def make_tianshou(
    env_id: str | type[Task],
    num_envs: int = 1,
    *,
    wait_num: int | None = None,
    timeout: float | None = None,
    **kwargs: Any,
) -> BaseVectorEnv:
    """Makes environments in place of ``SubprocVectorEnv([lambda: gym.make(env_id)] * num_envs)``.

    Args:
        env_id: As for :func:`pyfastenv.make_vec`: ``"HalfCheetah-v5"``, an own task …
        num_envs: How many.
        wait_num: See :func:`to_tianshou`.
        timeout: See :func:`to_tianshou`.
        **kwargs: See :class:`pyfastenv.FastVectorEnv`; the autoreset mode is chosen here.
    """
    envs = make_vec(env_id, num_envs, autoreset_mode=AutoresetMode.DISABLED, **kwargs)
    return to_tianshou(envs, wait_num=wait_num, timeout=timeout)


def to_tianshou(
    envs: FastVectorEnv, *, wait_num: int | None = None, timeout: float | None = None
) -> BaseVectorEnv:
    """The environments as a ``BaseVectorEnv``, whose ``close`` closes them.

    Args:
        envs: The environments.
        wait_num: For an AsyncCollector: ``step`` returns when this many are ready; None means all.
        timeout: For an AsyncCollector: ``step`` waits no longer than this for more than one [s].

    Raises:
        ValueError: Their autoreset mode is not DISABLED, or ``wait_num`` or ``timeout`` is out of
            range.
    """
    require(envs, AutoresetMode.DISABLED, "Tianshou")
    if wait_num is not None and not 1 <= wait_num <= envs.num_envs:
        raise ValueError(f"wait_num: expected 1 to {envs.num_envs} or None, got {wait_num}")
    if timeout is not None and timeout <= 0:
        raise ValueError(f"timeout: expected seconds above 0 or None, got {timeout}")
    return FastTianshouEnv(envs, wait_num, timeout)


class FastTianshouEnv(BaseVectorEnv):
    """Use :func:`to_tianshou`.

    Results are those of a DummyVectorEnv of gymnasium's environments, bit for bit. Attributes are
    those of one :class:`~pyfastenv.vector.rows.Row` per environment.
    """

    # BaseVectorEnv.__init__ would make a worker per environment
    def __init__(self, envs: FastVectorEnv, wait_num: int | None, timeout: float | None):
        self.envs = envs
        self._rows = [Row(envs, i) for i in range(envs.num_envs)]
        self.env_num = envs.num_envs
        self.wait_num = wait_num or envs.num_envs
        self.timeout = timeout
        self.is_async = self.wait_num != envs.num_envs or timeout is not None
        self.waiting_id: list[int] = []
        self.ready_id = list(range(envs.num_envs))
        self.is_closed = False
        self._early: list[Results] = []  # steps that came while a reset was waited for

    # ---- reset and step ----------------------------------------------------------------------

    def reset(
        self, env_id: Ids = None, *, seed: int | None = None, options: Any = None
    ) -> tuple[NDArray[Any], NDArray[Any]]:
        """Starts episodes.

        Args:
            env_id: Which environments; None means all.
            seed: The same for each of them, as in Tianshou.
            options: As for :meth:`FastVectorEnv.reset`.

        Returns:
            Observations ``(n, obs_size)`` and infos ``(n,)`` of dicts, in the order of ``env_id``.
        """
        ids = self._checked_ids(env_id)
        self.envs.async_reset(seed=[seed] * self.env_num, options=options, env_ids=ids)
        obs, _, _, _, infos = self._results_of(ids)
        for info in infos:
            del info["env_id"]
        return obs, infos

    def step(self, action: ArrayLike | None, id: Ids = None) -> Results:
        """Steps some environments.

        Args:
            action: One per id; None, if asynchronous, only waits for those under way.
            id: Which environments; None means all.

        Returns:
            Observations, rewards, terminations, truncations and infos ``(n,)`` of dicts with
            ``"env_id"``: in the order of ``id``, or, if asynchronous, of whoever came first.
        """
        if action is not None:
            ids = self._checked_ids(id)
            self.envs.send(np.asarray(action), ids)
        elif not self.is_async:
            raise ValueError("step: expected actions, got None (only asynchronous ones may wait)")
        if not self.is_async:
            return self._results_of(ids)
        if action is not None:
            self.waiting_id += ids.tolist()
            self.ready_id = [i for i in self.ready_id if i not in self.waiting_id]
        missing = min(self.wait_num, len(self.waiting_id)) - sum(len(r[0]) for r in self._early)
        if missing > 0:
            self._early.append(_rows_of(self.envs.recv(missing, self.timeout)))
        results, self._early = _concatenated(self._early), []
        came = _env_ids(results).tolist()
        self.waiting_id = [i for i in self.waiting_id if i not in came]
        self.ready_id += came
        return results

    def _results_of(self, ids: NDArray[np.int64]) -> Results:
        """Waits for ``ids``, in their order; what other environments sent is for the next step."""
        found: list[Results] = []
        missing = len(ids)
        while missing > 0:
            results = _rows_of(self.envs.recv(missing))
            wanted = np.isin(_env_ids(results), ids)
            found.append(_selected(results, wanted))
            if not wanted.all():
                self._early.append(_selected(results, ~wanted))
            missing -= int(wanted.sum())
        results = _concatenated(found)
        places = np.empty(self.env_num, np.intp)
        places[_env_ids(results)] = np.arange(len(ids))
        return _selected(results, places[ids])

    def _checked_ids(self, ids: Ids) -> NDArray[np.int64]:
        self._assert_is_not_closed()
        ids = np.atleast_1d(np.asarray(self._wrap_id(ids), np.int64))
        if self.is_async:
            self._assert_id(ids)
        return ids

    # ---- one environment at a time -----------------------------------------------------------

    def get_env_attr(self, key: str, id: Ids = None) -> list[Any]:
        """Attributes of :class:`Row`, or what ``set_env_attr`` has set."""
        return [getattr(self._rows[i], key) for i in self._checked_ids(id)]

    def set_env_attr(self, key: str, value: Any, id: Ids = None) -> None:
        """Sets attributes; raises AttributeError for the environment's own, such as a space."""
        for i in self._checked_ids(id):
            setattr(self._rows[i], key, value)

    def seed(self, seed: int | list[int] | None = None) -> list[list[int] | None]:
        """Starts all episodes with ``seed + i`` or ``seed[i]``; seeds the action spaces too."""
        self._assert_is_not_closed()
        seeds: list[int | None] = [None] * self.env_num
        if seed is not None:
            seeds = [seed + i for i in range(self.env_num)] if isinstance(seed, int) else [*seed]
        for row, one in zip(self._rows, seeds, strict=True):
            row.action_space.seed(one)
        self.envs.reset(seed=seeds)
        return [[one] for one in seeds]  # type: ignore[list-item]

    def render(self, **kwargs: Any) -> list[Any]:
        """One frame per environment, or Nones without a render mode."""
        self._assert_is_not_closed()
        if self.waiting_id:
            raise RuntimeError(f"environments {self.waiting_id} are stepping, cannot render")
        return list(self.envs.render(**kwargs) or [None] * self.env_num)

    def close(self) -> None:
        """Closes the environments."""
        self._assert_is_not_closed()
        self.envs.close()
        self.is_closed = True


def _rows_of(results: StepReturn) -> Results:
    obs, rewards, terminations, truncations, infos = results
    rows = info_rows(infos, len(obs))
    for row in rows:
        row["env_id"] = int(row["env_id"])
    return obs, rewards, terminations, truncations, np.array(rows, dtype=object)


def _env_ids(results: Results) -> NDArray[np.int64]:
    return np.array([info["env_id"] for info in results[4]])


def _selected(results: Results, rows: NDArray[Any]) -> Results:
    obs, rewards, terminations, truncations, infos = results
    return obs[rows], rewards[rows], terminations[rows], truncations[rows], infos[rows]


def _concatenated(batches: list[Results]) -> Results:
    obs, rewards, terminations, truncations, infos = zip(*batches, strict=True)
    return (
        np.concatenate(obs),
        np.concatenate(rewards),
        np.concatenate(terminations),
        np.concatenate(truncations),
        np.concatenate(infos),
    )
