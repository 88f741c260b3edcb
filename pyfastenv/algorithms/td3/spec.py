"""Twin delayed deep deterministic policy gradient (TD3; Fujimoto et al. 2018, arXiv:1802.09477).

The specification, in plain PyTorch. Read it top to bottom: options, the functions that say what is
learned, the learner that steps along their gradients, the training around it. What makes it fast is
tested against this file (:mod:`pyfastenv.algorithms.td3.accelerated`). With one critic, a policy
that is never delayed and no noise on its targets it is DDPG (:mod:`pyfastenv.algorithms.ddpg`).

Shapes: K seeds side by side, C critics of each, B transitions of a minibatch, A action components.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple

import torch
from torch import Tensor, nn

from pyfastenv.algorithms.sac.spec import target_update
from pyfastenv.algorithms.td3.accelerated import WrittenOut
from pyfastenv.nn.networks import FlatParameters
from pyfastenv.nn.policy_spec import Activation, PolicySpec
from pyfastenv.nn.torch_policy import TorchPolicy
from pyfastenv.runs.options import FINITE_AT_LEAST_0, POSITIVE, WIDTHS, at_least
from pyfastenv.runs.seeds import Stream
from pyfastenv.sampling.buffers import RowLayout
from pyfastenv.sampling.exploration import ActionBox
from pyfastenv.training import distributed
from pyfastenv.training.accelerators import Accelerator
from pyfastenv.training.actor_critic import ActorCritic, ActorCriticOptions, Batch, Recipe
from pyfastenv.training.changes import as_written
from pyfastenv.training.entry_points import entry_points
from pyfastenv.training.off_policy import OffPolicy
from pyfastenv.training.off_policy_config import NormalizingConfig
from pyfastenv.training.presets import presets_of

# ---- options -------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class TD3Options(ActorCriticOptions):
    """Settings of a learner."""

    num_critics: int = 2
    policy_delay: int = 2
    target_noise: float = 0.2
    target_noise_clip: float = 0.5


@dataclass(kw_only=True)
class Config(NormalizingConfig):
    """Twin delayed deep deterministic policy gradient."""

    algorithm: ClassVar[str] = "td3"
    presets = presets_of("td3")
    begins_with = ("td3", "td3_bc")
    processes = True
    exploration_dtype = torch.float32
    options_type = TD3Options

    env_id: str = "Hopper-v5"
    """The environment; `pyfastenv envs` lists them."""
    learning_starts: int = 25_000
    """Environment steps with uniformly random actions before learning begins, all at once."""
    policy_learning_rate: float = field(default=3e-4, metadata=POSITIVE)
    """Adam's, for the policy."""
    critic_learning_rate: float = field(default=3e-4, metadata=POSITIVE)
    """Adam's, for the critics."""
    noise: float = field(default=0.1, metadata=FINITE_AT_LEAST_0)
    """Standard deviation of the exploration, in halves of the action space's width."""
    num_critics: int = field(default=2, metadata=at_least(1))
    """Critics, of which the least value is what a target trusts."""
    policy_delay: int = field(default=2, metadata=at_least(1))
    """Gradient steps of the critics for each of the policy and of the target networks."""
    target_noise: float = field(default=0.2, metadata=at_least(0))
    """Standard deviation of the noise on the target policy's actions, in units of noise …"""
    target_noise_clip: float = field(default=0.5, metadata=at_least(0))
    """… and its bound."""
    hidden_sizes: tuple[int, ...] = field(default=(256, 256), metadata=WIDTHS)
    """Hidden layers, of policy and critics each."""
    activation: Activation = "relu"
    """Activation function of hidden layers."""
    layer_norm: bool = False
    """Layer normalisation of hidden layers, before their activation."""


# ---- what is learned -----------------------------------------------------------------------------


class Networks(NamedTuple):
    """The networks of K seeds. The critics see actions as the environment does."""

    actor: nn.Module  # (K, B, policy_size) -> (K, B, A), actions before tanh
    critic: nn.Module  # (K C, B, critic_size + A) -> (K C, B, 1): each seed's one after another
    target_actor: nn.Module
    target_critic: nn.Module
    center: Tensor  # (A,) of the action space
    half: Tensor  # (A,) its half width
    options: TD3Options


def act(networks: Networks, actor: nn.Module, obs: Tensor) -> Tensor:
    """The policy's actions for the environment, ``(K, B, A)``."""
    return torch.addcmul(networks.center, actor(obs).tanh(), networks.half)


def target_actions(networks: Networks, obs: Tensor, noise: Tensor) -> Tensor:
    """The target policy's actions with clipped noise (section 5.3), ``(K, B, A)``."""
    options = networks.options
    if options.target_noise == 0.0:
        return act(networks, networks.target_actor, obs)
    bound = options.target_noise_clip
    spread = (options.target_noise * noise).clamp(-bound, bound)
    actions = (networks.target_actor(obs).tanh() + spread).clamp(-1.0, 1.0)
    return torch.addcmul(networks.center, actions, networks.half)


def critic_values(networks: Networks, critic: nn.Module, obs: Tensor, actions: Tensor) -> Tensor:
    """Each critic's values of the environment's actions, ``(K, C, B)``."""
    number = networks.options.num_critics
    pairs = torch.cat((obs, actions), -1).repeat_interleave(number, 0)
    values: Tensor = critic(pairs)[..., 0].unflatten(0, (-1, number))
    return values


def critic_loss(networks: Networks, batch: Batch, noise: Tensor, gamma: float | Tensor) -> Tensor:
    """Squared errors to the least of what the target networks expect (algorithm 1), ``(K,)``.

    Args:
        networks: Of the K seeds.
        batch: Transitions.
        noise: ``(K, B, A)`` standard normal; ``(K, 0)`` without target noise.
        gamma: Discount.
    """
    with torch.no_grad():
        next_actions = target_actions(networks, batch.next_obs, noise)
        seen, target = batch.next_critic_obs, networks.target_critic
        next_values = critic_values(networks, target, seen, next_actions)
        # a truncated episode would have gone on: only termination makes the future worthless
        targets = batch.rewards + gamma * batch.continues * next_values.amin(1)
    actions = torch.addcmul(networks.center, batch.actions, networks.half)
    errors = critic_values(networks, networks.critic, batch.critic_obs, actions) - targets[:, None]
    return errors.square().mean(2).sum(1)


def policy_loss(networks: Networks, batch: Batch) -> Tensor:
    """The first critic's value of the policy's actions (algorithm 1), ``(K,)``."""
    actions = act(networks, networks.actor, batch.obs)
    return -critic_values(networks, networks.critic, batch.critic_obs, actions)[:, 0].mean(1)


class Functions(NamedTuple):
    """The parts of learning that a subclass may replace: ``class Mine(TD3): functions = …``."""

    critic_loss: Callable[[Networks, Batch, Tensor, float | Tensor], Tensor] = critic_loss
    policy_loss: Callable[[Networks, Batch], Tensor] = policy_loss
    target_update: Callable[[Tensor, Tensor, float], None] = target_update


# ---- the learner ---------------------------------------------------------------------------------


@as_written
class TD3Learner(ActorCritic):
    """A policy and critics for each of K seeds, and the targets that follow them.

    Args:
        layout: Of the rows; their observations are normalised if wanted.
        box: The environments' actions.
        seeds: K seeds of the initial networks.
        options: The settings.
        device: Where everything is.
        functions: What is learned.
    """

    metrics = ("loss/critic", "loss/policy")
    accelerators: ClassVar[tuple[type[Accelerator], ...]] = (WrittenOut,)

    def __init__(
        self,
        layout: RowLayout,
        box: ActionBox,
        seeds: Sequence[int],
        options: TD3Options,
        device: torch.device | str = "cpu",
        functions: Any = Functions(),  # noqa: B008
    ):
        super().__init__(layout, seeds, options, device, functions)
        self.center = box.center.to(self.device, torch.float32)
        self.half = box.half.to(self.device, torch.float32)
        num_actions, num_critics = layout.action_size, options.num_critics
        inputs = layout.critic_size + num_actions
        self.actor, self.critic = self.make_networks(
            seeds,
            Recipe(options.policy_factory, layout.policy_size, num_actions),
            Recipe(options.critic_factory, inputs, 1, per_seed=num_critics),
        )
        distributed.broadcast([*self.actor.parameters(), *self.critic.parameters()])
        self.target_actor, self.flat_target_policy = self.add_target(self.actor)
        self.target_critic, self.flat_target_critic = self.add_target(self.critic)
        self.add_optimizers([self.actor], [self.critic])
        self.networks = {
            "actor": self.actor,
            "critic": self.critic,
            "target_actor": self.target_actor,
            "target_critic": self.target_critic,
        }
        self._choose()

    def noise_shape(self, batch_size: int) -> tuple[int, ...]:
        """The shape of the target policy's noise; without it none is needed."""
        return (batch_size, self.layout.action_size) if self.options.target_noise > 0.0 else (0,)

    def update(self, rows: Tensor, noise: Tensor, metrics: Tensor | None = None) -> None:
        """A gradient step of the critics, and when it is due one of the policy with the targets
        after it (algorithm 1)."""
        f, options = self.functions, self.options
        batch, networks = Batch.of(rows, self.layout), self.as_networks()
        with self.mixed_precision():
            critic = f.critic_loss(networks, batch, noise, self.discount)
        self.flat_critic.backward(critic.sum())
        self.average(self.flat_critic)
        self.critic_optimizer.step()
        due = self.critic_optimizer.num_steps % options.policy_delay == 0
        if due or metrics is not None:
            with self.mixed_precision():
                policy = f.policy_loss(networks, batch)
        if due:
            self.flat_policy.backward(policy.sum())
            self.average(self.flat_policy)
            self.policy_optimizer.step()
            for target, online in (
                (self.flat_target_critic, self.flat_critic),
                (self.flat_target_policy, self.flat_policy),
            ):
                f.target_update(target.parameter.detach(), online.parameter.detach(), options.tau)
        self.refresh()
        if metrics is not None:
            metrics.copy_(torch.stack((critic, policy)).detach())

    def as_networks(self) -> Networks:
        """The networks as the functions above take them."""
        return Networks(
            self.actor,
            self.critic,
            self.target_actor,
            self.target_critic,
            self.center,
            self.half,
            self.options,
        )

    def average(self, flat: FlatParameters) -> None:
        """Takes the gradients' means over torchrun's processes."""
        distributed.average_gradients([flat.parameter])


# ---- the training --------------------------------------------------------------------------------


class TD3(OffPolicy[Config]):
    """The algorithm; :func:`train` drives it.

    Args:
        config: The options.
        restore: A :meth:`state_dict`, to continue from it.

    Raises:
        ValueError: The environment's actions are not continuous.
    """

    functions: ClassVar[Any] = Functions()
    learner_type: ClassVar[type[TD3Learner]] = TD3Learner
    learner: TD3Learner

    def make_learner(self) -> TD3Learner:
        """Policy and critics."""
        config, box = self.config, self.collector.actions
        seeds = config.streams(Stream.POLICY)
        options = config.options()
        return self.learner_type(self.layout, box, seeds, options, self.device, self.functions)

    def policies(self) -> PolicySpec | list[TorchPolicy]:
        """The K policies, with noise."""
        return self.learner.policies(
            self.envs.single_action_space,
            distribution="deterministic",
            noise=self.config.noise,
            **self.normalizer.spec_fields(self.layout.policy),
        )

    def draw_rows(self, count: int, size: int) -> Tensor:
        """Independent minibatches ``(count, K, size, width)``."""
        there = int(self.env_pool.sizes[0])  # seeds step alike: as many rows each
        return self.replayed(self.streams.integers(there, count, size))


train, load_policy = entry_points(lambda: TD3)
