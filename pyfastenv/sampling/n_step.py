"""Transitions of n steps, made of replayed single ones when they are drawn."""

from __future__ import annotations

import torch
from torch import Tensor

from pyfastenv.sampling.buffers import ReplayPool, RowLayout


class NStep:
    """Which replayed rows end an episode, and the rows of n steps that begin with any of them.

    A row of n steps has the discounted rewards of up to n steps, the observation after the last of
    them, and how much of that observation's value counts: ``gamma ** (m - 1)`` after m steps where
    a learner discounts by gamma once more, 0 after a termination. It ends early, with m < n, at the
    episode's end (after a time limit the last observation's value counts) and at the latest step.

    Args:
        pool: The rows of single steps.
        layout: Of its rows.
        num_envs: How many environments of each seed step in turn: so far apart are the rows of two
            steps of one.
        num_steps: n.

    Attributes:
        ends: Beside each row of ``pool`` 1 where its episode ended with it, for whatever reason.
    """

    def __init__(self, pool: ReplayPool, layout: RowLayout, num_envs: int, num_steps: int):
        self._pool = pool
        self._layout = layout
        self._num_envs = num_envs
        self._num_steps = num_steps
        self.ends = ReplayPool(pool.num_seeds, pool.max_capacity, 1, pool.device)

    def add(self, ended: Tensor) -> None:
        """Adds ``(K, n)`` bool of the rows that the pool has just been given."""
        self.ends.add(ended[..., None].float().to(self.ends.device))

    def take(self, indices: Tensor, gamma: Tensor | float) -> Tensor:
        """Rows ``(…, K, n, width)`` of n steps.

        Args:
            indices: As of :meth:`ReplayPool.take`: the first of each one's steps.
            gamma: Discount.
        """
        layout, pool = self._layout, self._pool
        rows = pool.take(indices)
        factors = torch.ones_like(layout.rewards(rows))  # of the value after the last step
        goes_on = self.ends.take(indices)[..., 0] == 0.0
        for _ in range(self._num_steps - 1):
            if goes_on.device.type == "cpu" and not goes_on.any():  # elsewhere it would wait
                break
            indices, there = pool.later(indices, self._num_envs)
            goes_on = goes_on & there.movedim(0, -2)
            step = pool.take(indices)
            factors = torch.where(goes_on, factors * gamma, factors)
            layout.rewards(rows).add_(torch.where(goes_on, factors * layout.rewards(step), 0.0))
            continues = torch.where(goes_on, layout.continues(step), layout.continues(rows))
            layout.continues(rows).copy_(continues)
            next_obs = layout.next_obs(rows)
            next_obs.copy_(torch.where(goes_on[..., None], layout.next_obs(step), next_obs))
            goes_on = goes_on & (self.ends.take(indices)[..., 0] == 0.0)
        layout.continues(rows).mul_(factors)
        return rows
