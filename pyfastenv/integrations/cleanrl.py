"""CleanRL: environments for its single-file scripts, in place of their ``make_env``.

The scripts read ``infos["final_info"]`` and the final observation, so SAME_STEP is the mode. In the
current ones (gymnasium >= 1.1) ``final_info`` is a dict of arrays with masks; in those written for
gymnasium 0.29 it is an array of dicts, and ``final_obs`` is called ``final_observation``
(``old_infos=True``). CleanRL itself is not imported: it is no library.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv, VectorWrapper
from gymnasium.vector.utils import batch_space
from gymnasium.wrappers.vector import RecordEpisodeStatistics
from numpy.typing import ArrayLike, NDArray

from pyfastenv.integrations import require
from pyfastenv.tasks.language.task import Task
from pyfastenv.tasks.pool.make import make_vec
from pyfastenv.vector.rows import info_rows
from pyfastenv.vector.vector_env import FastVectorEnv, StepReturn

Envs = VectorEnv[NDArray[Any], NDArray[Any], NDArray[Any]]
Wrapper = VectorWrapper[NDArray[Any], NDArray[Any], NDArray[Any], NDArray[Any], NDArray[Any]]


def make_cleanrl(
    env_id: str | type[Task], num_envs: int = 1, *, old_infos: bool = False, **kwargs: Any
) -> Envs:
    """Stands for ``make_env`` of dqn, ddpg, td3 and sac: environments with episode statistics.

    Args:
        env_id: As for :func:`pyfastenv.make_vec`: ``"HalfCheetah-v5"``, an own task …
        num_envs: How many.
        old_infos: Infos as in gymnasium 0.29.
        **kwargs: See :class:`pyfastenv.FastVectorEnv`; the autoreset mode is chosen here.
    """
    envs = make_vec(env_id, num_envs, autoreset_mode=AutoresetMode.SAME_STEP, **kwargs)
    return to_cleanrl(envs, old_infos=old_infos)


def make_cleanrl_ppo(
    env_id: str | type[Task],
    num_envs: int = 1,
    *,
    gamma: float = 0.99,
    old_infos: bool = False,
    **kwargs: Any,
) -> Envs:
    """Stands for ``make_env`` of ppo_continuous_action: clipped actions, normalised everything.

    Observations and rewards equal those of gymnasium's ClipAction, NormalizeObservation and
    NormalizeReward around every single environment, clipped to [-10, 10], bit for bit: each
    environment has statistics of its own, as in CleanRL.

    Args:
        env_id: As for :func:`pyfastenv.make_vec`: ``"HalfCheetah-v5"``, an own task …
        num_envs: How many.
        gamma: The discount of the returns by whose variance rewards are divided.
        old_infos: Infos as in gymnasium 0.29.
        **kwargs: See :class:`pyfastenv.FastVectorEnv`; the autoreset mode is chosen here.

    Raises:
        ValueError: Its actions are discrete.
    """
    envs = make_vec(env_id, num_envs, autoreset_mode=AutoresetMode.SAME_STEP, **kwargs)
    require(envs, AutoresetMode.SAME_STEP, "CleanRL")
    if not isinstance(envs.single_action_space, gymnasium.spaces.Box):
        raise ValueError(
            f"make_cleanrl_ppo is for continuous actions, {envs.env_id}'s are "
            f"{envs.single_action_space}: make_cleanrl takes them"
        )
    return _FinalInfos(_Normalize(RecordEpisodeStatistics(envs), gamma), old_infos)


def to_cleanrl(envs: FastVectorEnv, *, old_infos: bool = False) -> Envs:
    """The environments with episode statistics in ``infos["final_info"]``.

    Raises:
        ValueError: Their autoreset mode is not SAME_STEP.
    """
    require(envs, AutoresetMode.SAME_STEP, "CleanRL")
    return _FinalInfos(RecordEpisodeStatistics(envs), old_infos)


class _FinalInfos(Wrapper):
    """Episode statistics where gymnasium's SyncVectorEnv of RecordEpisodeStatistics has them."""

    def __init__(self, env: Envs, old_infos: bool):
        super().__init__(env)
        self.old_infos = old_infos

    def step(self, actions: ArrayLike) -> StepReturn:
        obs, rewards, terminations, truncations, infos = self.env.step(np.asarray(actions))
        if "episode" in infos:
            episode, ended = infos.pop("episode"), infos.pop("_episode")
            episode |= {f"_{key}": ended for key in tuple(episode)}
            final_info = infos.setdefault("final_info", {})
            final_info |= {"episode": episode, "_episode": ended}
            infos["_final_info"] = ended
            if self.old_infos:
                _to_old_infos(infos)
        return obs, rewards, terminations, truncations, infos


def _to_old_infos(infos: dict[str, Any]) -> None:
    final_info, ended = infos["final_info"], infos["_final_info"]
    episode = {"episode": np.array(info_rows(final_info.pop("episode"), len(ended)), dtype=object)}
    rows = info_rows(final_info | episode, len(ended))
    infos["final_info"] = np.array(
        [row if end else None for row, end in zip(rows, ended, strict=True)], dtype=object
    )
    infos["final_observation"] = infos.pop("final_obs")
    infos["_final_observation"] = infos.pop("_final_obs")


class _Normalize(Wrapper):
    """ClipAction, NormalizeObservation, clip, NormalizeReward, clip; per environment."""

    def __init__(self, env: Envs, gamma: float, epsilon: float = 1e-8, limit: float = 10.0):
        super().__init__(env)
        self.gamma, self.epsilon, self.limit = gamma, epsilon, limit
        space = env.single_observation_space
        self.single_observation_space = gymnasium.spaces.Box(-np.inf, np.inf, space.shape)
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)
        assert isinstance(env.single_action_space, gymnasium.spaces.Box)
        self._bounds = env.single_action_space.low, env.single_action_space.high
        self._obs_moments = _Moments((self.num_envs, *(space.shape or ())), np.float32)
        self._return_moments = _Moments((self.num_envs,), np.float64)
        self._returns = np.zeros(self.num_envs)

    def reset(
        self,
        *,
        seed: int | Sequence[int | None] | None = None,
        options: Mapping[str, Any] | None = None,
    ) -> tuple[NDArray[Any], dict[str, Any]]:
        options = dict(options or {})
        started = options.get("reset_mask", np.ones(self.num_envs, bool))
        obs, infos = self.env.reset(seed=seed, options=options)  # type: ignore[arg-type]
        rows = np.flatnonzero(started)
        self._obs_moments.update(obs[rows], rows)
        return self._normalized(obs, np.arange(self.num_envs)), infos

    def step(self, actions: ArrayLike) -> StepReturn:
        actions = np.clip(actions, *self._bounds)
        obs, rewards, terminations, truncations, infos = self.env.step(actions)
        everywhere = np.arange(self.num_envs)
        ended = np.flatnonzero(terminations | truncations)
        # a wrapper inside the autoreset sees the last observation before the first one
        if len(ended) > 0:
            final_obs = np.stack(infos["final_obs"][ended])
            self._obs_moments.update(final_obs, ended)
            for i, one in zip(ended, self._normalized(final_obs, ended), strict=True):
                infos["final_obs"][i] = one
        self._obs_moments.update(obs, everywhere)
        self._returns = self._returns * self.gamma * (1 - terminations) + rewards
        self._return_moments.update(self._returns, everywhere)
        rewards = rewards / np.sqrt(self._return_moments.var + self.epsilon)
        return (
            self._normalized(obs, everywhere),
            np.clip(rewards, -self.limit, self.limit),
            terminations,
            truncations,
            infos,
        )

    def _normalized(self, obs: NDArray[Any], rows: NDArray[np.intp]) -> NDArray[np.float32]:
        mean, var = self._obs_moments.mean[rows], self._obs_moments.var[rows]
        normalized = ((obs - mean) / np.sqrt(var + self.epsilon)).astype(np.float32)
        return np.clip(normalized, -self.limit, self.limit)


class _Moments:
    """gymnasium's RunningMeanStd (wrappers/utils.py, 1.4), many side by side, a sample at a time.

    Rounds as it does, so sums are in its order and counts in the dtype of what they multiply.
    """

    def __init__(self, shape: tuple[int, ...], dtype: Any):
        self.mean = np.zeros(shape, dtype)
        self.var = np.ones(shape, dtype)
        self.count = np.full((shape[0], *(1 for _ in shape[1:])), 1e-4)

    def update(self, samples: NDArray[Any], rows: NDArray[np.intp]) -> None:
        """Adds ``samples[i]`` to the moments of ``rows[i]``."""
        count, var = self.count[rows], self.var[rows]
        delta = samples - self.mean[rows]
        total = (count + 1).astype(delta.dtype)
        m2 = var * count.astype(var.dtype) + np.square(delta) * count.astype(delta.dtype) / total
        self.mean = self.mean.astype(delta.dtype, copy=False)
        self.var = self.var.astype(delta.dtype, copy=False)
        self.mean[rows] += delta / total
        self.var[rows] = m2 / total
        self.count[rows] += 1
