"""Deep Q-learning (DQN; Mnih et al. 2015, doi:10.1038/nature14236) for discrete actions.

The specification, in plain PyTorch. Read it top to bottom: options, the functions that say what is
learned, the learner that steps along their gradient, the training around it. What makes it fast is
tested against this file (:mod:`pyfastenv.algorithms.dqn.accelerated`). Targets are double DQN's
(van Hasselt et al. 2016, arXiv:1509.06461) and, with ``n_step``, have the rewards of several steps.

Shapes: K seeds side by side, B transitions of a minibatch, A actions, one of which is taken.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, NamedTuple

import torch
from torch import Tensor, nn

from pyfastenv.algorithms.dqn.accelerated import WrittenOut
from pyfastenv.algorithms.sac.spec import target_update
from pyfastenv.nn.networks import FlatParameters
from pyfastenv.nn.optim import FlatAdam
from pyfastenv.nn.policy_spec import Activation, PolicySpec
from pyfastenv.nn.torch_policy import TorchPolicy
from pyfastenv.runs.options import FRACTION, POSITIVE, POSITIVE_OR_INFINITE, WIDTHS, at_least
from pyfastenv.runs.seeds import Stream
from pyfastenv.sampling.buffers import RowLayout
from pyfastenv.sampling.exploration import ActionNumbers, discrete_actions
from pyfastenv.training.accelerators import Accelerator
from pyfastenv.training.actor_critic import ActorCritic, ActorCriticOptions, Batch, Recipe
from pyfastenv.training.changes import as_written
from pyfastenv.training.collecting import SeedCollector
from pyfastenv.training.entry_points import entry_points
from pyfastenv.training.off_policy import OffPolicy
from pyfastenv.training.off_policy_config import NormalizingConfig
from pyfastenv.training.presets import presets_of
from pyfastenv.vector.vector_env import FastVectorEnv

# ---- options -------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class DQNOptions(ActorCriticOptions):
    """Settings of a learner."""

    double: bool = True
    target_every: int = 1
    huber_delta: float = 1.0


@dataclass(kw_only=True)
class Config(NormalizingConfig):
    """Deep Q-learning."""

    algorithm: ClassVar[str] = "dqn"
    presets = presets_of("dqn")
    options_type = DQNOptions

    env_id: str = "CartPole-v1"
    """The environment, whose actions are discrete; `pyfastenv envs` lists them."""
    total_steps: int = 100_000
    """Environment steps to train for, of each seed."""
    learning_starts: int = 1_000
    """Environment steps with uniformly random actions before learning begins, all at once."""
    buffer_size: int = 100_000
    """Transitions that each seed remembers."""
    batch_size: int = 64
    """Transitions per gradient step."""
    learning_rate: float = field(default=1e-3, metadata=POSITIVE)
    """Adam's."""
    tau: float = 0.005
    """How far the target network follows each time; 1: it becomes a copy."""
    target_every: int = field(default=1, metadata=at_least(1))
    """Gradient steps for each time that the target network follows."""
    double: bool = True
    """The target network values the action that the learning one would take, not its own best."""
    huber_delta: float = field(default=1.0, metadata=POSITIVE_OR_INFINITE)
    """Errors beyond it count linearly; inf: squared errors. Where values are much greater, linear
    ones make them medians, which rare ends of episodes do not move."""
    epsilon: float = field(default=1.0, metadata=FRACTION)
    """Probability of a uniformly random action in place of the best, at first …"""
    final_epsilon: float = field(default=0.05, metadata=FRACTION)
    """… and after epsilon_steps."""
    epsilon_steps: int = field(default=10_000, metadata=at_least(1))
    """Environment steps in which it falls, along a line."""
    hidden_sizes: tuple[int, ...] = field(default=(256, 256), metadata=WIDTHS)
    """Hidden layers."""
    activation: Activation = "relu"
    """Activation function of hidden layers."""

    def check(self) -> None:
        super().check()
        if self.critic_factory is not None:
            raise ValueError(
                f"critic_factory: expected None, got {self.critic_factory!r}: dqn has one network "
                "(observations to a value of each action), which policy_factory makes"
            )

    def epsilon_at(self, step: int) -> float:
        """The probability of a random action at an environment step."""
        done = min(step / self.epsilon_steps, 1.0)
        return self.epsilon + done * (self.final_epsilon - self.epsilon)


# ---- what is learned -----------------------------------------------------------------------------


class Networks(NamedTuple):
    """The networks of K seeds."""

    online: nn.Module  # (K, B, policy_size) -> (K, B, A), the actions' values
    target: nn.Module
    options: DQNOptions


def value_of(values: Tensor, actions: Tensor) -> Tensor:
    """Values ``(K, B)`` of actions ``(K, B)`` int64, of ``(K, B, A)`` of all."""
    return values.gather(-1, actions[..., None])[..., 0]


@torch.no_grad()
def targets(networks: Networks, batch: Batch, gamma: float | Tensor) -> Tensor:
    """Targets of the values of taken actions (double DQN's equation 4), ``(K, B)``."""
    next_values = networks.target(batch.next_obs)
    judged = networks.online(batch.next_obs) if networks.options.double else next_values
    # a truncated episode would have gone on: only termination makes the future worthless
    future = batch.continues * value_of(next_values, judged.argmax(-1))
    return batch.rewards + gamma * future


def value_loss(networks: Networks, batch: Batch, gamma: float | Tensor) -> Tensor:
    """Huber loss (errors beyond huber_delta count linearly) of the taken actions' values, ``(K,)``.

    Args:
        networks: Of the K seeds.
        batch: Transitions; its actions ``(K, B, 1)`` are numbers from 0 on.
        gamma: Discount.
    """
    values = value_of(networks.online(batch.obs), batch.actions[..., 0].long())
    goals = targets(networks, batch, gamma)
    delta = networks.options.huber_delta
    return nn.functional.huber_loss(values, goals, reduction="none", delta=delta).mean(1)


class Functions(NamedTuple):
    """The parts of learning that a subclass may replace: ``class Mine(DQN): functions = …``."""

    value_loss: Callable[[Networks, Batch, float | Tensor], Tensor] = value_loss
    target_update: Callable[[Tensor, Tensor, float], None] = target_update


# ---- the learner ---------------------------------------------------------------------------------


@as_written
class DQNLearner(ActorCritic):
    """A network for each of K seeds, which is policy and critic in one, and its target.

    Args:
        layout: Of the rows.
        num_actions: A.
        seeds: K seeds of the initial networks.
        options: The settings.
        device: Where everything is.
        functions: What is learned.
    """

    metrics = ("loss/value",)
    accelerators: ClassVar[tuple[type[Accelerator], ...]] = (WrittenOut,)

    def __init__(
        self,
        layout: RowLayout,
        num_actions: int,
        seeds: Sequence[int],
        options: DQNOptions,
        device: torch.device | str = "cpu",
        functions: Functions = Functions(),  # noqa: B008
    ):
        super().__init__(layout, seeds, options, device, functions)
        recipe = Recipe(options.policy_factory, layout.policy_size, num_actions)
        (self.actor,) = self.make_networks(seeds, recipe)
        self.critic = self.actor
        self.target, self.flat_target = self.add_target(self.actor)
        self.flat_policy = FlatParameters([self.actor])
        self.critic_optimizer = FlatAdam(self.flat_policy, lr=options.critic_learning_rate)
        self.networks = {"actor": self.actor, "target": self.target}
        self._choose()

    @property
    def optimizers(self) -> dict[str, FlatAdam]:
        """The one optimiser."""
        return {"critic_optimizer": self.critic_optimizer}

    def noise_shape(self, batch_size: int) -> tuple[int, ...]:
        """No noise is needed."""
        return (0,)

    def update(self, rows: Tensor, noise: Tensor, metrics: Tensor | None = None) -> None:
        """A gradient step, after which the target network follows when that is due."""
        f, options = self.functions, self.options
        networks = Networks(self.actor, self.target, options)
        with self.mixed_precision():
            loss = f.value_loss(networks, Batch.of(rows, self.layout), self.discount)
        self.flat_policy.backward(loss.sum())
        self.critic_optimizer.step()
        self.refresh()
        if self.critic_optimizer.num_steps % options.target_every == 0:
            online, target = self.flat_policy.parameter, self.flat_target.parameter
            f.target_update(target.detach(), online.detach(), options.tau)
            self.refresh()
        if metrics is not None:
            metrics.copy_(loss.detach()[None])


# ---- the training --------------------------------------------------------------------------------


class DiscreteCollector(SeedCollector):
    """Environments with discrete actions."""

    @staticmethod
    def find_actions(envs: FastVectorEnv, algorithm: str) -> ActionNumbers:
        """Makes :attr:`actions`, or raises ValueError where they are not discrete."""
        return discrete_actions(envs, algorithm)


class DQN(OffPolicy[Config]):
    """The algorithm; :func:`train` drives it.

    Args:
        config: The options.
        restore: A :meth:`state_dict`, to continue from it.

    Raises:
        ValueError: The environment's actions are not discrete.
    """

    functions: ClassVar[Functions] = Functions()
    collector_type = DiscreteCollector
    learner: DQNLearner

    def make_learner(self) -> DQNLearner:
        """The networks."""
        config = self.config
        return DQNLearner(
            self.layout,
            self.collector.actions.number,
            config.streams(Stream.POLICY),
            config.options(),
            self.device,
            self.functions,
        )

    def policies(self) -> PolicySpec | list[TorchPolicy]:
        """The K policies, which take the best action or, now and then, a random one."""
        return self.learner.policies(
            self.envs.single_action_space,
            distribution="categorical",
            epsilon=self.config.epsilon_at(self.global_step),
            **self.normalizer.spec_fields(self.layout.policy),
        )


train, load_policy = entry_points(lambda: DQN)
