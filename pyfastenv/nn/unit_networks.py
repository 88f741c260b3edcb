"""Residual networks of bounded norms: FlashSAC's (Kim et al. 2026, arXiv:2604.04539, section 4).

Weights that are unit vectors, batch normalisation before each ReLU, a root-mean-square norm at the
end: whatever the loss asks for, the features stay of the size of one, and a large step size stays
a large angle. Plain modules, ``(B, in)`` to ``(B, out)``. In training mode batches are normalised
by their own moments, otherwise by the running ones.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

_MOMENTUM = 0.01  # of the running moments: the weight of the latest batch
_EPS = 1e-8


class UnitLinear(nn.Linear):
    """A layer whose weights of each output are a unit vector once projected; a bias is free."""

    def __init__(self, num_inputs: int, num_outputs: int, bias: bool = False):
        super().__init__(num_inputs, num_outputs, bias=bias)
        nn.init.orthogonal_(self.weight)
        if bias:
            nn.init.zeros_(self.bias)

    @torch.no_grad()
    def project(self) -> None:
        """Scales each output's weights to length one."""
        self.weight.copy_(nn.functional.normalize(self.weight, dim=1, eps=_EPS))


class UnitBatchNorm(nn.BatchNorm1d):
    """Batch normalisation; scales and shifts together have the length ``sqrt(size)``."""

    def __init__(self, size: int):
        super().__init__(size, momentum=_MOMENTUM)

    @torch.no_grad()
    def project(self) -> None:
        """Scales both to that length."""
        squares = self.weight.square().sum() + self.bias.square().sum()
        factor = math.sqrt(self.num_features) * torch.rsqrt(squares + _EPS)
        self.weight.mul_(factor)
        self.bias.mul_(factor)


class UnitRMSNorm(nn.RMSNorm):
    """Division by the root mean square; scales have the length ``sqrt(size)``."""

    def __init__(self, size: int):
        super().__init__(size, eps=1e-6)

    def forward(self, x: Tensor) -> Tensor:
        """``(B, size)`` to ``(B, size)``, in its own dtype under autocast too."""
        return super().forward(x.to(self.weight.dtype))

    @torch.no_grad()
    def project(self) -> None:
        """Scales them to that length."""
        factor = math.sqrt(self.weight.numel()) * torch.rsqrt(self.weight.square().sum() + _EPS)
        self.weight.mul_(factor)


class ResidualBlock(nn.Module):
    """``x + relu(norm(contract(relu(norm(expand(x))))))``, four times as wide inside."""

    def __init__(self, width: int, expansion: int = 4):
        super().__init__()
        self.inner = nn.Sequential(
            UnitLinear(width, expansion * width),
            UnitBatchNorm(expansion * width),
            nn.ReLU(),
            UnitLinear(expansion * width, width),
            UnitBatchNorm(width),
            nn.ReLU(),
        )

    def forward(self, x: Tensor) -> Tensor:
        """``(B, width)`` to ``(B, width)``."""
        result: Tensor = x + self.inner(x)
        return result


class UnitNetwork(nn.Sequential):
    """Normalised inputs, residual blocks, and a layer with a bias: ``(B, num_inputs)`` to
    ``(B, num_outputs)``.

    Args:
        num_inputs: Size of the inputs.
        num_outputs: Size of the outputs.
        width: Of the features between blocks.
        num_blocks: How many.

    Attributes:
        sizes: These four numbers by name.
    """

    def __init__(self, num_inputs: int, num_outputs: int, width: int, num_blocks: int):
        super().__init__(
            UnitBatchNorm(num_inputs),
            UnitLinear(num_inputs, width),
            *(ResidualBlock(width) for _ in range(num_blocks)),
            UnitRMSNorm(width),
            UnitLinear(width, num_outputs, bias=True),
        )
        self.sizes = {
            "num_inputs": num_inputs,
            "num_outputs": num_outputs,
            "width": width,
            "num_blocks": num_blocks,
        }


class BoundedLogStd(nn.Module):
    """Means as they are, log-stds smoothly between bounds: ``(B, 2 A)`` to ``(B, 2 A)``."""

    def __init__(self, low: float, high: float):
        super().__init__()
        self.low, self.high = low, high

    def forward(self, outputs: Tensor) -> Tensor:
        """Means and bounded log-stds, from means and raw log-stds."""
        mean, raw = outputs.chunk(2, -1)
        half = 0.5 * (self.high - self.low)
        return torch.cat((mean, self.low + half * (1.0 + raw.tanh())), -1)

    def gradient(self, outputs: Tensor, by_results: Tensor) -> Tensor:
        """The gradient by the inputs of :meth:`forward`, from the gradient by its results."""
        by_mean, by_log_std = by_results.chunk(2, -1)
        half = 0.5 * (self.high - self.low)
        slope = half * (1.0 - outputs.chunk(2, -1)[1].tanh().square())
        return torch.cat((by_mean, by_log_std * slope), -1)


def project(network: nn.Module) -> None:
    """Brings all norms back to what they are to be, after a gradient step. Other layers stay."""
    for module in network.modules():
        if isinstance(module, UnitLinear | UnitBatchNorm | UnitRMSNorm):
            module.project()
