"""Small learners, minibatches for them and networks of a user's own."""

from typing import Any

import torch
from torch import Tensor, nn

from pyfastenv.algorithms import flashsac
from pyfastenv.algorithms.flashsac.spec import FlashSACLearner
from pyfastenv.algorithms.sac.spec import SACLearner, SACOptions
from pyfastenv.algorithms.td3.spec import TD3Learner, TD3Options
from pyfastenv.nn.networks import MLP
from pyfastenv.sampling.buffers import RowLayout
from pyfastenv.sampling.exploration import ActionBox
from pyfastenv.vector.vector_env import make_vec

LAYOUT = RowLayout(obs_size=5, action_size=2)
FLASHSAC_LAYOUT = RowLayout(obs_size=3, action_size=2)
SEEDS = [3, 4]


def learner_of(seeds: tuple[int, ...] = (0,), **options: Any) -> FlashSACLearner:
    fields = {"policy_width": 8, "critic_width": 12, "num_bins": 11, **options}
    return FlashSACLearner(FLASHSAC_LAYOUT, seeds, flashsac.Config(**fields).options())


def inputs_of(learner: FlashSACLearner, seed: int = 0, size: int = 24) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    rows = batch_of(FLASHSAC_LAYOUT, (learner.num_seeds, size), generator)
    noise = torch.randn(learner.num_seeds, *learner.noise_shape(size), generator=generator)
    return rows, noise


def as_sequential(network: MLP, k: int) -> nn.Sequential:
    """The k-th network as everybody writes it, in float64."""
    layers: list[nn.Module] = []
    for i, (weight, bias) in enumerate(zip(network.weight_list, network.bias_list, strict=True)):
        linear = nn.Linear(*weight.shape[1:]).double()
        linear.weight.data = weight[k].detach().t().double()
        linear.bias.data = bias[k].detach().double()
        layers.append(linear)
        if i < len(network.norm_list):
            norm = nn.LayerNorm(weight.shape[2]).double()
            norm.weight.data, norm.bias.data = network.norm_list[i][k].detach().double()
            layers.append(norm)
        layers.append(nn.ReLU())
    return nn.Sequential(*layers[:-1])


def batch_of(layout: RowLayout, shape: tuple[int, ...], generator: torch.Generator) -> Tensor:
    """Rows as an environment might give them."""

    def randn(*more: int) -> Tensor:
        return torch.randn(*shape, *more, generator=generator)

    actions = 2.0 * torch.rand(*shape, layout.action_size, generator=generator) - 1.0
    terminated = torch.rand(shape, generator=generator) < 0.3
    size = layout.obs_size
    return layout.pack(randn(size), actions, randn(size), randn(), terminated)


def make_sac(accelerate: str, **options: Any) -> SACLearner:
    fields = {"hidden_sizes": (32, 32), "accelerate": accelerate, **options}
    return SACLearner(LAYOUT, SEEDS, SACOptions(**fields))


def make_td3(accelerate: str, **options: Any) -> TD3Learner:
    envs = make_vec("Reacher-v5", 1)  # of two actions
    box = ActionBox(envs.single_action_space)
    envs.close()
    fields = {"hidden_sizes": (32, 32), "accelerate": accelerate, **options}
    return TD3Learner(LAYOUT, box, SEEDS, TD3Options(**fields))


def problem(learner: Any, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """A minibatch in which rewards depend on observation and action."""
    rows = batch_of(LAYOUT, (1, len(SEEDS), 32), generator).to(torch.get_default_dtype())
    pairs = LAYOUT.obs_actions(rows)
    LAYOUT.rewards(rows).copy_((pairs[..., 0] * pairs[..., -1]).tanh())
    LAYOUT.continues(rows).mul_(0.97)  # as n-step returns weigh values
    noise = torch.randn(1, len(SEEDS), *learner.noise_shape(32), generator=generator)
    return rows, noise


def policy_network(num_inputs: int, num_outputs: int) -> nn.Module:
    return nn.Sequential(
        nn.Linear(num_inputs, 16), nn.LayerNorm(16), nn.GELU(), nn.Linear(16, num_outputs)
    )


def critic_network(num_inputs: int, num_outputs: int) -> nn.Module:
    return nn.Sequential(nn.Linear(num_inputs, 24), nn.Mish(), nn.Linear(24, num_outputs))
