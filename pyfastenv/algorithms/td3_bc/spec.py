"""TD3+BC: offline learning from datasets (Fujimoto and Gu 2021, arXiv:2106.06860).

It is TD3 (:mod:`pyfastenv.algorithms.td3.spec`, which see) whose policy is also drawn towards the
actions of the data, and which takes no step in an environment but to be evaluated. With ``alpha``
0 it is behaviour cloning. A step is a gradient step here.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import torch
from torch import Tensor

from pyfastenv.algorithms.sac.spec import target_update
from pyfastenv.algorithms.td3 import spec as td3
from pyfastenv.algorithms.td3_bc.accelerated import WrittenOut
from pyfastenv.runs.errors import CheckpointError
from pyfastenv.runs.options import (
    BOOKKEEPING,
    FINITE_AT_LEAST_0,
    MAY_DIFFER,
    at_least,
    check_fixed,
)
from pyfastenv.sampling.buffers import ReplayPool
from pyfastenv.sampling.datasets import read_datasets
from pyfastenv.sampling.exploration import continuous_actions
from pyfastenv.sampling.n_step import NStep
from pyfastenv.training.actor_critic import Batch
from pyfastenv.training.changes import as_written
from pyfastenv.training.entry_points import entry_points
from pyfastenv.training.envs import make_training_envs
from pyfastenv.training.loop import episode_metrics

# ---- options -------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Options(td3.TD3Options):
    """Settings of a learner."""

    alpha: float = 2.5


@dataclass(kw_only=True)
class Config(td3.Config):
    """TD3 with behaviour cloning, from datasets."""

    algorithm: ClassVar[str] = "td3_bc"
    presets = {}
    options_type = Options
    COLLECTING: ClassVar[tuple[str, ...]] = (
        *("num_envs", "num_steps", "noise", "learning_starts", "buffer_size", "updates_per_step"),
        "her_goals",
    )
    """TD3's options that only matter where environments are stepped; their defaults stay."""

    dataset: tuple[str, ...] = field(default=(), metadata=MAY_DIFFER)
    """Minari's datasets, all of whose steps are learned from: their ids, or folders."""
    alpha: float = field(default=2.5, metadata=FINITE_AT_LEAST_0)
    """How much the critic's values count beside the data's actions; 0: behaviour cloning."""
    total_steps: int = 1_000_000
    """Gradient steps."""
    eval_every: int = field(default=5_000, metadata=at_least(0) | BOOKKEEPING)
    """Gradient steps between evaluations; 0: only at the end."""
    learning_starts: int = field(default=0, metadata=at_least(0))
    """Nothing is explored."""
    buffer_size: int = field(default=1, metadata=at_least(1))
    """The data are remembered, and all of them."""
    normalize_obs: bool = True
    """Observations are normalised by the data's mean and standard deviation."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.dataset = tuple(map(_absolute, self.dataset))

    def check(self) -> None:
        super().check()
        ours = [option for option in fields(self) if option.name in self.COLLECTING]
        why = f"{self.algorithm} steps no environment"
        check_fixed(self, *((option.name, option.default, why) for option in ours))
        with closing(make_training_envs(self, 1)) as envs:
            continuous_actions(envs, self.algorithm)
            if not self.dataset:
                raise ValueError("dataset: expected Minari's ids or folders of datasets, got none")
            read_datasets(self.dataset, envs)


def _absolute(name: str) -> str:
    """A folder's whole path, for whoever resumes elsewhere; an id as it is."""
    folder = Path(name).expanduser()
    return str(folder.resolve()) if folder.is_dir() else name


# ---- what is learned -----------------------------------------------------------------------------


def imitation_loss(networks: td3.Networks, batch: Batch) -> Tensor:
    """Squared distances of the policy's actions to the data's, both in [-1, 1], ``(K,)``."""
    errors: Tensor = networks.actor(batch.obs).tanh() - batch.actions
    return errors.square().mean((1, 2))


def policy_loss(networks: td3.Networks, batch: Batch) -> Tensor:
    """Imitation, less the first critic's values of the policy's actions, ``(K,)``.

    Values count ``alpha`` over their mean size (equation 5; the size is that of the policy's
    actions' values, as in the authors' program), so that rewards of any size weigh alike.
    """
    assert isinstance(networks.options, Options)
    actions = td3.act(networks, networks.actor, batch.obs)
    values = td3.critic_values(networks, networks.critic, batch.critic_obs, actions)[:, 0]
    scale = networks.options.alpha / values.abs().mean(1).detach()
    return imitation_loss(networks, batch) - scale * values.mean(1)


class Functions(NamedTuple):
    """The parts of learning that a subclass may replace, as TD3's."""

    critic_loss: Callable[[td3.Networks, Batch, Tensor, float | Tensor], Tensor] = td3.critic_loss
    policy_loss: Callable[[td3.Networks, Batch], Tensor] = policy_loss
    target_update: Callable[[Tensor, Tensor, float], None] = target_update
    imitation_loss: Callable[[td3.Networks, Batch], Tensor] = imitation_loss


# ---- the learner ---------------------------------------------------------------------------------


@as_written
class TD3BCLearner(td3.TD3Learner):
    """TD3's, whose critics rest while the policy only imitates."""

    accelerators = (WrittenOut,)

    def update(self, rows: Tensor, noise: Tensor, metrics: Tensor | None = None) -> None:
        """TD3's gradient step; with ``alpha`` 0 one of the policy alone."""
        if self.options.alpha > 0.0:
            super().update(rows, noise, metrics)
            return
        with self.mixed_precision():
            loss = self.functions.imitation_loss(self.as_networks(), Batch.of(rows, self.layout))
        self.flat_policy.backward(loss.sum())
        self.average(self.flat_policy)
        self.policy_optimizer.step()
        self.refresh()
        if metrics is not None:
            metrics.copy_(torch.stack((torch.zeros_like(loss), loss)).detach())


# ---- the training --------------------------------------------------------------------------------


class TD3BC(td3.TD3):
    """The algorithm; :func:`train` drives it.

    Args:
        config: The options. The datasets are read when they are first needed: a policy is loaded
            without them.
        restore: A :meth:`state_dict`, to continue from it.

    Raises:
        ValueError: The environment's actions are not continuous.
    """

    PHASES = ("update",)
    functions = Functions()
    learner_type = TD3BCLearner
    config: Config

    def __init__(self, config: Config, restore: dict[str, Any] | None = None):
        super().__init__(config)
        self._digest = ""  # of the data, once they have been read
        self._recorded: dict[str, float] = {}
        self.parts = [name for name in self.parts if name not in ("env_pool", "episode_ends")]
        if restore is not None:
            self.load_state_dict(restore)

    def _read(self) -> None:
        """Fills the replay memory, which all seeds share, and takes the observations' moments."""
        if self._digest:
            return
        new, returns, lengths = read_datasets(self.config.dataset, self.envs)
        unit = self.collector.actions.to_unit(new.actions).clamp(-1.0, 1.0)
        rows = self.layout.pack(new.obs, unit, new.next_obs, new.rewards, new.terminated)
        self.env_pool = ReplayPool(1, len(rows), self.layout.width, self.device)
        self.env_pool.add(rows[None].to(self.device))
        if self.n_step is not None:
            self.n_step = NStep(self.env_pool, self.layout, 1, self.config.n_step)
            self.n_step.add(new.ended[None])
        self.normalizer.update(new.obs[:, None].expand(self.config.num_seeds, -1, -1, -1))
        self._digest = hashlib.sha256(rows.numpy().tobytes()).hexdigest()
        self._recorded = episode_metrics(returns, lengths, {})

    def iterate(self) -> dict[str, float]:
        """Takes ``log_every`` gradient steps; ``"train/return"`` is the data's mean."""
        self._read()
        return self._recorded | super().iterate()

    def step(self, metrics: dict[str, float]) -> None:
        """All gradient steps of an iteration."""
        end = self.config.end_of_block(self.global_step)
        self.schedule()
        self.improve(end - self.global_step)
        self.global_step = end

    def state_dict(self) -> dict[str, Any]:
        """Everything that the training goes on from, but for the data."""
        self._read()
        return {**super().state_dict(), "data": self._digest}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restores :meth:`state_dict`.

        Raises:
            CheckpointError: The datasets are others now, or a part is missing.
        """
        self._read()
        if state.get("data") != self._digest:
            raise CheckpointError("dataset: the data are not those that the run has learned from")
        super().load_state_dict(state)


train, load_policy = entry_points(lambda: TD3BC)
