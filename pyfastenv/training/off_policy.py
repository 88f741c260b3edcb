"""The base of TD3, SAC, MBPO and their like: options, collecting, replay, the iteration, saving.

``num_seeds`` independent trainings run side by side along the leading axis of every tensor, each
as it would alone.
"""

from __future__ import annotations

import math
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, ClassVar, Generic, TypeVar

import torch
from torch import Tensor

from pyfastenv.nn.policy_spec import PolicySpec
from pyfastenv.nn.spans import span
from pyfastenv.nn.streams import SeedStreams
from pyfastenv.nn.torch_policy import TorchPolicy, as_greedy
from pyfastenv.runs.errors import CheckpointError
from pyfastenv.runs.seeds import Stream
from pyfastenv.sampling.buffers import ReplayPool
from pyfastenv.sampling.hindsight import Hindsight
from pyfastenv.sampling.n_step import NStep
from pyfastenv.sampling.obs_groups import groups_of
from pyfastenv.training import distributed
from pyfastenv.training.accelerators import Choice
from pyfastenv.training.actor_critic import ActorCritic
from pyfastenv.training.collecting import SeedCollector
from pyfastenv.training.obs_normalizer import SeedNormalizers
from pyfastenv.training.off_policy_config import OffPolicyConfig

C = TypeVar("C", bound="OffPolicyConfig")

# minibatches drawn at once: one gather for all of them, and never much memory
_DRAW = 64


class OffPolicy(ABC, Generic[C]):
    """An algorithm that explores once and then takes steps, each with its gradient steps.

    Args:
        config: The options.
        restore: A :meth:`state_dict`, to continue from it; a subclass with parts of its own loads
            it when they stand.

    Attributes:
        envs: The environments of all seeds.
        layout: Of the rows of transitions.
        learner: Policies and critics.
        env_pool: Real transitions.
        normalizer: Of the observations, which it passes through unless ``normalize_obs``.
        streams, exploration_streams: All randomness there is but the pool's.
        parts: Names of the attributes that a checkpoint holds; a subclass appends its own.
        learned: Those of them that were learned and do not belong to environments or streams.

    Raises:
        ValueError: The environment's actions are not continuous.
    """

    PHASES: ClassVar[tuple[str, ...]] = ("sample", "update")
    """The phases whose time is reported: ``"time/<phase>_s"``."""
    collector_type: ClassVar[type[SeedCollector]] = SeedCollector
    learner: ActorCritic

    def __init__(self, config: C, restore: dict[str, Any] | None = None):
        self.config = config
        self.device = config.learn_device
        self.collector = self.collector_type(config)
        self.envs = self.collector.envs
        self.layout = self.collector.layout
        self.learner = self.make_learner()
        self.env_pool = ReplayPool(
            config.num_seeds, config.buffer_size, self.layout.width, self.device
        )
        self.streams = SeedStreams(config.streams(Stream.LEARNING), self.device)
        self.exploration_streams = SeedStreams(config.streams(Stream.EXPLORATION))
        self.parts = ["learner", "env_pool", "streams", "exploration_streams", "collector"]
        self.learned = ["learner"]
        self.normalizer = SeedNormalizers(
            config.num_seeds,
            self.layout.obs_size,
            clip=config.obs_bound,
            device=self.device,
            groups=groups_of(self.envs),
        )
        if self.normalizer.enabled:
            self.parts.append("normalizer")
            self.learned.append("normalizer")
        self.n_step: NStep | None = None
        if config.n_step > 1:
            self.n_step = NStep(self.env_pool, self.layout, config.num_envs, config.n_step)
            self.episode_ends = self.n_step.ends
            self.parts.append("episode_ends")
        self.hindsight: Hindsight | None = None
        if config.her_goals > 0:
            self.hindsight = Hindsight(
                self.env_pool, self.layout, self.envs, config.num_envs, config.her_goals
            )
            self.parts.append("hindsight")
        self.global_step = 0
        self.anneal_steps = config.anneal_steps or config.total_steps
        self._learning_rates = {name: each.lr for name, each in self.learner.optimizers.items()}
        shape = (len(self.learner.metrics), config.num_seeds)
        self._metrics = torch.zeros(shape, device=self.device)
        self._has_learned = False
        self._diverged = False
        self._seconds: dict[str, float] = {}
        if restore is not None:
            self.load_state_dict(restore)

    @property
    def acceleration(self) -> Choice:
        """The accelerator of the gradient steps."""
        return self.learner.choice

    # ---- what an algorithm says --------------------------------------------------------------

    @abstractmethod
    def make_learner(self) -> ActorCritic:
        """Policies and critics of all seeds."""

    @abstractmethod
    def policies(self) -> PolicySpec | list[TorchPolicy]:
        """The K policies, as they explore."""

    def step(self, metrics: dict[str, float]) -> None:
        """:meth:`advance`, and in subclasses all that falls due before and after it."""
        self.advance(self.config.num_steps)

    def draw(self, count: int) -> tuple[Tensor, Tensor]:
        """Minibatches ``(count, K, B, width)``, and the noise of their steps."""
        size = self.config.batch_size // distributed.world_size()
        rows = self.draw_rows(count, size)
        noise = self.streams.normal(count, *self.learner.noise_shape(size)).movedim(1, 0)
        return rows, noise

    def draw_rows(self, count: int, size: int) -> Tensor:
        """Independent minibatches ``(count, K, size, width)``."""
        uniform = self.streams.uniform(count, size)
        return self.replayed(self.env_pool.indices(uniform, self.newest()))

    def newest(self) -> Tensor | None:
        """How many of each seed's latest transitions are replayed, ``(K,)``; None: all."""
        return None

    def replayed(self, indices: Tensor) -> Tensor:
        """Rows ``(…, K, n, width)`` by their numbers, each of the steps of an n-step return, or
        with a goal of hindsight's; observations normalised."""
        if self.hindsight is not None:
            rows = self.hindsight.take(indices, self.streams.uniform(2, *indices.shape[1:]))
        elif self.n_step is not None:
            rows = self.n_step.take(indices, self.learner.discount)
        else:
            rows = self.env_pool.take(indices)
        if self.normalizer.enabled:
            for obs in (self.layout.obs(rows), self.layout.next_obs(rows)):
                obs.copy_(self.normalizer(obs.movedim(-3, 0)).movedim(0, -3))
        return rows

    def observe(self, rows: Tensor) -> None:
        """Sees new real transitions ``(K, n, width)``; the collector knows more of them."""
        self.normalizer.update(self.collector.obs.unflatten(1, (-1, self.config.num_envs)))

    # ---- the iteration -----------------------------------------------------------------------

    def eval_policy(self) -> PolicySpec | list[TorchPolicy]:
        """The policies without randomness."""
        return as_greedy(self.policies())

    def iterate(self) -> dict[str, float]:
        """Trains for about ``log_every`` environment steps; the first call only explores."""
        self._seconds = dict.fromkeys(self.PHASES, 0.0)
        metrics: dict[str, float] = {}
        if self.global_step == 0 and self.config.learning_starts > 0:
            with self.timed("sample"), span("env"):
                count = math.ceil(self.config.learning_starts / distributed.world_size())
                self._remember(self.collector.explore(count, self.exploration_streams))
        else:
            if self.global_step == 0:
                self.collector.reset()
            end = self.config.end_of_block(self.global_step)
            with self.learner.settled():  # callbacks run between iterations
                while self.global_step < end:
                    self.step(metrics)
                    if self._diverged:
                        break
            metrics |= self.collector.episode_metrics()
            if self._has_learned:
                means = distributed.mean(self._metrics.mean(1))
                metrics |= dict(zip(self.learner.metrics, means.tolist(), strict=True))
            if self._diverged:  # the losses are those before the last step's end
                metrics["loss/policy"] = math.nan
        return metrics | {f"time/{phase}_s": value for phase, value in self._seconds.items()}

    def advance(self, num_steps: int) -> None:
        """Steps of every environment, and the gradient steps that belong to them."""
        before = self.global_step
        self.schedule()
        with self.timed("sample"):
            with span("transfer"):
                policies = self.policies()
            with span("env"):
                rows = self.collector.follow(policies, num_steps)
            self._remember(rows)
        rate = self.config.updates_per_step
        self.improve(int(rate * self.global_step) - int(rate * before))

    def improve(self, num_updates: int) -> None:
        """Gradient steps; an iteration ends when the policy is no longer finite."""
        with self.timed("update"):
            self.learn(num_updates)
            # waits for the device, which the copy of the policy into the pool would do anyway
            self._diverged = not self.learner.is_finite()

    def schedule(self) -> None:
        """Sets the discount and the learning rates of this step."""
        self.learner.discount.fill_(self.config.discount(self.global_step))
        lowest = self.config.anneal_to
        if lowest == 1.0:
            return
        done = min(self.global_step / self.anneal_steps, 1.0)
        share = lowest + (1.0 - lowest) * 0.5 * (1.0 + math.cos(math.pi * done))
        for name, optimizer in self.learner.optimizers.items():
            optimizer.lr = share * self._learning_rates[name]

    def learn(self, num_updates: int) -> None:
        """Gradient steps on independent minibatches; the metrics are the last one's."""
        for first in range(0, num_updates, _DRAW):
            with span("transfer"):
                rows, noise = self.draw(min(_DRAW, num_updates - first))
            with span("update"):
                self.learner.run(rows, noise, self._metrics)
            self._has_learned = True

    def _remember(self, rows: Tensor) -> None:
        """Adds real transitions ``(K, n, width)`` of n steps of each seed."""
        with span("transfer"):
            self.env_pool.add(rows.to(self.device))
            if self.n_step is not None:
                self.n_step.add(self.collector.ended)
            if self.hindsight is not None:
                self.hindsight.add(self.collector.ended)
            self.observe(rows)
        self.global_step += rows.shape[1] * distributed.world_size()

    @contextmanager
    def timed(self, phase: str) -> Iterator[None]:
        """Counts the time inside to one of :attr:`PHASES`."""
        began = time.perf_counter()
        yield
        self._seconds[phase] += time.perf_counter() - began

    # ---- saving ------------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Any]:
        """Everything that the training goes on from, bit for bit."""
        state = {name: getattr(self, name).state_dict() for name in self.parts}
        schedule = {"anneal_steps": self.anneal_steps} if self.config.anneal_to < 1.0 else {}
        metrics = {"metrics": self._metrics} if self._has_learned else {}
        return {**state, **schedule, **metrics, "global_step": self.global_step}

    def load_learned(self, state: Mapping[str, Any]) -> None:
        """Takes the parts :attr:`learned` of a :meth:`state_dict`."""
        for name in self.learned:
            getattr(self, name).load_state_dict(state[name])

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restores :meth:`state_dict`; ``anneal_steps`` of the options wins.

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
        self._has_learned = "metrics" in state
        if self._has_learned:
            self._metrics.copy_(state["metrics"])
        self.anneal_steps = self.config.anneal_steps or state.get("anneal_steps", self.anneal_steps)
