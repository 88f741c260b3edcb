"""The base of PPO and its like: options, collecting, normalising, the iteration."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Generic, NamedTuple, TypeVar

import torch
from torch import Tensor

from pyfastenv import _core
from pyfastenv.nn.functional import discounted_returns
from pyfastenv.nn.normalize import RunningMoments
from pyfastenv.nn.policy_spec import PolicySpec
from pyfastenv.nn.spans import span
from pyfastenv.nn.torch_policy import TorchPolicy, as_greedy
from pyfastenv.runs import seeds
from pyfastenv.runs.options import FRACTION, at_least
from pyfastenv.runs.seeds import Stream, env_seeds
from pyfastenv.sampling.device_sampling import DeviceSampler
from pyfastenv.sampling.obs_groups import Seen, groups_of
from pyfastenv.sampling.rollouts import Episodes, RolloutBatch, rollout
from pyfastenv.sampling.staging import Collector, PinnedRing
from pyfastenv.training import distributed
from pyfastenv.training.envs import make_training_envs
from pyfastenv.training.learner_config import LearnerConfig
from pyfastenv.training.loop import episode_metrics
from pyfastenv.training.obs_normalizer import ObsNormalizer

C = TypeVar("C", bound="OnPolicyConfig")


@dataclass(kw_only=True)
class OnPolicyConfig(LearnerConfig):
    """The options of algorithms that learn from their policy's latest steps."""

    num_steps: int = field(default=128, metadata=at_least(1))
    """Steps of each environment between updates."""
    gamma: float = field(default=0.99, metadata=FRACTION)
    """Discount."""
    normalize_obs: bool = True
    """Normalise observations by running mean and standard deviation."""
    normalize_rewards: bool = True
    """Divide by the running standard deviation of discounted returns."""
    obs_clip: float = field(default=10.0, metadata=at_least(0))
    """Bound of normalised observations; 0: none."""
    overlap: bool = False
    """Collect the next batch while learning from this one: by the policy of one update ago."""
    pool_size: int = field(default=1, metadata=at_least(1))
    """Learn from so many of the latest batches (the trajectory pool); 1: on-policy."""

    def check(self) -> None:
        super().check()
        if self.overlap and self.device == "cuda":
            raise ValueError("overlap: needs sampling on the CPU; use --device cpu or sample-cpu")


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


class OnPolicy(ABC, Generic[C]):
    """An algorithm that collects a batch and learns from it.

    Args:
        config: The options.

    Attributes:
        envs: The training environments.
        seen: What policy and critic see of their observations.
        normalizer: Of observations.
        return_moments: Of running discounted returns, by which rewards are divided.
        pool: Earlier batches (the trajectory pool); the newest joins them for its update.
        episodes: Those that ended in the latest iteration.
        sampler: Steps the environments if the policy acts in torch; else workers of the pool do.
        learned: The parts of a checkpoint that were learned and do not belong to environments.
    """

    learned: ClassVar[tuple[str, ...]] = ("obs_moments", "return_moments")

    def __init__(self, config: C):
        self.config = config
        self.device = config.learn_device
        self.world_size = distributed.world_size()
        self.envs = make_training_envs(config, config.num_envs)
        self.obs_size = self.envs.obs_size
        self.seen = Seen.of(self.envs)
        self.normalizer = ObsNormalizer(
            self.obs_size,
            clip=config.obs_clip if config.normalize_obs else None,
            device=self.device,
            groups=groups_of(self.envs),
        )
        self.return_moments = RunningMoments(1)
        self.running_returns = torch.zeros(config.num_envs, device=self.device)
        self.generator = torch.Generator()
        self.generator.manual_seed(seeds.stream(config.seed, Stream.LEARNING, distributed.rank()))
        self.device_generator = torch.Generator(self.device)
        self.device_generator.manual_seed(
            seeds.stream(config.seed, Stream.ACTING, distributed.rank())
        )
        self.global_step = 0
        self.episodes: Episodes | None = None
        self.pool: deque[Samples] = deque(maxlen=config.pool_size - 1)
        self.core_policy: _core.Policy | None = None
        self.sampler: DeviceSampler | None = None

    # ---- what an algorithm says --------------------------------------------------------------

    @abstractmethod
    def policy_spec(self) -> PolicySpec | list[TorchPolicy]:
        """The policy as it explores: for the pool, or with a network of the user's."""

    @abstractmethod
    def act(self, obs: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """The policy in torch: actions as drawn, their log-probs, actions for the environments."""

    @abstractmethod
    def learn(self, batch: RolloutBatch) -> dict[str, float]:
        """Learns from a batch, and takes the moments of its observations; returns metrics."""

    # ---- collecting --------------------------------------------------------------------------

    def begin(self, restore: dict[str, Any] | None, *, in_torch: bool) -> None:
        """Makes ready to collect, once the policy stands.

        Args:
            restore: A :meth:`state_dict` to go on from.
            in_torch: The policy acts by :meth:`act`, a step of all environments at a time.

        Raises:
            ValueError: And the configuration would overlap that with learning.
        """
        if in_torch:
            if self.config.overlap:
                raise ValueError("overlap: a network that acts in torch samples between updates")
            self.sampler = DeviceSampler(self.envs, self.config.num_steps, self.device)
        # through a ring: pinned for a learner on a GPU, without copies on the CPU
        tensors = RolloutBatch.allocate(self.envs, self.config.num_steps).tensors()
        layout = {name: (tuple(x.shape), x.dtype) for name, x in tensors.items()}
        ring = PinnedRing(layout, 2, self.device)
        self.collector = Collector(self._collect, ring, overlap=self.config.overlap)
        if restore is None:
            self.reset()
        else:
            self.load_state_dict(restore)

    def _export(self) -> None:
        spec = self.policy_spec()
        assert isinstance(spec, PolicySpec)
        self.core_policy = spec.to_core(self.envs.single_action_space)

    def _collect(self, tensors: dict[str, Tensor]) -> Episodes:
        assert self.core_policy is not None
        batch = RolloutBatch.of(tensors)
        return rollout(self.envs, self.core_policy, self.config.num_steps, out=batch).episodes

    def _sample(self, sampler: DeviceSampler) -> RolloutBatch:
        return sampler.collect(self.act)

    def _next_batch(self) -> RolloutBatch:
        if self.sampler is not None:
            return self._sample(self.sampler)
        tensors, episodes = self.collector.next(self._export)
        return RolloutBatch.of(tensors, episodes)

    def warm_up(self) -> None:
        """Moments of observations, before the first policy is to see them normalised."""
        spec, num_steps = self.policy_spec(), self.config.num_steps
        if isinstance(spec, PolicySpec):
            batch = rollout(self.envs, spec, num_steps)
        else:
            assert self.sampler is not None
            batch = self._sample(self.sampler)
        self.normalizer.update(batch.obs)
        self.global_step += self.steps_per_batch
        self.reset()

    def reset(self) -> None:
        """The first episodes."""
        count = self.config.num_envs
        mine = env_seeds(self.config.seed, count, first=distributed.rank() * count)
        if self.sampler is None:
            self.envs.reset(seed=mine)
        else:
            self.sampler.reset(mine)

    @property
    def steps_per_batch(self) -> int:
        """The steps per batch of all processes together."""
        return self.config.num_envs * self.config.num_steps * self.world_size

    def eval_policy(self) -> PolicySpec | list[TorchPolicy]:
        """The same, always choosing the most likely action."""
        return as_greedy(self.policy_spec())

    def iterate(self) -> dict[str, float]:
        """Collects ``num_steps`` of every environment and learns from them."""
        began = time.perf_counter()
        with span("env"):
            if self.config.normalize_obs and self.normalizer.moments.count == 0:
                self.warm_up()
            batch = self._next_batch()
        sampled = time.perf_counter()
        metrics = self.learn(batch)
        self.global_step += self.steps_per_batch
        self.episodes = batch.episodes
        ended = batch.episodes
        metrics |= episode_metrics(ended.returns, ended.lengths, ended.infos)
        metrics["time/sample_s"] = sampled - began
        metrics["time/update_s"] = time.perf_counter() - sampled
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

    def _normalize_rewards(self, batch: RolloutBatch) -> Tensor:
        if not self.config.normalize_rewards:
            return batch.rewards
        ended = batch.terminations | batch.truncations
        returns = discounted_returns(batch.rewards, ended, self.running_returns, self.config.gamma)
        self.running_returns = returns[-1] * ~ended[-1]
        self.return_moments.merge(*distributed.merge_moments(*self.return_moments.of(returns)))
        scale = self.return_moments.scale().to(batch.rewards.device)
        return (batch.rewards * scale).clamp_(-10.0, 10.0)

    # ---- saving ------------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Any]:
        """The state that collecting goes on from, bit for bit."""
        return {
            "obs_moments": self.normalizer.moments.state_dict(),
            "return_moments": self.return_moments.state_dict(),
            "running_returns": self.running_returns,
            "envs": torch.from_numpy(self.envs.get_state()),
            "generator": self.generator.get_state(),
            "device_generator": self.device_generator.get_state(),
            "sampler": None if self.sampler is None else self.sampler.state_dict(),
            "pool": [samples._asdict() for samples in self.pool],
            "global_step": self.global_step,
        }

    def load_learned(self, state: Mapping[str, Any]) -> None:
        """Takes the parts :attr:`learned` of a :meth:`state_dict`."""
        self.normalizer.moments.load_state_dict(state["obs_moments"])
        self.return_moments.load_state_dict(state["return_moments"])

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restores :meth:`state_dict`."""
        self.load_learned(state)
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
