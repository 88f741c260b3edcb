"""Networks and gradient steps of the programs written anew, as everybody programs them."""

from __future__ import annotations

import itertools

import torch
from torch import Tensor, nn


def mlp(*sizes: int) -> nn.Sequential:
    """A ReLU network with layers of these widths, inputs and outputs included."""
    layers: list[nn.Module] = []
    for inputs, outputs in itertools.pairwise(sizes):
        layers += [nn.Linear(inputs, outputs), nn.ReLU()]
    return nn.Sequential(*layers[:-1])


def descend(optimizer: torch.optim.Optimizer, loss: Tensor) -> None:
    """A gradient step."""
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()


def follow(target: nn.Module, online: nn.Module, tau: float = 0.005) -> None:
    """A target network goes ``tau`` of the way."""
    for theirs, mine in zip(target.parameters(), online.parameters(), strict=True):
        theirs.data.mul_(1.0 - tau).add_(mine.data, alpha=tau)
