"""Proximal policy optimisation (Schulman et al. 2017, arXiv:1707.06347).

The specification, in plain PyTorch. Read it top to bottom: options, the loss, collecting,
advantages, update, saving. The pool samples (:func:`pyfastenv.rollout` with a copy of the policy).
What makes the update fast computes the same steps in another way and is tested against this file
(``--accelerate``, :mod:`pyfastenv.learners.ppo_accelerators`).
"""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Protocol

import gymnasium
import torch
from torch import Tensor, nn

from pyfastenv import _core
from pyfastenv.learners.accelerators import choose
from pyfastenv.learners.ppo_accelerators import Compiled, CompiledEpoch, WrittenOut
from pyfastenv.nn.functional import (
    LOG_TWO_PI,
    PPO_METRICS,
    discounted_returns,
    gae,
    gaussian_log_prob,
)
from pyfastenv.nn.networks import MLP, FlatParameters, NetworkStack, initialised_by
from pyfastenv.nn.normalize import RunningMoments
from pyfastenv.nn.optim import FlatAdam
from pyfastenv.nn.policy_spec import PolicySpec
from pyfastenv.nn.spans import span
from pyfastenv.nn.torch_policy import TorchPolicy, as_greedy, policies_of
from pyfastenv.sampling.rollouts import Episodes, RolloutBatch, rollout
from pyfastenv.sampling.staging import Collector, PinnedRing
from pyfastenv.training import distributed, seeds
from pyfastenv.training.callbacks import Callback, StepFunction
from pyfastenv.training.device_sampling import DeviceSampler
from pyfastenv.training.envs import make_training_envs
from pyfastenv.training.learner_config import LearnerConfig
from pyfastenv.training.loop import RunResult, episode_metrics, run
from pyfastenv.training.obs_normalizer import ObsNormalizer, update_moments
from pyfastenv.training.presets import presets_of
from pyfastenv.training.seeds import Stream, env_seeds


@dataclass(kw_only=True)
class Config(LearnerConfig):
    """Proximal policy optimisation."""

    algorithm: ClassVar[str] = "ppo"
    presets = presets_of("ppo")
    may_differ = LearnerConfig.may_differ | {"anneal_steps"}

    num_envs: int = 16
    """How many environments are stepped at once (in each process)."""
    total_steps: int = 1_000_000
    """Environment steps to train for."""
    num_steps: int = 128
    """Steps of each environment between updates."""
    update_epochs: int = 10
    """Passes over the collected steps."""
    minibatch_size: int = 128
    """Steps per gradient step (of all processes together)."""
    learning_rate: float = 3e-4
    """Adam's, at the start."""
    anneal: bool = True
    """Lower the learning rate linearly to 0."""
    anneal_steps: int | None = None
    """Environment steps until it is 0; None: total_steps as they were when the run began."""
    gamma: float = 0.99
    """Discount."""
    gae_lambda: float = 0.95
    """λ of the advantage estimates."""
    clip: float = 0.2
    """How far a probability ratio is followed."""
    value_clip: float = 0.0
    """How far a value may move from its old one; 0: as far as it likes."""
    entropy_coef: float = 0.0
    """Weight of the entropy bonus."""
    value_coef: float = 0.5
    """Weight of the value loss."""
    max_grad_norm: float = 0.5
    """The gradient is scaled down to this norm."""
    target_kl: float | None = None
    """Stop the passes once the policy has moved this far (None: never)."""
    normalize_advantages: bool = True
    """Per minibatch."""
    normalize_obs: bool = True
    """By running mean and standard deviation."""
    normalize_rewards: bool = True
    """Divide by the running standard deviation of discounted returns."""
    obs_clip: float = 10.0
    """Bound of normalised observations."""
    hidden_sizes: tuple[int, ...] = (64, 64)
    """Hidden layers, of policy and value network each."""
    activation: str = "tanh"
    """tanh, relu, elu or silu."""
    log_std_init: float = -0.5
    """Logarithm of the initial standard deviation of actions."""
    overlap: bool = False
    """Collect the next batch while learning from this one: by the policy of one update ago."""
    pool_size: int = 1
    """Learn from so many of the latest batches (the trajectory pool); 1: on-policy."""

    def check(self) -> None:
        super().check()
        self._check_at_least(1, "num_steps", "update_epochs", "minibatch_size", "pool_size")
        self._check_positive("learning_rate", "clip", "max_grad_norm")
        self._check_fractions("gamma", "gae_lambda")
        if self.overlap and self.device == "cuda":
            raise ValueError("overlap: needs sampling on the CPU; use --device cpu or sample-cpu")
        self._check_shared_out("minibatch_size")
        batch = self.num_envs * self.num_steps * distributed.world_size()
        # the first batch is alone in the trajectory pool
        if self.minibatch_size > batch:
            raise ValueError(
                f"minibatch_size: expected at most num_envs * num_steps = {batch}, got "
                f"{self.minibatch_size}"
            )
        if self.normalize_obs and self.total_steps <= batch:
            raise ValueError(
                f"total_steps: expected more than num_envs * num_steps = {batch}, in which the "
                f"observations' moments are taken before anything is learned, got "
                f"{self.total_steps}"
            )
        if self.anneal_steps is not None and self.anneal_steps < self.total_steps:
            raise ValueError(
                f"anneal_steps: expected at least total_steps = {self.total_steps} (the learning "
                f"rate is 0 from there on), got {self.anneal_steps}"
            )


# ---- what is learned -----------------------------------------------------------------------------


class Columns(NamedTuple):
    """B steps of a minibatch."""

    obs: Tensor  # (B, obs_size), normalised
    actions: Tensor  # (B, A) float32 as drawn, or (B,) int64
    log_probs: Tensor  # (B,) when they were drawn
    advantages: Tensor  # (B,), normalised or not
    returns: Tensor  # (B,) targets of the values
    old_values: Tensor  # (B,) values when the actions were drawn


class PPOLoss(NamedTuple):
    """Of :func:`ppo_loss`."""

    loss: Tensor  # () what is minimised
    metrics: Tensor  # (5,): PPO_METRICS, without gradient


def ppo_loss(
    outputs: Tensor,
    log_std: Tensor | None,
    values: Tensor,
    columns: Columns,
    *,
    clip: float,
    value_clip: float,
    entropy_coef: float,
    value_coef: float,
) -> PPOLoss:
    """The clipped surrogate, values and entropy (eq. 7 and 9).

    Args:
        outputs: ``(B, A)`` the means of Gaussians, or logits.
        log_std: ``(A,)``; None: the policy is categorical.
        values: ``(B,)``.
        columns: The minibatch.
        clip: ε of the probability ratio.
        value_clip: ε of the values (as in OpenAI's baselines); 0: not clipped.
        entropy_coef: Weight of the entropy bonus.
        value_coef: Weight of the value loss, the mean of ``0.5 * (value - return)^2``.
    """
    if log_std is None:
        log_p = torch.log_softmax(outputs, -1)
        log_probs = log_p.gather(-1, columns.actions[:, None])[:, 0]
        entropy = -(log_p.exp() * log_p).sum(-1).mean()
    else:
        log_probs = gaussian_log_prob(columns.actions, outputs, log_std)
        entropy = (log_std + 0.5 * LOG_TWO_PI + 0.5).sum()
    log_ratio = log_probs - columns.log_probs
    ratio = log_ratio.exp()
    clipped = ratio.clamp(1.0 - clip, 1.0 + clip)
    surrogate = torch.minimum(columns.advantages * ratio, columns.advantages * clipped)
    policy_loss = -surrogate.mean()

    squared = (values - columns.returns).square()
    if value_clip > 0.0:
        near = columns.old_values + (values - columns.old_values).clamp(-value_clip, value_clip)
        squared = torch.maximum(squared, (near - columns.returns).square())
    value_loss = 0.5 * squared.mean()

    kl = (ratio - 1.0 - log_ratio).mean()  # http://joschu.net/blog/kl-approx.html, k3
    clip_fraction = ((ratio - 1.0).abs() > clip).to(ratio.dtype).mean()
    return PPOLoss(
        policy_loss + value_coef * value_loss - entropy_coef * entropy,
        torch.stack((policy_loss, value_loss, entropy, kl, clip_fraction)).detach(),
    )


class Functions(NamedTuple):
    """What is learned, for whoever wants it otherwise: ``class Mine(PPO): functions = …``."""

    ppo_loss: Callable[..., PPOLoss] = ppo_loss


# ---- the training --------------------------------------------------------------------------------


def train(config: Config, callbacks: Sequence[Callback | StepFunction] = ()) -> RunResult:
    """Trains; see :func:`pyfastenv.training.loop.run` for what comes out and what is raised."""
    return run(PPO, config, callbacks)


def load_policy(config: Config, state: dict[str, Any]) -> PolicySpec | list[TorchPolicy]:
    """The greedy policy of a checkpoint."""
    ppo = PPO(config, restore=state)
    ppo.envs.close()
    return ppo.eval_policy()


class Samples(NamedTuple):
    """A batch on the learner's device (n = T * N; E episodes ended)."""

    obs: Tensor  # (n, obs_size) float32, not normalised
    actions: Tensor  # (n, A) float32 or (n,) int64
    log_probs: Tensor  # (n,) when they were drawn
    rewards: Tensor  # (T, N), normalised
    ended: Tensor  # (T, N) bool
    last_obs: Tensor  # (N, obs_size) after the last step
    end_steps: Tensor  # (E,) where episodes ended …
    end_env_ids: Tensor  # (E,)
    end_terminated: Tensor  # (E,) bool … and how
    final_obs: Tensor  # (E, obs_size)


class Backward(Protocol):
    """What puts a minibatch's gradients where the optimiser finds them."""

    def __call__(self, columns: Columns, *, metrics: bool) -> Tensor | None:
        """Returns :data:`PPO_METRICS`, at least where they are wanted."""
        ...


class PPO:
    """The algorithm; :func:`train` drives it.

    Args:
        config: The options.
        restore: A :meth:`state_dict`, to continue from it.
    """

    functions: ClassVar[Functions] = Functions()

    def __init__(self, config: Config, restore: dict[str, Any] | None = None):
        self.config = config
        self.device = config.learn_device
        self.world_size = distributed.world_size()
        self.envs = make_training_envs(config, config.num_envs)
        self.obs_size = self.envs.obs_size
        space = self.envs.single_action_space
        self.discrete = isinstance(space, gymnasium.spaces.Discrete)
        if isinstance(space, gymnasium.spaces.Discrete):
            num_outputs = int(space.n)
        else:
            assert isinstance(space, gymnasium.spaces.Box)
            num_outputs = math.prod(space.shape)
            self.action_bounds = [
                torch.from_numpy(bound).to(self.device) for bound in (space.low, space.high)
            ]

        with initialised_by(seeds.stream(config.seed, Stream.POLICY)):
            self.policy = self._network("policy_factory", num_outputs, last_gain=0.01)
            self.value = self._network("critic_factory", 1)
        self.log_std = nn.Parameter(
            torch.full((num_outputs,), config.log_std_init, device=self.device)
        )
        distributed.broadcast([*self.policy.parameters(), *self.value.parameters()])
        for module in (self.policy, self.value):
            module.to(self.device)
        trained: list[nn.Module | nn.Parameter] = [self.policy, self.value]
        if not self.discrete:
            trained.append(self.log_std)
        self.flat = FlatParameters(trained)
        self.optimizer = FlatAdam(self.flat, lr=config.learning_rate, eps=1e-5)
        ours = [module for module in (self.policy, self.value) if isinstance(module, MLP)]
        if config.amp:
            for module in ours:
                module.compute_in(torch.bfloat16)
        self.own_networks = len(ours) < 2
        self.acceleration = choose(
            (CompiledEpoch, WrittenOut, Compiled),
            config.accelerate,
            self,
            changed=[] if self.functions.ppo_loss is ppo_loss else ["ppo_loss"],
            own_networks=self.own_networks,
        )

        self.normalizer = ObsNormalizer(
            self.obs_size,
            clip=config.obs_clip,
            device=self.device,
            enabled=config.normalize_obs,
        )
        self.return_moments = RunningMoments(1)
        self.running_returns = torch.zeros(config.num_envs, device=self.device)
        rank = distributed.rank()
        self.generator = torch.Generator()
        self.generator.manual_seed(seeds.stream(config.seed, Stream.LEARNING, rank))
        self.device_generator = torch.Generator(self.device)
        self.device_generator.manual_seed(seeds.stream(config.seed, Stream.ACTING, rank))
        self.anneal_steps = config.anneal_steps or config.total_steps
        self.global_step = 0
        self.episodes: Episodes | None = None  # that ended in the latest iteration
        # earlier batches; the newest joins them for its update
        self.pool: deque[Samples] = deque(maxlen=config.pool_size - 1)
        self.core_policy: _core.Policy | None = None
        self.sampler = self._make_sampler()
        self.collector = self._make_collector()
        if restore is not None:
            self.load_state_dict(restore)
            return
        self._reset()
        if config.normalize_obs:
            self._warm_up()

    def _network(self, factory: str, num_outputs: int, **fields: Any) -> Any:
        """The user's, or an MLP."""
        own = self.config.factory(factory)
        if own is not None:
            return NetworkStack([own(self.obs_size, num_outputs)])
        sizes = (self.obs_size, *self.config.hidden_sizes, num_outputs)
        return MLP(sizes, activation=self.config.activation, **fields)

    # ---- collecting --------------------------------------------------------------------------

    def _make_collector(self) -> Collector[Episodes]:
        """Batches through a ring: pinned for a learner on a GPU, without copies on the CPU."""
        tensors = RolloutBatch.allocate(self.envs, self.config.num_steps).tensors()
        layout = {name: (tuple(x.shape), x.dtype) for name, x in tensors.items()}
        ring = PinnedRing(layout, 2, self.device)
        return Collector(self._collect, ring, overlap=self.config.overlap)

    def _make_sampler(self) -> DeviceSampler | None:
        if self.config.device != "cuda" and isinstance(self.policy, MLP):
            return None
        return DeviceSampler(self.envs, self.config.num_steps, self.device)

    def _export(self) -> None:
        spec = self.policy_spec()
        assert isinstance(spec, PolicySpec)
        self.core_policy = spec.to_core(self.envs.single_action_space)

    def _collect(self, tensors: dict[str, Tensor]) -> Episodes:
        assert self.core_policy is not None
        batch = RolloutBatch.of(tensors)
        return rollout(self.envs, self.core_policy, self.config.num_steps, out=batch).episodes

    @torch.no_grad()
    def _act(self, obs: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """The policy in torch, for sampling on the device."""
        normalized = self.normalizer(obs.view(-1, self.obs_size).float())
        outputs = self.policy(normalized[None])[0]
        if self.discrete:
            log_p = torch.log_softmax(outputs, -1)
            actions = torch.multinomial(log_p.exp(), 1, generator=self.device_generator)
            return actions[:, 0], log_p.gather(-1, actions)[:, 0], actions[:, 0]
        noise = torch.empty_like(outputs).normal_(generator=self.device_generator)
        actions = outputs + self.log_std.exp() * noise
        low, high = self.action_bounds
        clipped = torch.minimum(torch.maximum(actions, low), high)
        return actions, gaussian_log_prob(actions, outputs, self.log_std), clipped

    def _next_batch(self) -> RolloutBatch:
        if self.sampler is not None:
            return self.sampler.collect(self._act)
        tensors, episodes = self.collector.next(self._export)
        return RolloutBatch.of(tensors, episodes)

    def _warm_up(self) -> None:
        """Moments of observations, before the first policy is to see them normalised."""
        spec, num_steps = self.policy_spec(), self.config.num_steps
        if isinstance(spec, PolicySpec):
            batch = rollout(self.envs, spec, num_steps)
        else:
            assert self.sampler is not None
            batch = self.sampler.collect(self._act)
        self.normalizer.update(batch.obs)
        self.global_step += self._steps_per_batch
        self._reset()

    def _reset(self) -> None:
        count = self.config.num_envs
        mine = env_seeds(self.config.seed, count, first=distributed.rank() * count)
        if self.sampler is None:
            self.envs.reset(seed=mine)
        else:
            self.sampler.reset(mine)

    @property
    def _steps_per_batch(self) -> int:
        """Of all processes together."""
        return self.config.num_envs * self.config.num_steps * self.world_size

    def policy_spec(self) -> PolicySpec | list[TorchPolicy]:
        """The policy as the pool runs it, or with a network of the user's."""
        fields = {
            "distribution": "categorical" if self.discrete else "gaussian",
            "log_std": None if self.discrete else self.log_std.detach().cpu().numpy()[None],
            **self.normalizer.spec_fields(),
        }
        space = self.envs.single_action_space
        return policies_of(self.policy, self.obs_size, space, self.device, **fields)

    def eval_policy(self) -> PolicySpec | list[TorchPolicy]:
        """The same, always choosing the most likely action."""
        return as_greedy(self.policy_spec())

    def iterate(self) -> dict[str, float]:
        """Collects ``num_steps`` of every environment and learns from them."""
        began = time.perf_counter()
        with span("env"):
            batch = self._next_batch()
        sampled = time.perf_counter()
        self._schedule()
        metrics = self._learn(batch)
        self.global_step += self._steps_per_batch
        self.episodes = batch.episodes
        metrics |= episode_metrics(batch.episodes.returns, batch.episodes.lengths)
        metrics["time/sample_s"] = sampled - began
        metrics["time/update_s"] = time.perf_counter() - sampled
        return metrics

    def _schedule(self) -> None:
        left = 1.0 - self.global_step / self.anneal_steps if self.config.anneal else 1.0
        self.optimizer.lr = self.config.learning_rate * max(left, 0.0)

    # ---- advantages --------------------------------------------------------------------------

    def _learn(self, batch: RolloutBatch) -> dict[str, float]:
        with span("transfer"):
            samples = self._samples(batch)
        packed = torch.cat([self._pack(each) for each in (*self.pool, samples)])
        metrics = self._update(packed)
        self.pool.append(samples)
        self.normalizer.update(batch.obs)
        return metrics

    def _samples(self, batch: RolloutBatch) -> Samples:
        def move(tensor: Tensor) -> Tensor:
            return tensor.to(self.device, non_blocking=True)

        episodes = batch.episodes
        samples = Samples(
            obs=batch.obs.view(-1, self.obs_size),
            actions=batch.actions.flatten(0, 1),
            log_probs=batch.log_probs.flatten(),
            rewards=self._normalize_rewards(batch),
            ended=batch.terminations | batch.truncations,
            last_obs=batch.last_obs.view(-1, self.obs_size),
            end_steps=move(episodes.steps),
            end_env_ids=move(episodes.env_ids),
            end_terminated=move(episodes.terminated),
            final_obs=move(episodes.final_obs.view(-1, self.obs_size)),
        )
        if self.config.pool_size > 1:  # the ring's storage is used again
            samples = Samples(*(tensor.clone() for tensor in samples))
        return samples

    @torch.no_grad()
    def _pack(self, samples: Samples) -> Tensor:
        """``(n, obs_size + A + 4)``: all that a minibatch needs of a step, in one row.

        One gather then shuffles everything. Columns: normalised observation, action, log-prob,
        advantage, return, value.
        """
        with span("forward"):
            obs = self.normalizer(samples.obs)
            values = self._values(obs).view_as(samples.rewards)
            last_values = self._values(self.normalizer(samples.last_obs))
            next_values = torch.cat((values[1:], last_values[None]))
            # what a truncated episode would still have given; nothing where it was terminated
            final_values = self._values(self.normalizer(samples.final_obs))
            final_values *= ~samples.end_terminated
            next_values[samples.end_steps, samples.end_env_ids] = final_values
        advantages = gae(
            samples.rewards,
            values,
            next_values,
            samples.ended,
            gamma=self.config.gamma,
            gae_lambda=self.config.gae_lambda,
        )
        actions = samples.actions[:, None].float() if self.discrete else samples.actions
        rest = (samples.log_probs, advantages, advantages + values, values)
        return torch.cat((obs, actions, torch.stack([x.flatten() for x in rest], 1)), 1)

    def _values(self, obs: Tensor) -> Tensor:
        values: Tensor = self.value(obs[None])
        return values.flatten()

    def _normalize_rewards(self, batch: RolloutBatch) -> Tensor:
        if not self.config.normalize_rewards:
            return batch.rewards
        ended = batch.terminations | batch.truncations
        returns = discounted_returns(batch.rewards, ended, self.running_returns, self.config.gamma)
        self.running_returns = returns[-1] * ~ended[-1]
        update_moments(self.return_moments, returns)
        scale = self.return_moments.scale().to(batch.rewards.device)
        return (batch.rewards * scale).clamp_(-10.0, 10.0)

    # ---- update ------------------------------------------------------------------------------

    def _update(self, packed: Tensor) -> dict[str, float]:
        config = self.config
        accelerator = self.acceleration.accelerator
        run_epoch = self.epoch if accelerator is None else accelerator.epoch
        epochs: list[dict[str, float]] = []  # metrics of each pass's last minibatch
        for _ in range(config.update_epochs):
            order = torch.randperm(len(packed), generator=self.generator)
            epochs.append(run_epoch(packed, order))
            if config.target_kl is not None and epochs[-1]["policy/kl"] > config.target_kl:
                break
        result = {name: sum(e[name] for e in epochs) / len(epochs) for name in epochs[0]}
        result["train/epochs"] = float(len(epochs))
        result["train/learning_rate"] = self.optimizer.lr
        if not self.discrete:
            result["policy/std"] = float(self.log_std.detach().exp().mean())
        return result

    def epoch(
        self, packed: Tensor, order: Tensor, backward: Backward | None = None
    ) -> dict[str, float]:
        """A pass over the batch, a gradient step per minibatch.

        Args:
            packed: ``(n, obs_size + A + 4)`` from the collected steps.
            order: ``(n,)`` int64: of the rows; an incomplete last minibatch is left out.
            backward: What puts a minibatch's gradients in place; None: :meth:`backward`.
        """
        backward = backward or self.backward
        size = self.config.minibatch_size // self.world_size
        shuffled = packed[order.to(self.device)]
        minibatches = shuffled.split(size)[: len(packed) // size]
        for rows in minibatches:
            last = rows is minibatches[-1]
            metrics = backward(self._columns(rows), metrics=last)
            with span("optimiser"):
                distributed.average_gradients([self.flat.parameter])
                norm = self.flat.clip_grad_norm(self.config.max_grad_norm)
                self.optimizer.step()
                for module in (self.policy, self.value):
                    if isinstance(module, MLP):
                        module.refresh()
        assert metrics is not None
        names = (*PPO_METRICS, "train/grad_norm")
        values = distributed.mean(torch.cat((metrics, norm[None])))
        return dict(zip(names, values.tolist(), strict=True))

    def backward(
        self, columns: Columns, *, metrics: bool, loss: Callable[..., PPOLoss] | None = None
    ) -> Tensor:
        """The loss's gradients, where the optimiser finds them; :data:`PPO_METRICS`."""
        config = self.config
        own = self.own_networks and config.amp  # what MLP.compute_in does for ours
        with span("forward"), torch.autocast(self.device.type, torch.bfloat16, enabled=own):
            outputs = self.policy(columns.obs[None])[0].float()
            values = self.value(columns.obs[None]).flatten().float()
        result = (loss or self.functions.ppo_loss)(
            outputs,
            None if self.discrete else self.log_std,
            values,
            columns,
            clip=config.clip,
            value_clip=config.value_clip,
            entropy_coef=config.entropy_coef,
            value_coef=config.value_coef,
        )
        self.flat.backward(result.loss)
        return result.metrics

    def _columns(self, rows: Tensor) -> Columns:
        """Of rows of :meth:`_pack`."""
        actions = rows[:, self.obs_size : -4]
        log_probs, advantages, returns, old_values = rows[:, -4:].unbind(1)
        if self.config.normalize_advantages:
            advantages = self._standardize(advantages)
        return Columns(
            rows[:, : self.obs_size],
            actions[:, 0].long() if self.discrete else actions,
            log_probs,
            advantages,
            returns,
            old_values,
        )

    def _standardize(self, advantages: Tensor) -> Tensor:
        """By mean and standard deviation of the minibatch, over all processes."""
        if self.world_size == 1:
            std, mean = torch.std_mean(advantages)
            return (advantages - mean) / (std + 1e-8)
        count = torch.tensor(float(len(advantages)), device=self.device)
        mean = advantages.mean()[None]
        m2 = (advantages - mean).square().sum()[None]
        count, mean, m2 = distributed.merge_moments(count, mean, m2)
        return (advantages - mean) / ((m2 / (count - 1.0)).sqrt() + 1e-8)

    # ---- saving ------------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Any]:
        """Everything that the training goes on from, bit for bit."""
        return {
            "policy": self.policy.state_dict(),
            "value": self.value.state_dict(),
            "log_std": self.log_std.detach(),
            "optimizer": self.optimizer.state_dict(),
            "obs_moments": self.normalizer.moments.state_dict(),
            "return_moments": self.return_moments.state_dict(),
            "running_returns": self.running_returns,
            "generator": self.generator.get_state(),
            "envs": torch.from_numpy(self.envs.get_state()),
            "device_generator": self.device_generator.get_state(),
            "sampler": None if self.sampler is None else self.sampler.state_dict(),
            "pool": [samples._asdict() for samples in self.pool],
            "anneal_steps": self.anneal_steps,
            "global_step": self.global_step,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restores :meth:`state_dict`. The learning rate's schedule stays the one that it began
        with, unless ``anneal_steps`` sets another.

        Raises:
            ValueError: That schedule ends before ``total_steps``.
        """
        self._continue_schedule(state["anneal_steps"])
        self.policy.load_state_dict(state["policy"])
        self.value.load_state_dict(state["value"])
        self.log_std.data.copy_(state["log_std"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.normalizer.moments.load_state_dict(state["obs_moments"])
        self.return_moments.load_state_dict(state["return_moments"])
        self.running_returns = state["running_returns"].to(self.device)
        self.generator.set_state(state["generator"])
        self.device_generator.set_state(state["device_generator"])
        if self.sampler is not None:
            self.sampler.load_state_dict(state["sampler"])
        self.envs.set_state(state["envs"].numpy())
        self.pool.clear()
        for saved in state["pool"]:
            self.pool.append(Samples(**{k: v.to(self.device) for k, v in saved.items()}))
        self.global_step = state["global_step"]

    def _continue_schedule(self, began_with: int) -> None:
        config = self.config
        if config.anneal_steps is None:
            self.anneal_steps = began_with
        if config.anneal and self.anneal_steps < config.total_steps:
            raise ValueError(
                f"total_steps: the learning rate falls to 0 at step {self.anneal_steps}, where the "
                f"run was to end, got {config.total_steps}; to train on, set anneal_steps too "
                f"(--anneal-steps {config.total_steps}): the rate then rises to what that "
                "schedule has"
            )
