"""Running mean and variance of batches, exact and mergeable."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from pyfastenv import _core


class RunningMoments:
    """Mean and variance of all samples seen, per component, in float64.

    Chan, Golub and LeVeque's parallel update (1979): the result does not depend on how the samples
    were cut into batches, up to rounding.

    Args:
        size: Number of components.
        device: Where the moments live.
    """

    def __init__(self, size: int, device: torch.device | str = "cpu"):
        self.count = torch.zeros((), dtype=torch.float64, device=device)
        self.mean = torch.zeros(size, dtype=torch.float64, device=device)
        self.m2 = torch.zeros(size, dtype=torch.float64, device=device)  # sum of squared deviations

    def update(self, samples: Tensor) -> None:
        """Adds samples ``(…, size)``."""
        self.merge(*self.of(samples))

    def of(self, samples: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Number, mean and ``m2`` of samples ``(…, size)``, as :meth:`merge` takes them."""
        samples = samples.detach().reshape(-1, len(self.mean))
        count = torch.tensor(len(samples), dtype=torch.float64)
        if samples.device.type == "cpu" and samples.dtype == torch.float32 and len(samples) > 0:
            mean, m2 = map(torch.from_numpy, _core.column_moments(samples.numpy()))
        else:
            # about a point near the mean, in float64: no cancellation
            base = self.mean.to(samples)
            shifted = (samples - base).double()
            shift = shifted.mean(0) if len(samples) > 0 else shifted.sum(0)
            mean, m2 = base.double() + shift, (shifted - shift).square().sum(0)
        device = self.mean.device
        return count.to(device), mean.to(device), m2.to(device)

    def merge(self, count: Tensor, mean: Tensor, m2: Tensor) -> None:
        """Adds the moments of other samples."""
        count = count.to(self.mean.device)
        total = self.count + count
        delta = mean - self.mean
        divisor = total.clamp(min=1.0)  # no samples yet, and none added
        self.mean += delta * (count / divisor)
        self.m2 += m2 + delta.square() * (self.count * count / divisor)
        self.count = total

    @property
    def var(self) -> Tensor:
        """Population variance ``(size,)``; 1 before the first sample."""
        if self.count == 0:
            return torch.ones_like(self.m2)
        return self.m2 / self.count

    def scale(self, epsilon: float = 1e-8) -> Tensor:
        """``1 / sqrt(var + epsilon)``, ``(size,)`` float32."""
        return torch.rsqrt(self.var + epsilon).float()

    def state_dict(self) -> dict[str, Any]:
        """Count, mean and sum of squared deviations."""
        return {"count": self.count, "mean": self.mean, "m2": self.m2}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restores :meth:`state_dict`."""
        self.count = state["count"].clone()
        self.mean.copy_(state["mean"])
        self.m2.copy_(state["m2"])
