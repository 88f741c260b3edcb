"""What SAC and MBPO, which learns by SAC, share: options, collecting, the iteration, saving.

``num_seeds`` independent trainings run side by side along the leading axis of every tensor, each
as it would alone.
"""

from __future__ import annotations

import math
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, TypeVar

import torch

from pyfastenv.learners.sac_learner import METRICS, SACLearner, SACOptions
from pyfastenv.nn.policy_spec import PolicySpec
from pyfastenv.nn.spans import span
from pyfastenv.nn.streams import SeedStreams
from pyfastenv.sampling.buffers import ReplayPool, RowLayout, Transitions
from pyfastenv.sampling.exploration import continuous_actions, explore
from pyfastenv.sampling.rollouts import RolloutBatch, rollout
from pyfastenv.training import distributed, seeds
from pyfastenv.training.config import RunConfig
from pyfastenv.training.envs import make_training_envs
from pyfastenv.training.errors import CheckpointError
from pyfastenv.training.loop import episode_metrics
from pyfastenv.training.seeds import Stream

C = TypeVar("C", bound="SACConfig")


@dataclass(kw_only=True)
class SACConfig(RunConfig):
    """What SAC and MBPO, which learns by SAC, have in common."""

    num_seeds: int = 1
    """Independent trainings side by side, with the seeds seed, seed + 1, …."""
    num_envs: int = 1
    """How many environments each seed steps at once."""
    log_every: int = 50
    """Environment steps between lines of the log."""
    updates_per_step: float = 1.0
    """Gradient steps per environment step."""
    learning_starts: int = 5_000
    """Environment steps with uniformly random actions before learning begins, all at once."""
    buffer_size: int = 1_000_000
    """Transitions that each seed remembers."""
    batch_size: int = 256
    """Transitions per gradient step."""
    learning_rate: float = 3e-4
    """Adam's, for policy, critics and temperature."""
    gamma: float = 0.99
    """Discount."""
    tau: float = 0.005
    """How far the target critics follow with each gradient step."""
    temperature: float | None = None
    """Weight of the entropy; None: learned."""
    target_entropy: float | None = None
    """Of the learned temperature; None: minus the number of action components."""
    hidden_sizes: tuple[int, ...] = (256, 256)
    """Hidden layers, of policy and critics each."""
    amp: bool = False
    """bfloat16 between hidden layers: faster on processors with AMX and on GPUs."""
    torch_threads: int = 2
    """Threads of PyTorch's own operations."""

    def check(self) -> None:
        super().check()
        self._check_at_least(1, "num_seeds", "log_every", "buffer_size", "batch_size")
        self._check_positive("updates_per_step", "learning_rate")
        self._check_fractions("gamma", "tau")
        if self.temperature is not None:
            self._check_positive("temperature")
        self._check_learning_starts(self.learning_starts)
        if distributed.world_size() > 1:
            raise ValueError(
                f"{self.algorithm} runs in one process; for several seeds use --num-seeds"
            )

    def seeds(self) -> range:
        """The seeds that are trained side by side."""
        return range(self.seed, self.seed + self.num_seeds)

    def busy_steps(self) -> tuple[int, int] | None:
        """An iteration or two of learning, once the first has allocated."""
        first = self.learning_starts + 2 * self.log_every
        return (first, first + self.log_every) if first < self.total_steps else None

    def end_of_block(self, step: int) -> int:
        """Up to which step an iteration trains that begins at ``step``."""
        return max(min(step + self.log_every, self.total_steps), step + 1)

    def env_seeds(self) -> list[int]:
        """Of every environment, seed after seed, as they would be alone."""
        return [one for seed in self.seeds() for one in seeds.env_seeds(seed, self.num_envs)]

    def streams(self, kind: Stream) -> list[int]:
        """Of a generator for each of the seeds (:mod:`pyfastenv.training.seeds`)."""
        return seeds.streams(self.seeds(), kind)

    def options(self) -> SACOptions:
        """The learner's settings."""
        return SACOptions(
            hidden_sizes=self.hidden_sizes,
            policy_learning_rate=self.learning_rate,
            critic_learning_rate=self.learning_rate,
            gamma=self.gamma,
            tau=self.tau,
            temperature=self.temperature,
            target_entropy=self.target_entropy,
            bfloat16=self.amp,
            num_threads=self.torch_threads,
        )


class SeedCollector:
    """The environments of all seeds, seed after seed, and what they have gone through.

    Args:
        config: The options.
        **env_kwargs: Of the environments.

    Attributes:
        envs: ``num_seeds * num_envs`` environments.
        box: Their actions.
        layout: Of the rows that come out.
    """

    def __init__(self, config: SACConfig, **env_kwargs: Any):
        self._config = config
        self.envs = make_training_envs(config, config.num_seeds * config.num_envs, **env_kwargs)
        self.box = continuous_actions(self.envs, config.algorithm)
        self.layout = RowLayout(self.envs.obs_size, len(self.box))
        self._policy_ids = [k for k in range(config.num_seeds) for _ in range(config.num_envs)]
        self._batch: RolloutBatch | None = None
        self._ended: list[tuple[torch.Tensor, torch.Tensor, torch.Tensor]] = []

    def reset(self) -> torch.Tensor:
        """The first observations, ``(N, obs_size)``."""
        obs, _ = self.envs.flat_reset(seed=self._config.env_seeds())
        return torch.from_numpy(obs)

    def explore(self, num_steps: int, streams: SeedStreams) -> torch.Tensor:
        """Rows ``(K, n, width)`` of uniform actions from the first observations on.

        Args:
            num_steps: Of each seed, all its environments together.
            streams: CPU streams.
        """
        obs = self.reset()
        size = (self._config.num_envs, len(self.box))
        steps = math.ceil(num_steps / self._config.num_envs)
        return self._rows(
            explore(
                self.envs,
                obs,
                self.box,
                steps,
                lambda: streams.uniform(*size).flatten(0, 1).float(),
            )
        )

    def follow(self, policy: PolicySpec, num_steps: int) -> torch.Tensor:
        """Rows ``(K, num_steps * num_envs, width)`` of the policies.

        Args:
            policy: K policies.
            num_steps: Of each environment.
        """
        batch = rollout(self.envs, policy, num_steps, policy_id=self._policy_ids, out=self._batch)
        self._batch = batch
        episodes = batch.episodes
        if len(episodes) > 0:
            self._ended.append((episodes.env_ids, episodes.returns, episodes.lengths))
        return self._rows(Transitions.from_rollout(batch))

    def episode_metrics(self) -> dict[str, float]:
        """Of the episodes that ended since the last call, if any did.

        ``"train/return"`` and ``"train/length"`` are means over all seeds; with several,
        ``"train/return_k"`` is the k-th one's mean.
        """
        if not self._ended:
            return {}
        env_ids, returns, lengths = map(torch.cat, zip(*self._ended, strict=True))
        self._ended = []
        metrics = episode_metrics(returns, lengths)
        num_seeds = self._config.num_seeds
        if num_seeds > 1:
            seeds = env_ids // self._config.num_envs
            for k in seeds.unique().tolist():
                metrics[f"train/return_{k}"] = float(returns[seeds == k].mean())
        return metrics

    def _rows(self, new: Transitions) -> torch.Tensor:
        """Transitions step by step, ``T * N`` of them, to the seeds' rows."""
        actions = self.box.to_unit(new.actions)
        rows = self.layout.pack(new.obs, actions, new.next_obs, new.rewards, new.terminated)
        shape = (-1, self._config.num_seeds, self._config.num_envs, self.layout.width)
        return rows.view(shape).transpose(0, 1).flatten(1, 2)

    def state_dict(self) -> dict[str, Any]:
        """The environments' states."""
        return {"envs": torch.from_numpy(self.envs.get_state())}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restores :meth:`state_dict`."""
        self.envs.set_state(state["envs"].numpy())


class SACTraining(ABC, Generic[C]):
    """An algorithm that explores once and then takes steps, each with SAC's updates.

    Args:
        config: The options.
        **env_kwargs: Of the environments.

    Attributes:
        envs: The environments of all seeds.
        layout: Of the rows of transitions.
        learner: Policy and critics.
        env_pool: Real transitions.
        streams, exploration_streams: All chance there is but the pool's.
        parts: Names of the attributes that a checkpoint holds; a subclass appends its own.

    Raises:
        ValueError: The environment's actions are not continuous.
    """

    PHASES: ClassVar[tuple[str, ...]] = ("sample", "update")
    """What the time is told of: ``"time/<phase>_s"``."""

    def __init__(self, config: C, **env_kwargs: Any):
        self.config = config
        self.device = config.learn_device
        self.collector = SeedCollector(config, **env_kwargs)
        self.envs = self.collector.envs
        self.layout = self.collector.layout
        self.learner = SACLearner(
            self.layout, config.streams(Stream.POLICY), config.options(), self.device
        )
        self.env_pool = ReplayPool(
            config.num_seeds, config.buffer_size, self.layout.width, self.device
        )
        self.streams = SeedStreams(config.streams(Stream.LEARNING), self.device)
        self.exploration_streams = SeedStreams(config.streams(Stream.EXPLORATION))
        self.parts = ["learner", "env_pool", "streams", "exploration_streams", "collector"]
        self.global_step = 0
        self._metrics = torch.zeros(len(METRICS), config.num_seeds, device=self.device)
        self._diverged = False
        self._seconds: dict[str, float] = {}

    def eval_policy(self) -> PolicySpec:
        """The policies without chance."""
        return self.learner.policy_spec().as_greedy()

    def iterate(self) -> dict[str, float]:
        """Trains for about ``log_every`` environment steps; the first call only explores."""
        self._seconds = dict.fromkeys(self.PHASES, 0.0)
        metrics: dict[str, float] = {}
        if self.global_step == 0 and self.config.learning_starts > 0:
            with self._timed("sample"), span("env"):
                self._remember(
                    self.collector.explore(self.config.learning_starts, self.exploration_streams)
                )
        else:
            if self.global_step == 0:
                self.collector.reset()
            end = self.config.end_of_block(self.global_step)
            while self.global_step < end:
                self._step(metrics)
                if self._diverged:
                    break
            metrics |= self.collector.episode_metrics()
            metrics |= dict(zip(METRICS, self._metrics.mean(1).tolist(), strict=True))
            if self._diverged:  # the losses are those before the last step's end
                metrics["loss/policy"] = math.nan
        return metrics | {f"time/{phase}_s": value for phase, value in self._seconds.items()}

    @abstractmethod
    def _step(self, metrics: dict[str, float]) -> None:
        """:meth:`_advance`, and all that falls due before and after it."""

    def _advance(self, num_steps: int) -> None:
        """Steps of every environment, and the gradient steps that belong to them."""
        before = self.global_step
        with self._timed("sample"):
            with span("transfer"):
                policy = self.learner.policy_spec()
            with span("env"):
                rows = self.collector.follow(policy, num_steps)
            self._remember(rows)
        rate = self.config.updates_per_step
        with self._timed("update"):
            self._learn(int(rate * self.global_step) - int(rate * before))
            # waits for the device, which the copy of the policy into the pool would do anyway
            self._diverged = not self.learner.is_finite()

    @abstractmethod
    def _learn(self, num_updates: int) -> None:
        """Gradient steps of SAC; leaves the last one's metrics in ``_metrics``."""

    def _remember(self, rows: torch.Tensor) -> None:
        """Adds real transitions ``(K, n, width)`` of n steps of each seed."""
        with span("transfer"):
            self.env_pool.add(rows.to(self.device))
        self.global_step += rows.shape[1]

    @contextmanager
    def _timed(self, phase: str) -> Iterator[None]:
        began = time.perf_counter()
        yield
        self._seconds[phase] += time.perf_counter() - began

    def state_dict(self) -> dict[str, Any]:
        """Everything that the training goes on from, bit for bit."""
        state = {name: getattr(self, name).state_dict() for name in self.parts}
        return {**state, "global_step": self.global_step}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restores :meth:`state_dict`.

        Raises:
            CheckpointError: A part is missing: another version wrote it.
        """
        missing = [name for name in (*self.parts, "global_step") if name not in state]
        if missing:
            raise CheckpointError(
                f"the checkpoint has no {', '.join(missing)}: another version of pyfastenv wrote it"
            )
        for name in self.parts:
            getattr(self, name).load_state_dict(state[name])
        self.global_step = state["global_step"]
