"""Hindsight: replayed steps get goals that their episodes reached later, when they are drawn."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from pyfastenv.sampling.buffers import ReplayPool, RowLayout
from pyfastenv.vector.vector_env import FastVectorEnv

_GOALS = ("achieved_goal", "desired_goal")


class Hindsight:
    """How long each replayed row's episode went on, and rows with goals that it reached.

    The strategy "future" of hindsight experience replay (Andrychowicz et al. 2017,
    arXiv:1707.01495): the goal is what was achieved after this step of the episode or after a later
    one, each as likely. A step's reward is the task's for that goal; it terminated an episode or
    not as it did.

    Args:
        pool: The rows of single steps.
        layout: Of its rows.
        envs: Whose observations have ``achieved_goal`` and ``desired_goal``, and whose task has
            ``compute_reward(achieved_goal, desired_goal, info)`` of whole batches.
        num_envs: How many environments of each seed step in turn.
        goals: So many rows get another goal for each that keeps its own.

    Attributes:
        left: Beside each row of ``pool`` how many steps of its episode came after it; -1: the
            episode has not ended yet.

    Raises:
        ValueError: There are no such goals; the environments have been closed.
    """

    def __init__(
        self, pool: ReplayPool, layout: RowLayout, envs: FastVectorEnv, num_envs: int, goals: int
    ):
        views = getattr(envs.obs_views, "views", {})
        self._reward: Any = getattr(getattr(envs, "task", None), "compute_reward", None)
        if self._reward is None or any(name not in views for name in _GOALS):
            envs.close()
            raise ValueError(
                "her_goals: expected an environment whose observations have achieved_goal and "
                "desired_goal and whose task has compute_reward(achieved_goal, desired_goal, "
                f"info), as FetchReach-v4, got {envs.env_id}"
            )
        self._achieved, self._desired = (views[name].place for name in _GOALS)
        self._pool = pool
        self._layout = layout
        self._num_envs = num_envs
        self._share = goals / (goals + 1.0)
        self.left = ReplayPool(pool.num_seeds, pool.max_capacity, 1, pool.device)
        # of the episodes that have not ended, (K, num_envs)
        self._steps = torch.zeros(pool.num_seeds, num_envs, dtype=torch.int64)

    def add(self, ended: Tensor) -> None:
        """Adds ``(K, n)`` bool of the rows that the pool has just been given."""
        self.left.add(torch.full((*ended.shape, 1), -1.0, device=self.left.device))
        by_env = ended.cpu().unflatten(1, (-1, self._num_envs))  # (K, T, num_envs)
        for k, t, i in by_env.nonzero().tolist():
            steps = int(self._steps[k, i]) + t + 1
            self._steps[k, i] = -(t + 1)
            left = torch.arange(steps, device=self.left.device)
            ages = ended.shape[1] - 1 - (t * self._num_envs + i) + left * self._num_envs
            there = ages < self.left.capacity
            self.left.replace(k, ages[there], left[there, None].float())
        self._steps += by_env.shape[1]

    def take(self, indices: Tensor, uniform: Tensor) -> Tensor:
        """Rows ``(…, K, n, width)``, most of them with another goal.

        Args:
            indices: ``(K, …, n)`` as of :meth:`ReplayPool.take`.
            uniform: ``(K, 2, …, n)`` in [0, 1): which rows, and how late their goals are.

        Raises:
            ValueError: The task's rewards have another shape, or are not finite.
        """
        layout, pool = self._layout, self._pool
        rows = pool.take(indices)
        left = self.left.take(indices)[..., 0].movedim(-2, 0).long()  # (K, …, n)
        left = torch.where(left < 0, pool.ages(indices) // self._num_envs, left)
        later = (uniform[:, 1] * (left + 1)).long()
        come_to, _ = pool.later(indices, later * self._num_envs)
        goals = layout.next_obs(pool.take(come_to))[..., self._achieved]
        changed = (uniform[:, 0] < self._share).movedim(0, -2)
        achieved = layout.next_obs(rows)[..., self._achieved]
        pair = (each.double().cpu().numpy() for each in (achieved, goals))
        rewards, mine = np.asarray(self._reward(*pair, {}), np.float64), layout.rewards(rows)
        if rewards.shape != mine.shape or not np.isfinite(rewards).all():
            raise ValueError(
                f"compute_reward: expected finite rewards {tuple(mine.shape)}, got {rewards.shape} "
                f"from {rewards.min()} to {rewards.max()}"
            )
        mine.copy_(torch.where(changed, torch.from_numpy(rewards).to(mine), mine))
        for obs in (layout.obs(rows), layout.next_obs(rows)):
            desired = obs[..., self._desired]
            desired.copy_(torch.where(changed[..., None], goals, desired))
        return rows

    def state_dict(self) -> dict[str, Any]:
        """How long episodes went on, and for how long those that go on have."""
        return {"left": self.left.state_dict(), "steps": self._steps}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restores :meth:`state_dict`."""
        self.left.load_state_dict(state["left"])
        self._steps.copy_(state["steps"])
