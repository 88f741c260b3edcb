"""Proximal policy optimisation (Schulman et al. 2017, arXiv:1707.06347).

The pool samples (:func:`pyfastenv.rollout` with a copy of the policy), torch learns. Read it top to
bottom: Config, collecting, advantages, update, saving.
"""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import gymnasium
import torch
from torch import Tensor, nn

from pyfastenv import _core
from pyfastenv.nn.functional import (
    PPO_METRICS,
    discounted_returns,
    gae,
    gaussian_log_prob,
    ppo_gradients,
)
from pyfastenv.nn.networks import MLP, FlatParameters, initialised_by
from pyfastenv.nn.normalize import RunningMoments
from pyfastenv.nn.optim import FlatAdam
from pyfastenv.nn.policy_spec import PolicySpec
from pyfastenv.nn.spans import span
from pyfastenv.sampling.rollouts import Episodes, RolloutBatch, rollout
from pyfastenv.sampling.staging import Collector, PinnedRing
from pyfastenv.training import distributed, seeds
from pyfastenv.training.callbacks import Callback, StepFunction
from pyfastenv.training.config import RunConfig
from pyfastenv.training.device_sampling import DeviceSampler
from pyfastenv.training.envs import make_training_envs
from pyfastenv.training.loop import RunResult, episode_metrics, run
from pyfastenv.training.obs_normalizer import ObsNormalizer, update_moments
from pyfastenv.training.seeds import Stream, env_seeds
from pyfastenv.vector.cpus import available_cpus

# Found here to learn better than the defaults (what they learn: docs/results/ppo.md and
# bench/results/train.md), but for the numbers marked "zoo", which are those of the same task in
# RL Baselines3 Zoo (github.com/DLR-RM/rl-baselines3-zoo, hyperparams/ppo.yml).
PRESETS: dict[str, dict[str, Any]] = {
    "CartPole": {
        "num_envs": 32,
        "num_steps": 64,
        "minibatch_size": 256,
        "update_epochs": 5,
        "hidden_sizes": (64,),
        "learning_rate": 1e-2,
        "anneal": False,
        "gamma": 0.98,  # zoo
        "normalize_rewards": False,
        "total_steps": 100_000,  # zoo
    },
    "HalfCheetah": {"learning_rate": 1e-3, "log_std_init": -1.0},
    "Hopper": {"num_envs": 32, "num_steps": 64, "learning_rate": 1e-3},
    "Pendulum": {
        "gamma": 0.9,  # zoo
        "learning_rate": 1e-3,  # zoo
        "total_steps": 300_000,
    },
    "Swimmer": {
        "gamma": 0.9999,  # zoo
        "gae_lambda": 0.98,
        "learning_rate": 1e-3,
        "log_std_init": 0.0,
        "normalize_rewards": False,
    },
}


@dataclass(kw_only=True)
class Config(RunConfig):
    """Proximal policy optimisation."""

    algorithm: ClassVar[str] = "ppo"
    presets = PRESETS
    may_differ = RunConfig.may_differ | {"anneal_steps"}

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


def train(config: Config, callbacks: Sequence[Callback | StepFunction] = ()) -> RunResult:
    """Trains; see :func:`pyfastenv.training.loop.run` for what comes out and what is raised."""
    return run(PPO, config, callbacks)


def load_policy(config: Config, state: dict[str, Any]) -> PolicySpec:
    """The greedy policy of a checkpoint."""
    spec: PolicySpec = PPO(config, restore=state).eval_policy()
    return spec


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


class PPO:
    """The algorithm; :func:`train` drives it.

    Args:
        config: The options.
        restore: A :meth:`state_dict`, to continue from it.
    """

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

        sizes = (self.obs_size, *config.hidden_sizes)
        with initialised_by(seeds.stream(config.seed, Stream.POLICY)):
            self.policy = MLP((*sizes, num_outputs), activation=config.activation, last_gain=0.01)
            self.value = MLP((*sizes, 1), activation=config.activation)
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
        self.native = self._make_native()

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

    def _make_native(self) -> _core.PpoUpdate | None:
        """The compiled update: for a single process that learns on the CPU."""
        if self.device.type != "cpu" or self.world_size > 1:
            return None
        return _core.PpoUpdate(
            policy_sizes=list(self.policy.sizes),
            value_sizes=list(self.value.sizes),
            activation=self.config.activation,
            discrete=self.discrete,
            num_threads=self.config.num_threads or available_cpus(),
        )

    # ---- collecting --------------------------------------------------------------------------

    def _make_collector(self) -> Collector[Episodes]:
        """Batches through a ring: pinned for a learner on a GPU, without copies on the CPU."""
        tensors = RolloutBatch.allocate(self.envs, self.config.num_steps).tensors()
        layout = {name: (tuple(x.shape), x.dtype) for name, x in tensors.items()}
        ring = PinnedRing(layout, 2, self.device)
        return Collector(self._collect, ring, overlap=self.config.overlap)

    def _make_sampler(self) -> DeviceSampler | None:
        if self.config.device != "cuda":
            return None
        return DeviceSampler(self.envs, self.config.num_steps, self.device)

    def _export(self) -> None:
        self.core_policy = self.policy_spec().to_core(self.envs.single_action_space)

    def _collect(self, tensors: dict[str, Tensor]) -> Episodes:
        assert self.core_policy is not None
        batch = RolloutBatch.of(tensors)
        return rollout(self.envs, self.core_policy, self.config.num_steps, out=batch).episodes

    @torch.no_grad()
    def _act(self, obs: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """The policy in torch, for sampling on the device."""
        normalized = self.normalizer(obs.view(-1, self.obs_size).float())
        outputs = self.policy.evaluate(normalized[None])[0][0]
        if self.discrete:
            log_p = torch.log_softmax(outputs, -1)
            actions = torch.multinomial(log_p.exp(), 1, generator=self.device_generator)
            return actions[:, 0], log_p.gather(-1, actions)[:, 0], actions[:, 0]
        noise = torch.empty_like(outputs).normal_(generator=self.device_generator)
        actions = outputs + self.log_std.exp() * noise
        low, high = self.action_bounds
        clipped = torch.minimum(torch.maximum(actions, low), high)
        return actions, gaussian_log_prob(actions, outputs, self.log_std), clipped

    def _warm_up(self) -> None:
        """Moments of observations, before the first policy is to see them normalised."""
        batch = rollout(self.envs, self.policy_spec(), self.config.num_steps)
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

    def policy_spec(self) -> PolicySpec:
        """The policy as the pool runs it."""
        return self.policy.spec(
            distribution="categorical" if self.discrete else "gaussian",
            log_std=None if self.discrete else self.log_std.detach().cpu().numpy()[None],
            **self.normalizer.spec_fields(),
        )

    def eval_policy(self) -> PolicySpec:
        """The same, always choosing the most likely action."""
        return self.policy_spec().as_greedy()

    def iterate(self) -> dict[str, float]:
        """Collects ``num_steps`` of every environment and learns from them."""
        began = time.perf_counter()
        with span("env"):
            if self.sampler is None:
                tensors, episodes = self.collector.next(self._export)
                batch = RolloutBatch.of(tensors, episodes)
            else:
                batch = self.sampler.collect(self._act)
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
        return self.value.evaluate(obs[None])[0].flatten()

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

    @torch.no_grad()
    def _update(self, packed: Tensor) -> dict[str, float]:
        config = self.config
        run_epoch = self._epoch_natively if self.native is not None else self._epoch_in_torch
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
            result["policy/std"] = float(self.log_std.exp().mean())
        return result

    def _epoch_natively(self, packed: Tensor, order: Tensor) -> dict[str, float]:
        """The same as :meth:`_epoch_in_torch`, three times as fast on a CPU."""
        assert self.native is not None
        config, adam = self.config, self.optimizer
        hyper = _core.PpoHyper()
        hyper.minibatch_size = config.minibatch_size
        hyper.lr = adam.lr
        hyper.beta1, hyper.beta2 = adam.betas
        hyper.eps = adam.eps
        hyper.clip = config.clip
        hyper.value_clip = config.value_clip
        hyper.entropy_coef = config.entropy_coef
        hyper.value_coef = config.value_coef
        hyper.max_grad_norm = config.max_grad_norm
        hyper.normalize_advantages = config.normalize_advantages
        vectors = [x.detach().numpy() for x in (self.flat.parameter, adam.mean, adam.square)]
        with span("update"):
            metrics: dict[str, float] = self.native.run_epoch(
                packed.numpy(), order.numpy(), hyper, adam.num_steps, *vectors
            )
        adam.num_steps += len(packed) // config.minibatch_size
        return metrics

    def _epoch_in_torch(self, packed: Tensor, order: Tensor) -> dict[str, float]:
        size = self.config.minibatch_size // self.world_size
        shuffled = packed[order.to(self.device)]
        minibatches = shuffled.split(size)[: len(packed) // size]
        for rows in minibatches[:-1]:
            self._gradient_step(rows, metrics=False)
        metrics = self._gradient_step(minibatches[-1], metrics=True)
        assert metrics is not None
        names = (*PPO_METRICS, "train/grad_norm")
        return dict(zip(names, distributed.mean(metrics).tolist(), strict=True))

    def _gradient_step(self, rows: Tensor, *, metrics: bool) -> Tensor | None:
        """One minibatch; returns :data:`PPO_METRICS` and the gradient's norm, if wanted."""
        config = self.config
        obs = rows[None, :, : self.obs_size]
        actions = rows[:, self.obs_size : -4]
        log_probs, advantages, returns, old_values = rows[:, -4:].unbind(1)
        if config.normalize_advantages:
            advantages = self._standardize(advantages)
        with span("forward"):
            outputs, policy_saved = self.policy.evaluate(obs)
            values, value_saved = self.value.evaluate(obs)
            gradients = ppo_gradients(
                outputs[0],
                None if self.discrete else self.log_std,
                values.flatten(),
                actions[:, 0].long() if self.discrete else actions,
                log_probs,
                advantages,
                returns,
                old_values,
                clip=config.clip,
                value_clip=config.value_clip,
                entropy_coef=config.entropy_coef,
                value_coef=config.value_coef,
                metrics=metrics,
            )
        with span("backward"):
            self.policy.write_gradients(policy_saved, gradients.outputs[None])
            self.value.write_gradients(value_saved, gradients.values[None, :, None])
            if gradients.log_std is not None and self.log_std.grad is not None:
                self.log_std.grad.copy_(gradients.log_std)
        with span("optimiser"):
            distributed.average_gradients([self.flat.parameter])
            norm = self.flat.clip_grad_norm(config.max_grad_norm)
            self.optimizer.step()
        return None if gradients.metrics is None else torch.cat((gradients.metrics, norm[None]))

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
