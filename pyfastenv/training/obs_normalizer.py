"""Observations normalised alike in the pool and in the learner."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from pyfastenv.nn.normalize import RunningMoments
from pyfastenv.training import distributed
from pyfastenv.training.far_observations import FarObservations


class ObsNormalizer:
    """``(obs - mean) / std``, clipped, by running moments of all processes' observations.

    Args:
        size: Of an observation.
        clip: Bound of normalised observations, 0: none; None passes observations through.
        device: Where the learner's observations are.
        groups: Names of columns, for the warnings of :class:`FarObservations`.
    """

    def __init__(
        self,
        size: int,
        *,
        clip: float | None,
        device: torch.device,
        groups: Mapping[str, slice],
    ):
        self.moments = RunningMoments(size)
        self._far = FarObservations(groups)
        self.enabled = clip is not None
        self._clip = clip or 0.0
        self._device = device

    def __call__(self, obs: Tensor) -> Tensor:
        """``(…, size)`` float32 on the device, as the pool does it for the policy."""
        if not self.enabled:
            return obs
        mean = self.moments.mean.float().to(self._device)
        scale = self.moments.scale().to(self._device)
        normed = (obs - mean) * scale
        return normed.clamp_(-self._clip, self._clip) if self._clip > 0.0 else normed

    def update(self, obs: Tensor, first_env: int = 0) -> None:
        """Adds observations ``(T, N, size)``, those of all processes, if enabled; the N
        environments are numbered from ``first_env`` on."""
        if self.enabled:
            mine = self._far.moments_of(obs, self.moments, first_env)
            self.moments.merge(*distributed.merge_moments(*mine))

    def spec_fields(self, seen: slice = slice(None)) -> dict[str, Any]:
        """The arguments of :class:`pyfastenv.PolicySpec`, for the part that a policy sees."""
        if not self.enabled:
            return {}
        return {
            "obs_mean": self.moments.mean.float().numpy()[None, seen],
            "obs_scale": self.moments.scale().numpy()[None, seen],
            "obs_clip": self._clip,
        }


class SeedNormalizers:
    """One :class:`ObsNormalizer` for each of K seeds side by side.

    Args:
        num_seeds: K.
        size: Of an observation.
        clip: As of :class:`ObsNormalizer`, like the others.
    """

    def __init__(self, num_seeds: int, size: int, *, clip: float | None, **others: Any):
        self.enabled = clip is not None
        self._each = [ObsNormalizer(size, clip=clip, **others) for _ in range(num_seeds)]

    def __call__(self, obs: Tensor) -> Tensor:
        """``(K, …, size)`` float32 on the device."""
        if not self.enabled:
            return obs
        return torch.stack([one(mine) for one, mine in zip(self._each, obs, strict=True)])

    def update(self, obs: Tensor) -> None:
        """Adds observations ``(K, T, N, size)`` of each seed's N environments."""
        for k, (one, mine) in enumerate(zip(self._each, obs, strict=True)):
            one.update(mine, first_env=k * mine.shape[1])

    def spec_fields(self, seen: slice) -> dict[str, Any]:
        """The arguments of :class:`pyfastenv.PolicySpec` for K policies that see these columns."""
        fields = [one.spec_fields(seen) for one in self._each]
        return {
            name: value if name == "obs_clip" else np.concatenate([each[name] for each in fields])
            for name, value in fields[0].items()
        }

    def state_dict(self) -> dict[str, Any]:
        """The moments."""
        return {"moments": [one.moments.state_dict() for one in self._each]}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restores :meth:`state_dict`."""
        for one, saved in zip(self._each, state["moments"], strict=True):
            one.moments.load_state_dict(saved)
