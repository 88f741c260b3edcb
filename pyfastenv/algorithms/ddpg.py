"""Deep deterministic policy gradient (Lillicrap et al. 2016, arXiv:1509.02971).

The pool samples (:func:`pyfastenv.rollout` with a copy of the policy and noise), torch learns from
a replay buffer. Read it top to bottom: Config, collecting, update, saving.
"""

from __future__ import annotations

import copy
import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import torch
from torch import Tensor

from pyfastenv.nn.networks import MLP, FlatParameters, Saved, initialised_by
from pyfastenv.nn.optim import FlatAdam
from pyfastenv.nn.policy_spec import PolicySpec
from pyfastenv.nn.spans import span
from pyfastenv.sampling.buffers import ReplayBuffer, Transitions
from pyfastenv.sampling.exploration import continuous_actions, explore
from pyfastenv.sampling.rollouts import RolloutBatch, rollout
from pyfastenv.training import distributed, seeds
from pyfastenv.training.callbacks import Callback, StepFunction
from pyfastenv.training.config import RunConfig
from pyfastenv.training.envs import make_training_envs
from pyfastenv.training.loop import RunResult, episode_metrics, run
from pyfastenv.training.obs_normalizer import ObsNormalizer
from pyfastenv.training.seeds import Stream, env_seeds

# minibatches drawn at once: one gather for all of them, and never much memory
_DRAW = 64
_METRICS = ("loss/critic", "loss/policy")


@dataclass(kw_only=True)
class Config(RunConfig):
    """Deep deterministic policy gradient."""

    algorithm: ClassVar[str] = "ddpg"

    env_id: str = "Pendulum-v1"
    """The environment; `pyfastenv envs` lists them."""
    num_envs: int = 8
    """How many environments are stepped at once (in each process)."""
    total_steps: int = 20_000
    """Environment steps to train for."""
    eval_every: int = 5_000
    """Environment steps between evaluations; 0: only at the end."""
    num_steps: int = 8
    """Steps of each environment between copies of the policy into the pool."""
    updates_per_step: float = 1.0
    """Gradient steps per environment step (of all processes together)."""
    learning_starts: int = 1_000
    """Environment steps with uniformly random actions before learning begins, all at once."""
    buffer_size: int = 1_000_000
    """Transitions that are remembered (in each process)."""
    batch_size: int = 64
    """Transitions per gradient step (of all processes together)."""
    policy_learning_rate: float = 1e-3
    """Adam's, for the policy."""
    critic_learning_rate: float = 1e-3
    """Adam's, for the critic."""
    gamma: float = 0.99
    """Discount."""
    tau: float = 0.005
    """How far the target networks follow with each gradient step."""
    noise: float = 0.1
    """Standard deviation of the exploration, in halves of the action space's width."""
    normalize_obs: bool = False
    """By running mean and standard deviation."""
    obs_clip: float = 10.0
    """Bound of normalised observations."""
    hidden_sizes: tuple[int, ...] = (64, 64)
    """Hidden layers, of policy and critic each."""
    activation: str = "relu"
    """tanh, relu, elu or silu."""

    def check(self) -> None:
        super().check()
        self._check_at_least(1, "num_steps", "buffer_size", "batch_size")
        self._check_positive("updates_per_step", "policy_learning_rate", "critic_learning_rate")
        self._check_at_least(0, "noise")
        self._check_fractions("gamma", "tau")
        self._check_learning_starts(self.learning_starts)
        self._check_shared_out("batch_size")


def train(config: Config, callbacks: Sequence[Callback | StepFunction] = ()) -> RunResult:
    """Trains; see :func:`pyfastenv.training.loop.run` for what comes out and what is raised.

    Raises:
        ValueError: The environment's actions are not continuous.
    """
    return run(DDPG, config, callbacks)


def load_policy(config: Config, state: dict[str, Any]) -> PolicySpec:
    """The policy of a checkpoint, without noise."""
    spec: PolicySpec = DDPG(config, restore=state).eval_policy()
    return spec


class Minibatch(NamedTuple):
    """What a gradient step needs, on the learner's device."""

    obs: Tensor  # (B, obs_size), normalised if wanted
    obs_actions: Tensor  # (B, obs_size + A) what the critic sees
    rewards: Tensor  # (B,)
    next_obs: Tensor  # (B, obs_size)
    discounts: Tensor  # (B,) gamma, or 0 where the episode was terminated


class DDPG:
    """The algorithm; :func:`train` drives it.

    Args:
        config: The options.
        restore: A :meth:`state_dict`, to continue from it.

    Raises:
        ValueError: The environment's actions are not continuous.
    """

    def __init__(self, config: Config, restore: dict[str, Any] | None = None):
        self.config = config
        self.device = config.learn_device
        self.world_size = distributed.world_size()
        self.envs = make_training_envs(config, config.num_envs)
        self.obs_size = self.envs.obs_size
        self.box = continuous_actions(self.envs, "ddpg")
        self.action_center = self.box.center.to(self.device)
        self.action_half = self.box.half.to(self.device)
        action_size = len(self.box)

        def mlp(num_inputs: int, num_outputs: int) -> MLP:
            sizes = (num_inputs, *config.hidden_sizes, num_outputs)
            return MLP(sizes, activation=config.activation, gain=None)

        with initialised_by(seeds.stream(config.seed, Stream.POLICY)):
            self.policy = mlp(self.obs_size, action_size)
            self.critic = mlp(self.obs_size + action_size, 1)
        distributed.broadcast([*self.policy.parameters(), *self.critic.parameters()])
        for module in (self.policy, self.critic):
            module.to(self.device)
        self.target_policy = copy.deepcopy(self.policy)
        self.target_critic = copy.deepcopy(self.critic)
        self.flat_policy = FlatParameters([self.policy])
        self.flat_critic = FlatParameters([self.critic])
        self.flat_target_policy = FlatParameters([self.target_policy])
        self.flat_target_critic = FlatParameters([self.target_critic])
        self.policy_optimizer = FlatAdam(self.flat_policy, lr=config.policy_learning_rate)
        self.critic_optimizer = FlatAdam(self.flat_critic, lr=config.critic_learning_rate)

        self.normalizer = ObsNormalizer(
            self.obs_size,
            clip=config.obs_clip,
            device=self.device,
            enabled=config.normalize_obs,
        )
        self.buffer = ReplayBuffer(
            config.buffer_size, self.obs_size, action_size, device=self.device
        )
        rank = distributed.rank()
        self.generator = torch.Generator()
        self.generator.manual_seed(seeds.stream(config.seed, Stream.LEARNING, rank))
        self.exploration_generator = torch.Generator()
        self.exploration_generator.manual_seed(seeds.stream(config.seed, Stream.EXPLORATION, rank))
        self.batch = RolloutBatch.allocate(self.envs, config.num_steps)
        self.global_step = 0
        if restore is not None:
            self.load_state_dict(restore)
            return
        self._reset()

    # ---- collecting --------------------------------------------------------------------------

    def _reset(self) -> Tensor:
        """The first observations, ``(N, obs_size)``."""
        count = self.config.num_envs
        mine = env_seeds(self.config.seed, count, first=distributed.rank() * count)
        obs, _ = self.envs.flat_reset(seed=mine)
        return torch.from_numpy(obs)

    def policy_spec(self) -> PolicySpec:
        """The policy as the pool runs it, with noise."""
        return self.policy.spec(
            distribution="deterministic",
            noise=self.config.noise,
            **self.normalizer.spec_fields(),
        )

    def eval_policy(self) -> PolicySpec:
        """The same without noise."""
        return self.policy_spec().as_greedy()

    def iterate(self) -> dict[str, float]:
        """Collects ``num_steps`` of every environment and learns from all there is.

        The first call explores ``learning_starts`` steps instead and learns nothing.
        """
        config = self.config
        began = time.perf_counter()
        exploring = self.global_step < config.learning_starts
        metrics: dict[str, float] = {}
        with span("env"):
            new = self._explore() if exploring else self._rollout(metrics)
        with span("transfer"):
            self.buffer.add(new)
            self.normalizer.update(new.obs)
        sampled = time.perf_counter()
        before = self.global_step
        self.global_step += len(new.rewards) * self.world_size
        if not exploring:
            rate = config.updates_per_step
            metrics |= self._learn(int(rate * self.global_step) - int(rate * before))
        metrics["time/sample_s"] = sampled - began
        metrics["time/update_s"] = time.perf_counter() - sampled
        return metrics

    def _rollout(self, metrics: dict[str, float]) -> Transitions:
        """Steps of the noisy policy; adds the returns of episodes that ended to ``metrics``."""
        batch = rollout(self.envs, self.policy_spec(), self.config.num_steps, out=self.batch)
        metrics |= episode_metrics(batch.episodes.returns, batch.episodes.lengths)
        return Transitions.from_rollout(batch)

    def _explore(self) -> Transitions:
        """Steps with uniform actions."""
        obs = self._reset()  # they stand there already
        num_steps = math.ceil(self.config.learning_starts / (len(obs) * self.world_size))
        shape = (len(obs), len(self.box))
        return explore(
            self.envs,
            obs,
            self.box,
            num_steps,
            lambda: torch.rand(shape, generator=self.exploration_generator),
        )

    # ---- update ------------------------------------------------------------------------------

    @torch.no_grad()
    def _learn(self, num_updates: int) -> dict[str, float]:
        collected: list[Tensor] = []  # metrics of the last minibatch of each draw
        for first in range(0, num_updates, _DRAW):
            minibatches = self._draw(min(_DRAW, num_updates - first))
            for i, minibatch in enumerate(minibatches):
                metrics = self._gradient_step(minibatch, metrics=i == len(minibatches) - 1)
            assert metrics is not None
            collected.append(distributed.mean(metrics))
        if not collected:
            return {}
        return dict(zip(_METRICS, torch.stack(collected).mean(0).tolist(), strict=True))

    def _draw(self, count: int) -> list[Minibatch]:
        """Independent minibatches of the buffer; what needs no network is computed for all."""
        size = self.config.batch_size // self.world_size
        with span("transfer"):
            drawn = self.buffer.sample(count * size, self.generator)
        obs = self.normalizer(drawn.obs)
        columns = Minibatch(
            obs=obs,
            obs_actions=torch.cat((obs, drawn.actions), 1),
            rewards=drawn.rewards,
            next_obs=self.normalizer(drawn.next_obs),
            # a truncated episode would have gone on: only termination makes the future worthless
            discounts=self.config.gamma * (~drawn.terminated).float(),
        )
        parts = (torch.split(column, size) for column in columns)
        return [Minibatch(*rows) for rows in zip(*parts, strict=True)]

    def _gradient_step(self, batch: Minibatch, *, metrics: bool) -> Tensor | None:
        """One step of the critic, one of the policy, one of the targets (algorithm 1).

        Gradients are written out instead of left to autograd, which on small networks takes most of
        the time.

        Returns:
            :data:`_METRICS`, if wanted.
        """
        size = len(batch.rewards)
        # the critic: down the gradient of the mean squared error
        with span("forward"):
            next_actions, _, _ = self._act(self.target_policy, batch.next_obs)
            next_inputs = torch.cat((batch.next_obs, next_actions), 1)
            next_values, _ = _forward(self.target_critic, next_inputs)  # (B, 1)
            targets = torch.addcmul(batch.rewards, batch.discounts, next_values[:, 0])
            values, critic_saved = _forward(self.critic, batch.obs_actions)
            errors = values[:, 0] - targets  # (B,)
        with span("backward"):
            self.critic.write_gradients(critic_saved, (errors * (2.0 / size))[None, :, None])
        with span("optimiser"):
            distributed.average_gradients([self.flat_critic.parameter])
            self.critic_optimizer.step()

        # the policy: up the critic's opinion of its actions
        with span("forward"):
            actions, squashed, policy_saved = self._act(self.policy, batch.obs)
            inputs = torch.cat((batch.obs, actions), 1)
            opinions, opinion_saved = _forward(self.critic, inputs)
        with span("backward"):
            by_value = torch.full_like(opinions, -1.0 / size)
            columns = slice(self.obs_size, None)
            by_action = self.critic.input_gradient(opinion_saved, by_value[None], columns)[0]
            by_output = by_action * self.action_half * (1.0 - squashed.square())
            self.policy.write_gradients(policy_saved, by_output[None])
        with span("optimiser"):
            distributed.average_gradients([self.flat_policy.parameter])
            self.policy_optimizer.step()
            self.flat_target_critic.parameter.lerp_(self.flat_critic.parameter, self.config.tau)
            self.flat_target_policy.parameter.lerp_(self.flat_policy.parameter, self.config.tau)
        return torch.stack((errors.square().mean(), -opinions.mean())) if metrics else None

    def _act(self, policy: MLP, obs: Tensor) -> tuple[Tensor, Tensor, Saved]:
        """Actions ``(B, A)``, the same in [-1, 1], and what the backward pass needs."""
        outputs, saved = _forward(policy, obs)
        squashed = outputs.tanh()
        return torch.addcmul(self.action_center, squashed, self.action_half), squashed, saved

    # ---- saving ------------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Any]:
        """Everything that the training goes on from, bit for bit."""
        return {
            "policy": self.policy.state_dict(),
            "critic": self.critic.state_dict(),
            "target_policy": self.target_policy.state_dict(),
            "target_critic": self.target_critic.state_dict(),
            "policy_optimizer": self.policy_optimizer.state_dict(),
            "critic_optimizer": self.critic_optimizer.state_dict(),
            "obs_moments": self.normalizer.moments.state_dict(),
            "buffer": self.buffer.state_dict(),
            "generator": self.generator.get_state(),
            "exploration_generator": self.exploration_generator.get_state(),
            "envs": torch.from_numpy(self.envs.get_state()),
            "global_step": self.global_step,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restores :meth:`state_dict`."""
        for name in (
            "policy",
            "critic",
            "target_policy",
            "target_critic",
            "policy_optimizer",
            "critic_optimizer",
            "buffer",
        ):
            getattr(self, name).load_state_dict(state[name])
        self.normalizer.moments.load_state_dict(state["obs_moments"])
        self.generator.set_state(state["generator"])
        self.exploration_generator.set_state(state["exploration_generator"])
        self.envs.set_state(state["envs"].numpy())
        self.global_step = state["global_step"]


def _forward(network: MLP, x: Tensor) -> tuple[Tensor, Saved]:
    """``(B, in)`` to ``(B, out)``, and what :meth:`MLP.write_gradients` needs."""
    out, saved = network.evaluate(x[None])
    return out[0], saved
