"""OffPolicyConfig: the options that all algorithms with replayed transitions share."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any, ClassVar

import torch

from pyfastenv.runs import seeds
from pyfastenv.runs.options import FRACTION, MAY_DIFFER, POSITIVE, at_least, check_fixed
from pyfastenv.runs.seeds import Stream
from pyfastenv.training import distributed
from pyfastenv.training.actor_critic import ActorCriticOptions
from pyfastenv.training.learner_config import LearnerConfig


@dataclass(kw_only=True)
class OffPolicyConfig(LearnerConfig):
    """Options that algorithms learning from replayed transitions have in common."""

    processes: ClassVar[bool] = False
    """Whether the processes of torchrun can share a training."""
    exploration_dtype: ClassVar[torch.dtype] = torch.float64
    """Type of the uniform numbers that explore."""
    options_type: ClassVar[type[ActorCriticOptions]] = ActorCriticOptions
    """Class of the learner's settings."""

    total_steps: int = 1_000_000
    """Environment steps to train for, of each seed."""
    eval_every: int = 10_000
    """Environment steps between evaluations; 0: only at the end."""
    checkpoint_every: int = 50_000
    """Environment steps between checkpoints; 0: only at the end."""
    num_seeds: int = field(default=1, metadata=at_least(1))
    """Independent trainings side by side, with the seeds seed, seed + 1, …."""
    num_envs: int = 1
    """How many environments each seed steps at once (in each process)."""
    log_every: int = field(default=50, metadata=at_least(1))
    """Environment steps between lines of the log."""
    updates_per_step: float = field(default=1.0, metadata=POSITIVE)
    """Gradient steps per environment step."""
    learning_starts: int = field(default=5_000, metadata=at_least(0))
    """Environment steps with uniformly random actions before learning begins, all at once."""
    buffer_size: int = field(default=1_000_000, metadata=at_least(1))
    """Transitions that each seed remembers (in each process)."""
    batch_size: int = field(default=256, metadata=at_least(1))
    """Transitions per gradient step (of all processes together)."""
    gamma: float = field(default=0.99, metadata=FRACTION)
    """Discount."""
    gamma_schedule: tuple[int, int, float] | None = None
    """Between these two environment steps the discount goes from gamma to the third number (1 minus
    the discount geometrically, François-Lavet et al. 2015, arXiv:1512.02011); None: it stays."""
    n_step: int = field(default=1, metadata=at_least(1))
    """Steps whose rewards a target sums up before the critics' value of what follows; fewer where
    the episode ends (n-step returns, not corrected for the policy having changed since)."""
    her_goals: int = field(default=0, metadata=at_least(0))
    """How many replayed steps get a goal that their episode reached afterwards, for each that keeps
    its own (hindsight experience replay: Andrychowicz et al. 2017, arXiv:1707.01495); 0: none."""
    tau: float = field(default=0.005, metadata=FRACTION)
    """How far the target networks follow with each gradient step."""
    anneal_to: float = field(default=1.0, metadata=FRACTION)
    """The share of themselves that learning rates fall to along a cosine; 1: they stay."""
    anneal_steps: int | None = field(default=None, metadata=at_least(1) | MAY_DIFFER)
    """Environment steps until learning rates have fallen to anneal_to; None: total_steps as they
    were when the run began."""
    torch_threads: int = 2
    """Threads of PyTorch's own operations."""

    def check(self) -> None:
        super().check()
        if self.anneal_to == 0.0:
            raise ValueError("anneal_to: expected more than 0, got 0.0")
        if self.anneal_to == 1.0:
            check_fixed(self, ("anneal_steps", None, "the learning rates stay; set anneal_to too"))
        if self.gamma_schedule is not None:
            first, last, final = self.gamma_schedule
            if not (0 <= first <= last and 0 <= final < 1 and self.gamma < 1):
                raise ValueError(
                    "gamma_schedule: expected two environment steps in order and a discount, gamma "
                    f"and it less than 1, got {self.gamma_schedule} and gamma {self.gamma}"
                )
        at_once = self.num_envs * distributed.world_size()
        explored = -(-self.learning_starts // at_once) * at_once
        if explored >= self.total_steps:
            whole = f" (in whole steps of {at_once} environments {explored})" if at_once > 1 else ""
            raise ValueError(
                f"learning_starts: expected less than total_steps = {self.total_steps}, got "
                f"{self.learning_starts}{whole}: nothing would be learned"
            )
        most = (self.total_steps - explored) // at_once
        if self.num_steps > max(most, 1):
            raise ValueError(
                f"num_steps: expected at most the {most} that learning_starts leaves of each "
                f"environment's in total_steps = {self.total_steps}, got {self.num_steps}"
            )
        if self.her_goals > 0:
            why = "with her_goals the rewards on the way are those of another goal"
            check_fixed(self, ("n_step", 1, why))
        self._check_shared_out("batch_size")
        if distributed.world_size() > 1 and not (self.processes and self.num_seeds == 1):
            raise ValueError(
                f"{self.algorithm} runs in one process; for several seeds use --num-seeds"
                if not self.processes
                else f"num_seeds: expected 1 under torchrun, got {self.num_seeds}"
            )

    @property
    def obs_bound(self) -> float | None:
        """Bound of normalised observations, 0: none; None: networks see them as they are."""
        return None

    @property
    def num_steps(self) -> int:
        """Steps of each environment between copies of the policy into the pool."""
        return 1

    def fewest_starts(self) -> int:
        """Without so many random steps nothing can be learned."""
        return 0

    def seeds(self) -> range:
        """The seeds that are trained side by side."""
        return range(self.seed, self.seed + self.num_seeds)

    def busy_steps(self) -> tuple[int, int] | None:
        """An iteration or two of learning, once the first has allocated."""
        first = self.learning_starts + 2 * self.log_every
        return (first, first + self.log_every) if first < self.total_steps else None

    def discount(self, step: int) -> float:
        """At an environment step."""
        if self.gamma_schedule is None:
            return self.gamma
        first, last, final = self.gamma_schedule
        done = min(max((step - first) / max(last - first, 1), 0.0), 1.0)
        return 1.0 - float((1.0 - self.gamma) ** (1.0 - done) * (1.0 - final) ** done)

    def greatest_discount(self) -> float:
        """Steps of the whole schedule, whatever ``total_steps``."""
        return max(self.gamma, 0.0 if self.gamma_schedule is None else self.gamma_schedule[2])

    def end_of_block(self, step: int) -> int:
        """Up to which step an iteration trains that begins at ``step``."""
        return max(min(step + self.log_every, self.total_steps), step + 1)

    def env_seeds(self) -> list[int]:
        """Seeds of every environment, seed after seed, as they would be alone."""
        first = distributed.rank() * self.num_envs
        each = [seeds.env_seeds(seed, self.num_envs, first=first) for seed in self.seeds()]
        return [one for mine in each for one in mine]

    def streams(self, kind: Stream) -> list[int]:
        """Seeds of a generator for each of the seeds (:mod:`pyfastenv.runs.seeds`)."""
        number = (distributed.rank(),) if self.processes and kind != Stream.POLICY else ()
        return [seeds.stream(seed, kind, *number) for seed in self.seeds()]

    def options(self) -> Any:
        """The learner's settings: the options of the same names, and those with other names."""
        names = [field.name for field in fields(self.options_type)]
        found = {name: getattr(self, name) for name in names if hasattr(self, name)}
        if (rate := getattr(self, "learning_rate", None)) is not None:  # one for all networks
            found |= {"policy_learning_rate": rate, "critic_learning_rate": rate}
        found |= {"bfloat16": self.amp, "num_threads": self.torch_threads}
        for name in ("policy_factory", "critic_factory"):
            found[name] = self.factory(name)
        return self.options_type(**found)


@dataclass(kw_only=True)
class NormalizingConfig(OffPolicyConfig):
    """Options of algorithms whose networks act in the pool, and may see normalised numbers."""

    num_steps: int = field(default=1, metadata=at_least(1))
    """Steps of each environment between copies of the policy into the pool."""
    normalize_obs: bool = False
    """Observations are normalised by their running mean and standard deviation."""
    obs_clip: float = field(default=10.0, metadata=at_least(0))
    """Bound of normalised observations; 0: none."""

    @property
    def obs_bound(self) -> float | None:
        return self.obs_clip if self.normalize_obs else None
