"""FlashSAC (Kim et al. 2026, arXiv:2604.04539): soft actor-critic with large networks of bounded
norms, critics that predict distributions, and few gradient steps.

The specification, in plain PyTorch. Read it top to bottom: options, what is learned, the learner,
the training. What is soft actor-critic's in it stands in :mod:`pyfastenv.algorithms.sac.spec`; the
networks are in :mod:`pyfastenv.nn.unit_networks`. Settings are those of the authors' program for
simulators on a CPU (github.com/Holiday-Robot/FlashSAC, scripts/run_mujoco.sh).

Shapes: K seeds side by side, B transitions of a minibatch, A action components, N bins.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple

import torch
from torch import Tensor, nn

from pyfastenv.algorithms.flashsac.accelerated import CompiledNetworks
from pyfastenv.algorithms.sac.spec import METRICS, PolicyLoss, target_update, temperature_loss
from pyfastenv.nn.functional import onto_bins, squashed_gaussian
from pyfastenv.nn.networks import learning
from pyfastenv.nn.torch_policy import TorchPolicy
from pyfastenv.nn.unit_networks import BoundedLogStd, UnitNetwork, project
from pyfastenv.runs.options import POSITIVE, at_least
from pyfastenv.runs.seeds import Stream
from pyfastenv.sampling.buffers import RowLayout
from pyfastenv.sampling.exploration import RepeatedNoise
from pyfastenv.training.accelerators import Accelerator, autocast
from pyfastenv.training.actor_critic import ActorCritic, ActorCriticOptions, Batch, Recipe
from pyfastenv.training.changes import as_written
from pyfastenv.training.entry_points import entry_points
from pyfastenv.training.off_policy import OffPolicy
from pyfastenv.training.off_policy_config import OffPolicyConfig
from pyfastenv.training.presets import presets_of
from pyfastenv.training.reward_scale import RewardScale

LOG_STD_RANGE = (-10.0, 2.0)

# ---- options -------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class FlashSACOptions(ActorCriticOptions):
    """Settings of a learner, as in :class:`Config`."""

    policy_every: int
    policy_width: int
    critic_width: int
    num_blocks: int
    num_bins: int
    max_return: float
    target_std: float
    first_temperature: float = 0.01


@dataclass(kw_only=True)
class Config(OffPolicyConfig):
    """FlashSAC: soft actor-critic with large networks of bounded norms."""

    algorithm: ClassVar[str] = "flashsac"
    presets = presets_of("flashsac")
    options_type = FlashSACOptions

    env_id: str = "HalfCheetah-v5"
    """The environment; `pyfastenv envs` lists them."""
    learning_starts: int = 10_000
    """Environment steps with uniformly random actions before learning begins, all at once."""
    batch_size: int = field(default=512, metadata=at_least(2))
    """Transitions per gradient step."""
    tau: float = 0.01
    """How far the target networks follow with each gradient step."""
    learning_rate: float = field(default=3e-4, metadata=POSITIVE)
    """Adam's, for policy, critics and temperature."""
    anneal_to: float = 0.5
    """The share of themselves that learning rates fall to along a cosine; 1: they stay."""
    policy_every: int = field(default=2, metadata=at_least(1))
    """The critics' gradient steps for each of the policy's."""
    policy_width: int = field(default=128, metadata=at_least(1))
    """Features between the policy network's blocks (inside them four times as many)."""
    critic_width: int = field(default=256, metadata=at_least(1))
    """Features between a critic's blocks."""
    num_blocks: int = field(default=2, metadata=at_least(1))
    """Residual blocks of a network."""
    num_bins: int = field(default=101, metadata=at_least(2))
    """Values between which a critic distributes its value, from -max_return to max_return."""
    max_return: float = field(default=5.0, metadata=POSITIVE)
    """The number that the largest discounted return is scaled to."""
    target_std: float = field(default=0.15, metadata=POSITIVE)
    """The temperature is learned for the entropy of Gaussians of this deviation."""
    max_noise_repeat: int = field(default=16, metadata=at_least(1))
    """Exploring noise stays for n steps with a chance like 1 / n², for so many at most."""


# ---- what is learned -----------------------------------------------------------------------------


class Networks(NamedTuple):
    """The networks of K seeds."""

    actor: nn.Module  # (K, B, policy_size) -> (K, B, 2 A): means, then log-stds
    critic: nn.Module  # (2 K, B, critic_size + A) -> (2 K, B, N): each seed's two, logits of bins
    target: nn.Module  # as the critic
    log_temperature: Tensor  # (K,)
    bins: Tensor  # (N,)


def bin_log_probs(critic: nn.Module, obs: Tensor, actions: Tensor) -> Tensor:
    """Both critics' log-probabilities of the bins, ``(K, 2, B, N)``."""
    pairs = torch.cat((obs, actions), -1).repeat_interleave(2, 0)
    log_probs: Tensor = critic(pairs).float().log_softmax(-1)
    return torch.unflatten(log_probs, 0, (-1, 2))


def mean_value(probs: Tensor, bins: Tensor) -> Tensor:
    """Means ``(…)`` of distributions ``(…, N)``; ``amp`` would round a matrix product."""
    return (probs * bins).sum(-1)


def policy_loss(networks: Networks, batch: Batch, noise: Tensor) -> PolicyLoss:
    """Soft actor-critic's (arXiv:1812.05905, eq. 7); batches have the moments of both their ends.

    Args:
        networks: Of the K seeds.
        batch: Transitions.
        noise: ``(K, B, A)`` standard normal.
    """
    with learning(networks.actor):
        outputs = networks.actor(torch.cat((batch.obs, batch.next_obs), 1)).float()
    sample = squashed_gaussian(outputs.chunk(2, 1)[0], noise, LOG_STD_RANGE)
    probs = bin_log_probs(networks.critic, batch.critic_obs, sample.actions).exp()  # (K, 2, B, N)
    least = mean_value(probs, networks.bins).amin(1)  # (K, B)
    temperature = networks.log_temperature.detach().exp()[:, None]
    loss = (temperature * sample.log_probs - least).mean(1)
    return PolicyLoss(loss, -sample.log_probs.detach().mean(1), least.detach().mean(1))


def critic_loss(networks: Networks, batch: Batch, noise: Tensor, gamma: float | Tensor) -> Tensor:
    """Cross-entropy to the distribution that the more careful target critic expects, ``(K,)``.

    Both ends of the transitions go through the critics as one batch, whose moments normalise it.

    Args:
        networks: Of the K seeds; the policy just improved.
        batch: Transitions.
        noise: ``(K, B, A)`` standard normal.
        gamma: Discount.
    """
    with torch.no_grad():
        outputs = networks.actor(batch.next_obs).float()
        following = squashed_gaussian(outputs, noise, LOG_STD_RANGE)
        obs = torch.cat((batch.critic_obs, batch.next_critic_obs), 1)  # (K, 2 B, critic_size)
        actions = torch.cat((batch.actions, following.actions), 1)
        with learning(networks.target):
            probs = (
                bin_log_probs(networks.target, obs, actions).chunk(2, 2)[1].exp()
            )  # (K, 2, B, N)
        values = mean_value(probs, networks.bins)  # (K, 2, B)
        careful = values.argmin(1, keepdim=True)[..., None]  # (K, 1, B, 1)
        probs = probs.take_along_dim(careful, 1)[:, 0]  # (K, B, N)
        bonus = networks.log_temperature.exp()[:, None] * following.log_probs
        future = (gamma * batch.continues)[..., None] * (networks.bins - bonus[..., None])
        wanted = onto_bins(probs, batch.rewards[..., None] + future, networks.bins)
    with learning(networks.critic):
        found = bin_log_probs(networks.critic, obs, actions).chunk(2, 2)[0]  # (K, 2, B, N)
    return -(wanted[:, None] * found).sum(-1).mean((1, 2))


class Functions(NamedTuple):
    """Parts of learning that a subclass may replace: ``class Mine(FlashSAC): functions = …``."""

    policy_loss: Callable[[Networks, Batch, Tensor], PolicyLoss] = policy_loss
    critic_loss: Callable[[Networks, Batch, Tensor, float | Tensor], Tensor] = critic_loss
    temperature_loss: Callable[[Tensor, Tensor, float], Tensor] = temperature_loss
    target_update: Callable[[Tensor, Tensor, float], None] = target_update


# ---- the learner ---------------------------------------------------------------------------------


@as_written
class FlashSACLearner(ActorCritic):
    """A squashed Gaussian policy, twin critics and a temperature, for each of K seeds."""

    metrics = METRICS
    accelerators: ClassVar[tuple[type[Accelerator], ...]] = (CompiledNetworks,)
    log_std_range = LOG_STD_RANGE

    def __init__(
        self,
        layout: RowLayout,
        seeds: Sequence[int],
        options: FlashSACOptions,
        device: torch.device | str = "cpu",
        functions: Functions = Functions(),  # noqa: B008
    ):
        super().__init__(layout, seeds, options, device, functions)
        num_actions, inputs = layout.action_size, layout.critic_size + layout.action_size
        own_policy, own_critic = options.policy_factory, options.critic_factory
        actor = Recipe(own_policy or self._policy, layout.policy_size, 2 * num_actions)
        critic = Recipe(own_critic or self._critic, inputs, options.num_bins, per_seed=2)
        (self.actor,) = self.make_networks(seeds, actor)
        (self.critic,) = self.make_networks([seed + 1 for seed in seeds], critic)
        for network in (self.actor, self.critic):
            project(network.eval())
        self.target, self.flat_target = self.add_target(self.critic)
        start = math.log(options.first_temperature)
        self.log_temperature = nn.Parameter(torch.full((len(seeds),), start, device=self.device))
        self.add_optimizers([self.actor, self.log_temperature], [self.critic], fused=True)
        self.networks = {"actor": self.actor, "critic": self.critic, "target": self.target}
        most = options.max_return
        self.bins = torch.linspace(-most, most, options.num_bins).to(self.device)
        variance = options.target_std**2
        self.target_entropy = 0.5 * num_actions * math.log(2.0 * math.pi * math.e * variance)
        self.num_updates = 0
        # the policy's latest step: loss, entropy, temperature, the critics' value
        self.latest = torch.zeros(4, len(seeds), device=self.device)
        self._choose()

    def _policy(self, num_inputs: int, num_outputs: int) -> nn.Module:
        width, depth = self.options.policy_width, self.options.num_blocks
        network = UnitNetwork(num_inputs, num_outputs, width, depth)
        return nn.Sequential(network, BoundedLogStd(*LOG_STD_RANGE))

    def _critic(self, num_inputs: int, num_outputs: int) -> nn.Module:
        width, depth = self.options.critic_width, self.options.num_blocks
        return UnitNetwork(num_inputs, num_outputs, width, depth)

    def noise_shape(self, batch_size: int) -> tuple[int, int]:
        """The shape of the noise for the policy's improvement, then for the critics' target."""
        return (2 * batch_size, self.layout.action_size)

    def learning(self) -> AbstractContextManager[None]:
        """The losses say which passes are in training mode."""
        return nullcontext()

    def mixed_precision(self) -> torch.autocast:
        """All networks here are plain modules."""
        return autocast(self.options.bfloat16, self.device)

    def update(
        self,
        rows: Tensor,
        noise: Tensor,
        metrics: Tensor | None = None,
    ) -> None:
        """One gradient step of the critics, every other time after one of policy and temperature.

        Rewards in the rows are scaled.
        """
        f, options = self.functions, self.options
        batch = Batch.of(rows, self.layout)
        now, later = noise.chunk(2, 1)
        networks = Networks(self.actor, self.critic, self.target, self.log_temperature, self.bins)
        if self.num_updates % options.policy_every == 0:
            self._improve_policy(networks, batch, now)
        self.num_updates += 1

        with self.mixed_precision():
            critic_loss = f.critic_loss(networks, batch, later, self.discount)
        self.flat_critic.backward(critic_loss.sum())
        self.critic_optimizer.step()
        project(self.critic)
        f.target_update(
            self.flat_target.parameter.data, self.flat_critic.parameter.data, options.tau
        )
        if metrics is not None:
            metrics.copy_(torch.cat((critic_loss.detach()[None], self.latest)))

    def _improve_policy(self, networks: Networks, batch: Batch, noise: Tensor) -> None:
        temperature = self.log_temperature.detach().exp()
        with self.mixed_precision():
            policy = self.functions.policy_loss(networks, batch, noise)
        loss = policy.loss + self.functions.temperature_loss(
            self.log_temperature, policy.entropy, self.target_entropy
        )
        self.flat_policy.backward(loss.sum())
        self.policy_optimizer.step()
        project(networks.actor)
        values = (policy.loss.detach(), policy.entropy, temperature, policy.value)
        self.latest.copy_(torch.stack(values))

    def state_dict(self) -> dict[str, Any]:
        """Networks, temperature and optimisers."""
        return {
            **super().state_dict(),
            "log_temperature": self.log_temperature.detach(),
            "num_updates": self.num_updates,
            "latest": self.latest,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restores :meth:`state_dict`."""
        super().load_state_dict(state)
        self.log_temperature.data.copy_(state["log_temperature"])
        self.num_updates = state["num_updates"]
        self.latest.copy_(state["latest"])


# ---- the training --------------------------------------------------------------------------------


class FlashSAC(OffPolicy[Config]):
    """The algorithm; :func:`train` drives it. ``restore`` is a :meth:`state_dict` to go on from."""

    functions: ClassVar[Functions] = Functions()
    learner: FlashSACLearner

    def __init__(self, config: Config, restore: dict[str, Any] | None = None):
        super().__init__(config)
        num_seeds, num_envs = config.num_seeds, config.num_envs
        self.reward_scale = RewardScale(
            num_seeds, num_envs, gamma=config.greatest_discount(), bound=config.max_return
        )
        self.noise = RepeatedNoise(
            num_seeds, num_envs, self.layout.action_size, config.max_noise_repeat, self.device
        )
        self.parts += ["reward_scale", "noise"]
        self.learned.append("reward_scale")
        self._policies = self.plain_policies()
        for policy, draw_noise in zip(self._policies, self.noise.each(), strict=True):
            policy.draw_noise = draw_noise
        if restore is not None:
            self.load_state_dict(restore)

    def make_learner(self) -> FlashSACLearner:
        """Policy, critics and temperature."""
        config = self.config
        seeds = config.streams(Stream.POLICY)
        return FlashSACLearner(self.layout, seeds, config.options(), self.device, self.functions)

    def policies(self) -> list[TorchPolicy]:
        """The K policies, as they explore."""
        return self._policies

    def eval_policy(self) -> list[TorchPolicy]:
        """The policies without randomness; where noise is asked for, it is fresh at every step."""
        return [policy.as_greedy() for policy in self.plain_policies()]

    def plain_policies(self) -> list[TorchPolicy]:
        """The K policies, with fresh noise at every step."""
        policies = self.learner.policies(
            self.envs.single_action_space,
            distribution="tanh_gaussian",
            log_std_range=LOG_STD_RANGE,
        )
        assert isinstance(policies, list)
        return policies

    def observe(self, rows: Tensor) -> None:
        """Takes the size of new returns."""
        self.reward_scale.update(self.layout.rewards(rows), self.collector.ended)

    def draw_rows(self, count: int, size: int) -> Tensor:
        """Independent minibatches ``(count, K, size, width)`` with scaled rewards."""
        rows = super().draw_rows(count, size)
        self.layout.rewards(rows).mul_(self.reward_scale.factors().to(self.device)[:, None])
        return rows


train, load_policy = entry_points(lambda: FlashSAC)
