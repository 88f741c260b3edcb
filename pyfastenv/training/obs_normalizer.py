"""Observations normalised alike in the pool and in the learner."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from pyfastenv.nn.normalize import RunningMoments
from pyfastenv.training import distributed


class ObsNormalizer:
    """``(obs - mean) / std``, clipped, by running moments of all processes' observations.

    Args:
        size: Of an observation.
        clip: Bound of normalised observations.
        device: Where the learner's observations are.
        enabled: False passes observations through.
    """

    def __init__(self, size: int, *, clip: float, device: torch.device, enabled: bool = True):
        self.moments = RunningMoments(size)
        self.enabled = enabled
        self._clip = clip
        self._device = device

    def __call__(self, obs: Tensor) -> Tensor:
        """``(…, size)`` float32 on the device, as the pool does it for the policy."""
        if not self.enabled:
            return obs
        mean = self.moments.mean.float().to(self._device)
        scale = self.moments.scale().to(self._device)
        return ((obs - mean) * scale).clamp_(-self._clip, self._clip)

    def update(self, obs: Tensor) -> None:
        """Adds observations ``(…, size)``, those of all processes, if enabled."""
        if self.enabled:
            update_moments(self.moments, obs)

    def spec_fields(self) -> dict[str, Any]:
        """What :class:`pyfastenv.PolicySpec` is to be given."""
        if not self.enabled:
            return {}
        return {
            "obs_mean": self.moments.mean.float().numpy()[None],
            "obs_scale": self.moments.scale().numpy()[None],
            "obs_clip": self._clip,
        }


def update_moments(moments: RunningMoments, samples: Tensor) -> None:
    """Adds samples ``(…, size)`` of all processes; all of them must call it."""
    new = RunningMoments(len(moments.mean))
    new.update(samples)
    moments.merge(*distributed.merge_moments(new.count, new.mean, new.m2))
