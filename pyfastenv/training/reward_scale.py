"""Rewards divided so that discounted returns have the size of one."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from pyfastenv.nn.functional import discounted_returns
from pyfastenv.nn.normalize import RunningMoments


class RewardScale:
    """For each of K seeds a factor: one over the deviation of running discounted returns, or less
    where the largest return would be beyond a bound.

    Args:
        num_seeds: K.
        num_envs: Environments of each seed.
        gamma: Discount.
        bound: Of returns.
    """

    def __init__(self, num_seeds: int, num_envs: int, *, gamma: float, bound: float):
        self._gamma = gamma
        self._bound = bound
        self._moments = [RunningMoments(1) for _ in range(num_seeds)]
        self._largest = torch.zeros(num_seeds)
        self._running = torch.zeros(num_seeds, num_envs)

    def update(self, rewards: Tensor, ended: Tensor) -> None:
        """Adds new steps, all environments of a step side by side.

        Args:
            rewards: ``(K, T * num_envs)`` float32 on the CPU.
            ended: Likewise bool: whether the episode ended there, for whatever reason.
        """
        num_seeds, num_envs = self._running.shape
        for k in range(num_seeds):
            mine, ends = (part[k].view(-1, num_envs) for part in (rewards, ended))  # (T, num_envs)
            returns = discounted_returns(mine, ends, self._running[k], self._gamma)
            self._running[k] = returns[-1] * ~ends[-1]
            self._largest[k] = torch.maximum(self._largest[k], returns.abs().max())
            self._moments[k].update(returns.reshape(-1, 1))

    def factors(self) -> Tensor:
        """``(K,)`` float32 on the CPU."""
        deviations = torch.cat([moments.var for moments in self._moments]).add(1e-8).sqrt()
        return 1.0 / torch.maximum(deviations.float(), self._largest / self._bound)

    def state_dict(self) -> dict[str, Any]:
        """Moments, largest and running returns."""
        return {
            "moments": [moments.state_dict() for moments in self._moments],
            "largest": self._largest,
            "running": self._running,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restores :meth:`state_dict`."""
        for moments, saved in zip(self._moments, state["moments"], strict=True):
            moments.load_state_dict(saved)
        self._largest.copy_(state["largest"])
        self._running.copy_(state["running"])
