"""Soft actor-critic (Haarnoja et al. 2018, arXiv:1812.05905) with a learned temperature.

The specification, in plain PyTorch. Read it top to bottom: options, the four functions that say
what is learned, the learner that steps along their gradients, the training around it. What makes it
fast computes the same steps in another way and is tested against this file (``--accelerate``,
:mod:`pyfastenv.algorithms.sac.accelerated`).

K independent seeds stand side by side along the leading axis of every tensor, each as it would be
alone. Shapes: K seeds, B transitions of a minibatch, A action components, in [-1, 1].
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple, TypeVar

import torch
from torch import Tensor, nn

from pyfastenv.algorithms.sac.accelerated import (
    Compiled,
    CompiledBfloat16,
    CompiledStep,
    WrittenOut,
)
from pyfastenv.nn.functional import squashed_gaussian
from pyfastenv.nn.policy_spec import PolicySpec
from pyfastenv.nn.torch_policy import TorchPolicy
from pyfastenv.runs.options import FINITE, POSITIVE, WIDTHS, check_fixed
from pyfastenv.runs.seeds import Stream
from pyfastenv.sampling.buffers import RowLayout
from pyfastenv.training.accelerators import Accelerator
from pyfastenv.training.actor_critic import ActorCritic, ActorCriticOptions, Batch, Recipe
from pyfastenv.training.changes import as_written
from pyfastenv.training.entry_points import entry_points
from pyfastenv.training.off_policy import OffPolicy
from pyfastenv.training.off_policy_config import NormalizingConfig, OffPolicyConfig
from pyfastenv.training.presets import presets_of

# ---- options -------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class SACOptions(ActorCriticOptions):
    """Settings of a learner; the policy's learning rate is the temperature's too."""

    temperature: float | None = None  # None: learned, from 1
    target_entropy: float | None = None  # None: minus the number of action components
    log_std_range: tuple[float, float] = (-20.0, 2.0)


@dataclass(kw_only=True)
class SACConfig(OffPolicyConfig):
    """The options that SAC shares with algorithms that learn by it (MBPO)."""

    options_type = SACOptions

    learning_rate: float = field(default=3e-4, metadata=POSITIVE)
    """Adam's, for policy, critics and temperature."""
    temperature: float | None = field(default=None, metadata=POSITIVE)
    """Weight of the entropy; None: learned."""
    target_entropy: float | None = field(default=None, metadata=FINITE)
    """Target of the learned temperature; None: minus the number of action components."""
    hidden_sizes: tuple[int, ...] = field(default=(256, 256), metadata=WIDTHS)
    """Hidden layers, of policy and critics each."""
    layer_norm: bool = False
    """Layer normalisation of hidden layers, before their activation."""

    def check(self) -> None:
        super().check()
        if self.temperature is not None:
            why = f"a temperature of {self.temperature} stays (of a preset: --target-entropy None)"
            check_fixed(self, ("target_entropy", None, why))


@dataclass(kw_only=True)
class Config(SACConfig, NormalizingConfig):
    """Soft actor-critic."""

    algorithm: ClassVar[str] = "sac"
    presets = presets_of("sac")

    env_id: str = "Hopper-v5"
    """The environment; `pyfastenv envs` lists them."""


# ---- what is learned -----------------------------------------------------------------------------


class Networks(NamedTuple):
    """The networks of K seeds."""

    actor: nn.Module  # (K, B, policy_size) -> (K, B, 2 A): means, then log-stds
    critic: nn.Module  # (2 K, B, critic_size + A) -> (2 K, B, 1): each seed's two
    target: nn.Module  # as the critic
    log_temperature: Tensor  # (K,)
    log_std_range: tuple[float, float]


class PolicyLoss(NamedTuple):
    """The results of :func:`policy_loss`; only the first has a gradient."""

    loss: Tensor  # (K,)
    entropy: Tensor  # (K,)
    value: Tensor  # (K,) the critics' mean


def twin_values(critic: nn.Module, obs: Tensor, actions: Tensor) -> Tensor:
    """Both critics' values, ``(K, 2, B)``."""
    pairs = torch.cat((obs, actions), -1).repeat_interleave(2, 0)
    values: Tensor = critic(pairs)[..., 0].unflatten(0, (-1, 2))
    return values


def critic_loss(networks: Networks, batch: Batch, noise: Tensor, gamma: float | Tensor) -> Tensor:
    """Squared error to the entropy-regularised target (eq. 5 and 6), ``(K,)``.

    Args:
        networks: Of the K seeds.
        batch: Transitions.
        noise: ``(K, B, A)`` standard normal.
        gamma: Discount.
    """
    with torch.no_grad():
        outputs = networks.actor(batch.next_obs)
        following = squashed_gaussian(outputs, noise, networks.log_std_range)
        values = twin_values(networks.target, batch.next_critic_obs, following.actions).amin(1)
        soft = values - networks.log_temperature.exp()[:, None] * following.log_probs
        targets = batch.rewards + gamma * batch.continues * soft  # (K, B)
    errors = twin_values(networks.critic, batch.critic_obs, batch.actions) - targets[:, None]
    return 0.5 * errors.square().mean(2).sum(1)


def policy_loss(networks: Networks, batch: Batch, noise: Tensor) -> PolicyLoss:
    """Entropy and the smaller critic's value (eq. 7), reparameterised.

    Args:
        networks: Of the K seeds; the critics just improved.
        batch: Transitions, of which the beginnings count.
        noise: ``(K, B, A)`` standard normal.
    """
    sample = squashed_gaussian(networks.actor(batch.obs), noise, networks.log_std_range)
    values = twin_values(networks.critic, batch.critic_obs, sample.actions).amin(1)  # (K, B)
    temperature = networks.log_temperature.detach().exp()[:, None]
    loss = (temperature * sample.log_probs - values).mean(1)
    return PolicyLoss(loss, -sample.log_probs.detach().mean(1), values.detach().mean(1))


def temperature_loss(log_temperature: Tensor, entropy: Tensor, target_entropy: float) -> Tensor:
    """Eq. 18, with the logarithm in place of the temperature as is usual, ``(K,)``.

    Args:
        log_temperature: ``(K,)``.
        entropy: ``(K,)`` of the policies, without gradient.
        target_entropy: What it is to be.
    """
    return log_temperature * (entropy - target_entropy)


def target_update(target: Tensor, online: Tensor, tau: float) -> None:
    """The target networks follow: ``target += tau * (online - target)``, in place.

    Args:
        target: All parameters of the target networks as one vector.
        online: Those of the networks that they follow.
        tau: How far.
    """
    target.lerp_(online, tau)


class Functions(NamedTuple):
    """The parts of learning that a subclass may replace: ``class Mine(SAC): functions = …``."""

    critic_loss: Callable[[Networks, Batch, Tensor, float | Tensor], Tensor] = critic_loss
    policy_loss: Callable[[Networks, Batch, Tensor], PolicyLoss] = policy_loss
    temperature_loss: Callable[[Tensor, Tensor, float], Tensor] = temperature_loss
    target_update: Callable[[Tensor, Tensor, float], None] = target_update


# ---- the learner ---------------------------------------------------------------------------------

METRICS = ("loss/critic", "loss/policy", "policy/entropy", "policy/temperature", "value/mean")


@as_written
class SACLearner(ActorCritic):
    """A squashed Gaussian policy, twin critics and a temperature, for each of K seeds."""

    metrics = METRICS
    accelerators: ClassVar[tuple[type[Accelerator], ...]] = (
        CompiledBfloat16,
        CompiledStep,
        WrittenOut,
        Compiled,
    )

    def __init__(
        self,
        layout: RowLayout,
        seeds: Sequence[int],
        options: SACOptions,
        device: torch.device | str = "cpu",
        functions: Functions = Functions(),  # noqa: B008
    ):
        super().__init__(layout, seeds, options, device, functions)
        num_actions = layout.action_size
        actor = Recipe(options.policy_factory, layout.policy_size, 2 * num_actions)
        inputs = layout.critic_size + num_actions
        critic = Recipe(options.critic_factory, inputs, 1, per_seed=2)
        (self.actor,) = self.make_networks(seeds, actor)
        (self.critic,) = self.make_networks([seed + 1 for seed in seeds], critic)
        self.target, self.flat_target = self.add_target(self.critic)
        self.learns_temperature = options.temperature is None
        start = math.log(1.0 if options.temperature is None else options.temperature)
        self.log_temperature = nn.Parameter(torch.full((len(seeds),), start, device=self.device))
        with_temperature = [self.log_temperature] if self.learns_temperature else []
        self.add_optimizers([self.actor, *with_temperature], [self.critic], fused=True)
        self.networks = {"actor": self.actor, "critic": self.critic, "target": self.target}
        entropy = options.target_entropy
        self.target_entropy = -float(num_actions) if entropy is None else entropy
        self._choose()

    def noise_shape(self, batch_size: int) -> tuple[int, int]:
        """The shape of the noise for the policy's improvement, then for the critics' target."""
        return (2 * batch_size, self.layout.action_size)

    def update(
        self,
        rows: Tensor,
        noise: Tensor,
        metrics: Tensor | None = None,
        functions: Functions | None = None,
    ) -> None:
        """One gradient step of critics, policy and temperature, and the targets after them."""
        f, options = functions or self.functions, self.options
        batch = Batch.of(rows, self.layout)
        now, later = noise.chunk(2, 1)
        networks = Networks(
            self.actor, self.critic, self.target, self.log_temperature, options.log_std_range
        )
        temperature = self.log_temperature.detach().exp()

        with self.mixed_precision():
            critic = f.critic_loss(networks, batch, later, self.discount)
        self.flat_critic.backward(critic.sum())
        self.critic_optimizer.step()

        with self.mixed_precision():
            policy = f.policy_loss(networks, batch, now)
        loss = policy.loss
        if self.learns_temperature:
            target = self.target_entropy
            loss = loss + f.temperature_loss(self.log_temperature, policy.entropy, target)
        self.flat_policy.backward(loss.sum())
        self.policy_optimizer.step()

        f.target_update(
            self.flat_target.parameter.data, self.flat_critic.parameter.data, options.tau
        )
        self.refresh()
        if metrics is not None:
            values = (critic, policy.loss, policy.entropy, temperature, policy.value)
            metrics.copy_(torch.stack([value.detach().float() for value in values]))

    @torch.no_grad()
    def act(self, obs: Tensor, noise: Tensor) -> Tensor:
        """Actions ``(K, n, A)`` of observations ``(K, n, obs_size)`` and as much normal noise."""
        mean, raw = self.actor(obs[..., self.layout.policy]).chunk(2, -1)
        std = raw.clamp(*self.options.log_std_range).exp()
        return torch.addcmul(mean, std, noise).tanh_()

    def state_dict(self) -> dict[str, Any]:
        """Networks, temperature and optimisers."""
        return {**super().state_dict(), "log_temperature": self.log_temperature.detach()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restores :meth:`state_dict`."""
        super().load_state_dict(state)
        if self.learns_temperature:
            self.log_temperature.data.copy_(state["log_temperature"])


# ---- the training --------------------------------------------------------------------------------

C = TypeVar("C", bound=SACConfig)


class SACTraining(OffPolicy[C]):
    """A training by SAC: its learner and its policies."""

    functions: ClassVar[Functions] = Functions()
    learner: SACLearner

    def make_learner(self) -> SACLearner:
        """Policy, critics and temperature."""
        config = self.config
        seeds = config.streams(Stream.POLICY)
        return SACLearner(self.layout, seeds, config.options(), self.device, self.functions)

    def policies(self) -> PolicySpec | list[TorchPolicy]:
        """The K policies, as they explore."""
        return self.learner.policies(
            self.envs.single_action_space,
            distribution="tanh_gaussian",
            log_std_range=self.learner.options.log_std_range,
            **self.normalizer.spec_fields(self.layout.policy),
        )


class SAC(SACTraining[Config]):
    """The algorithm; :func:`train` drives it. ``restore`` is a :meth:`state_dict` to go on from."""


train, load_policy = entry_points(lambda: SAC)
