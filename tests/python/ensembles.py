"""Small ensembles of dynamics, and one of their members in plain torch."""

from typing import Any

import torch
from torch import Tensor, nn

from pyfastenv.algorithms.mbpo.dynamics import DynamicsOptions, EnsembleDynamics
from pyfastenv.sampling.buffers import RowLayout

LAYOUT = RowLayout(obs_size=2, action_size=1)


SMALL: dict[str, Any] = {
    "ensemble_size": 3, "num_elites": 2, "hidden_sizes": (16, 16), "learning_rate": 3e-3,
    "batch_size": 64, "max_epochs": 5,
}  # fmt: skip


def make(seeds: tuple[int, ...] = (0,), **options: Any) -> EnsembleDynamics:
    return EnsembleDynamics(LAYOUT, seeds, DynamicsOptions(**{**SMALL, **options}))


def randomised(model: EnsembleDynamics, seed: int = 0) -> EnsembleDynamics:
    """Other parameters, standardisation and elites than new ones have."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in (*model.network.parameters(), model.min_log_var, model.max_log_var):
            parameter += 0.3 * torch.randn(parameter.shape, generator=generator)
        model.min_log_var += 9.0  # high enough to matter
        model.input_mean.normal_(generator=generator)
        model.input_std.uniform_(0.5, 2.0, generator=generator)
    order = torch.rand(model.num_seeds, model.options.ensemble_size, generator=generator).argsort(1)
    model.elites = order[:, : model.options.num_elites]
    model.refresh()
    return model


def member(model: EnsembleDynamics, k: int, m: int, pairs: Tensor) -> tuple[Tensor, Tensor]:
    """Means and standard deviations of a seed's member, as everybody writes it, in float64."""
    x = (pairs.double() - model.input_mean[k].double()) / model.input_std[k].double()
    i = k * model.options.ensemble_size + m
    weights, biases = model.network.weight_list, model.network.bias_list
    for layer, (weight, bias) in enumerate(zip(weights, biases, strict=True)):
        x = x @ weight[i].double() + bias[i].double()
        if layer + 1 < len(weights):
            x = nn.functional.silu(x)
    mean, raw = x.chunk(2, -1)
    high, low = model.max_log_var[i].double(), model.min_log_var[i].double()
    log_var = high - nn.functional.softplus(high - raw)
    log_var = low + nn.functional.softplus(log_var - low)
    return mean, (0.5 * log_var).exp()
