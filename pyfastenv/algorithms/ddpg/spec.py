"""Deep deterministic policy gradient (Lillicrap et al. 2016, arXiv:1509.02971).

The specification, in plain PyTorch. Read it top to bottom: options, the functions that say what is
learned, the learner that steps along their gradients, the training around it. What makes it fast is
tested against this file (:mod:`pyfastenv.algorithms.ddpg.accelerated`).

Shapes: K seeds side by side, B transitions of a minibatch, A action components.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple

import torch
from torch import Tensor, nn

from pyfastenv.algorithms.ddpg.accelerated import WrittenOut
from pyfastenv.algorithms.sac.spec import target_update
from pyfastenv.nn.networks import FlatParameters
from pyfastenv.nn.optim import FlatAdam
from pyfastenv.nn.policy_spec import Activation, PolicySpec
from pyfastenv.nn.torch_policy import TorchPolicy
from pyfastenv.runs.options import POSITIVE, WIDTHS, at_least
from pyfastenv.runs.restored import greedy_policies
from pyfastenv.runs.seeds import Stream
from pyfastenv.sampling.buffers import RowLayout
from pyfastenv.sampling.exploration import ActionBox
from pyfastenv.training import distributed
from pyfastenv.training.accelerators import Accelerator
from pyfastenv.training.actor_critic import ActorCritic, ActorCriticOptions, Batch, Recipe
from pyfastenv.training.callbacks import Callback, StepFunction
from pyfastenv.training.changes import as_written
from pyfastenv.training.loop import RunResult, run
from pyfastenv.training.obs_normalizer import SeedNormalizers
from pyfastenv.training.off_policy import OffPolicy
from pyfastenv.training.off_policy_config import OffPolicyConfig

# ---- options -------------------------------------------------------------------------------------


@dataclass(kw_only=True)
class Config(OffPolicyConfig):
    """Deep deterministic policy gradient."""

    algorithm: ClassVar[str] = "ddpg"
    processes = True
    exploration_dtype = torch.float32

    env_id: str = "Pendulum-v1"
    """The environment; `pyfastenv envs` lists them."""
    num_envs: int = 8
    """How many environments each seed steps at once (in each process)."""
    total_steps: int = 20_000
    """Environment steps to train for."""
    eval_every: int = 5_000
    """Environment steps between evaluations; 0: only at the end."""
    log_every: int = 1
    """Environment steps between lines of the log, at least those of one iteration."""
    num_steps: int = field(default=8, metadata=at_least(1))
    """Steps of each environment between copies of the policy into the pool."""
    learning_starts: int = 1_000
    """Environment steps with uniformly random actions before learning begins, all at once."""
    batch_size: int = 64
    """Transitions per gradient step (of all processes together)."""
    policy_learning_rate: float = field(default=1e-3, metadata=POSITIVE)
    """Adam's, for the policy."""
    critic_learning_rate: float = field(default=1e-3, metadata=POSITIVE)
    """Adam's, for the critic."""
    noise: float = field(default=0.1, metadata=at_least(0))
    """Standard deviation of the exploration, in halves of the action space's width."""
    normalize_obs: bool = False
    """Observations are normalised by their running mean and standard deviation."""
    obs_clip: float = field(default=10.0, metadata=at_least(0))
    """Bound of normalised observations; 0: none."""
    hidden_sizes: tuple[int, ...] = field(default=(64, 64), metadata=WIDTHS)
    """Hidden layers, of policy and critic each."""
    activation: Activation = "relu"
    """Activation function of hidden layers."""
    torch_threads: int = 1
    """Threads of PyTorch's own operations: more only pay with large networks."""


# ---- what is learned -----------------------------------------------------------------------------


class Networks(NamedTuple):
    """The networks of K seeds. The critics see actions as the environment does."""

    actor: nn.Module  # (K, B, obs_size) -> (K, B, A), actions before tanh
    critic: nn.Module  # (K, B, obs_size + A) -> (K, B, 1)
    target_actor: nn.Module
    target_critic: nn.Module
    center: Tensor  # (A,) of the action space
    half: Tensor  # (A,) its half width


def act(networks: Networks, actor: nn.Module, obs: Tensor) -> Tensor:
    """The policy's actions for the environment, ``(K, B, A)``."""
    return torch.addcmul(networks.center, actor(obs).tanh(), networks.half)


def value(critic: nn.Module, obs: Tensor, actions: Tensor) -> Tensor:
    """The critic's value of the environment's actions, ``(K, B)``."""
    values: Tensor = critic(torch.cat((obs, actions), -1))[..., 0]
    return values


def critic_loss(networks: Networks, batch: Batch, gamma: float | Tensor) -> Tensor:
    """Squared error to what the target networks expect (algorithm 1), ``(K,)``."""
    with torch.no_grad():
        next_actions = act(networks, networks.target_actor, batch.next_obs)
        next_values = value(networks.target_critic, batch.next_obs, next_actions)
        # a truncated episode would have gone on: only termination makes the future worthless
        targets = batch.rewards + gamma * batch.continues * next_values
    actions = torch.addcmul(networks.center, batch.actions, networks.half)
    return (value(networks.critic, batch.obs, actions) - targets).square().mean(1)


def policy_loss(networks: Networks, obs: Tensor) -> Tensor:
    """The critic's value of the policy's actions (eq. 6), ``(K,)``."""
    return -value(networks.critic, obs, act(networks, networks.actor, obs)).mean(1)


class Functions(NamedTuple):
    """The parts of learning that a subclass may replace: ``class Mine(DDPG): functions = …``."""

    critic_loss: Callable[[Networks, Batch, float | Tensor], Tensor] = critic_loss
    policy_loss: Callable[[Networks, Tensor], Tensor] = policy_loss
    target_update: Callable[[Tensor, Tensor, float], None] = target_update


# ---- the learner ---------------------------------------------------------------------------------


@as_written
class DDPGLearner(ActorCritic):
    """A policy and a critic for each of K seeds, and the targets that follow them.

    Args:
        layout: Of the rows; their observations are normalised if wanted.
        box: The environments' actions.
        seeds: K seeds of the initial networks.
        options: The settings.
        device: Where everything is.
        functions: What is learned.
    """

    metrics = ("loss/critic", "loss/policy")
    accelerators: ClassVar[tuple[type[Accelerator[DDPGLearner]], ...]] = (WrittenOut,)

    def __init__(
        self,
        layout: RowLayout,
        box: ActionBox,
        seeds: Sequence[int],
        options: ActorCriticOptions,
        device: torch.device | str = "cpu",
        functions: Functions = Functions(),  # noqa: B008
    ):
        super().__init__(layout, seeds, options, device, functions)
        self.center = box.center.to(self.device, torch.float32)
        self.half = box.half.to(self.device, torch.float32)
        size, num_actions = layout.obs_size, layout.action_size
        self.actor, self.critic = self.make_networks(
            seeds,
            Recipe(options.policy_factory, size, num_actions),
            Recipe(options.critic_factory, size + num_actions, 1),
        )
        distributed.broadcast([*self.actor.parameters(), *self.critic.parameters()])
        self.target_actor, self.flat_target_policy = self.add_target(self.actor)
        self.target_critic, self.flat_target_critic = self.add_target(self.critic)
        self.flat_policy = FlatParameters([self.actor])
        self.flat_critic = FlatParameters([self.critic])
        self.policy_optimizer = FlatAdam(self.flat_policy, lr=options.policy_learning_rate)
        self.critic_optimizer = FlatAdam(self.flat_critic, lr=options.critic_learning_rate)
        self.networks = {
            "actor": self.actor,
            "critic": self.critic,
            "target_actor": self.target_actor,
            "target_critic": self.target_critic,
        }
        self._choose()

    def noise_shape(self, batch_size: int) -> tuple[int, ...]:
        """None is needed."""
        return (0,)

    def update(self, rows: Tensor, noise: Tensor, metrics: Tensor | None = None) -> None:
        """One gradient step of critic and policy, and the targets after them (algorithm 1)."""
        f, options = self.functions, self.options
        batch = Batch.of(rows, self.layout)
        networks = Networks(
            self.actor,
            self.critic,
            self.target_actor,
            self.target_critic,
            self.center,
            self.half,
        )
        with self.mixed_precision():
            critic = f.critic_loss(networks, batch, self.discount)
        self.flat_critic.backward(critic.sum())
        self.average(self.flat_critic)
        self.critic_optimizer.step()
        with self.mixed_precision():
            policy = f.policy_loss(networks, batch.obs)
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

    def average(self, flat: FlatParameters) -> None:
        """Takes the gradients' means over torchrun's processes."""
        distributed.average_gradients([flat.parameter])


# ---- the training --------------------------------------------------------------------------------


class DDPG(OffPolicy[Config]):
    """The algorithm; :func:`train` drives it.

    Args:
        config: The options.
        restore: A :meth:`state_dict`, to continue from it.

    Raises:
        ValueError: The environment's actions are not continuous.
    """

    functions: ClassVar[Functions] = Functions()
    learner: DDPGLearner

    def __init__(self, config: Config, restore: dict[str, Any] | None = None):
        super().__init__(config)
        self.normalizer = SeedNormalizers(
            config.num_seeds,
            self.layout.obs_size,
            clip=config.obs_clip,
            device=self.device,
            enabled=config.normalize_obs,
        )
        self.parts.append("normalizer")
        self.learned.append("normalizer")
        if restore is not None:
            self.load_state_dict(restore)

    def make_learner(self) -> DDPGLearner:
        """Policy and critic."""
        config, box = self.config, self.collector.box
        seeds = config.streams(Stream.POLICY)
        options = config.options()
        return DDPGLearner(self.layout, box, seeds, options, self.device, self.functions)

    def policies(self) -> PolicySpec | list[TorchPolicy]:
        """The K policies, with noise."""
        return self.learner.policies(
            self.envs.single_action_space,
            distribution="deterministic",
            noise=self.config.noise,
            **self.normalizer.spec_fields(),
        )

    def observe(self, rows: Tensor) -> None:
        """Takes the moments of new observations."""
        self.normalizer.update(self.collector.obs)

    def step(self, metrics: dict[str, float]) -> None:
        """Steps of every environment, and the gradient steps that belong to them."""
        self.advance(self.config.num_steps)

    def draw(self, count: int) -> tuple[Tensor, Tensor]:
        """Independent minibatches ``(count, K, B, width)``, observations normalised."""
        size = self.config.batch_size // distributed.world_size()
        there = int(self.env_pool.sizes[0])  # seeds step alike: as many rows each
        rows = self.env_pool.take(self.streams.integers(there, count * size))
        parts = Batch.of(rows, self.layout)
        rows = self.layout.pack(
            self.normalizer(parts.obs),
            parts.actions,
            self.normalizer(parts.next_obs),
            parts.rewards,
            1.0 - parts.continues,
        )
        rows = rows.view(self.config.num_seeds, count, size, -1).transpose(0, 1)
        return rows, rows.new_empty(count, self.config.num_seeds, 0)


def train(config: Config, callbacks: Sequence[Callback | StepFunction] = ()) -> RunResult:
    """Trains; see :func:`pyfastenv.training.loop.run` for what comes out and what is raised.

    Raises:
        ValueError: The environment's actions are not continuous.
    """
    return run(DDPG, config, callbacks)


def load_policy(config: Config, state: dict[str, Any]) -> PolicySpec | list[TorchPolicy]:
    """The policies of a checkpoint, one per seed, without noise."""
    return greedy_policies(DDPG, config, state)
