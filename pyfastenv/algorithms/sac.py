"""Soft actor-critic (Haarnoja et al. 2018, arXiv:1812.05905) with a learned temperature.

The pool samples (:func:`pyfastenv.rollout`, one policy per seed), torch learns from replay pools.
``num_seeds`` independent trainings run side by side, each as it would alone. The iteration is in
:mod:`pyfastenv.training.sac_training`, the gradient step in :mod:`pyfastenv.learners.sac_learner`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from pyfastenv.nn.policy_spec import PolicySpec
from pyfastenv.nn.spans import span
from pyfastenv.training.callbacks import Callback, StepFunction
from pyfastenv.training.loop import RunResult, run
from pyfastenv.training.sac_training import SACConfig, SACTraining

# minibatches drawn at once: one gather for all of them, and never much memory
_DRAW = 64


# measured here (docs/results/mbpo.md): small tasks are learned long before the defaults begin
_SMALL = {"total_steps": 10_000, "learning_starts": 1_000, "eval_every": 1_000}
PRESETS: dict[str, dict[str, Any]] = {"InvertedPendulum": _SMALL, "Pendulum": _SMALL}


@dataclass(kw_only=True)
class Config(SACConfig):
    """Soft actor-critic."""

    algorithm: ClassVar[str] = "sac"
    presets = PRESETS

    env_id: str = "Hopper-v5"
    """The environment; `pyfastenv envs` lists them."""
    total_steps: int = 1_000_000
    """Environment steps to train for, of each seed."""
    eval_every: int = 10_000
    """Environment steps between evaluations; 0: only at the end."""
    checkpoint_every: int = 50_000
    """Environment steps between checkpoints; 0: only at the end."""
    num_steps: int = 1
    """Steps of each environment between copies of the policy into the pool."""

    def check(self) -> None:
        super().check()
        self._check_at_least(1, "num_steps")


def train(config: Config, callbacks: Sequence[Callback | StepFunction] = ()) -> RunResult:
    """Trains; see :func:`pyfastenv.training.loop.run` for what comes out and what is raised.

    Raises:
        ValueError: The environment's actions are not continuous.
    """
    return run(SAC, config, callbacks)


def load_policy(config: Config, state: dict[str, Any]) -> PolicySpec:
    """The policies of a checkpoint, one per seed, without chance."""
    sac = SAC(config, restore=state)
    sac.envs.close()
    return sac.eval_policy()


class SAC(SACTraining[Config]):
    """The algorithm; :func:`train` drives it.

    Args:
        config: The options.
        restore: A :meth:`state_dict`, to continue from it.

    Raises:
        ValueError: The environment's actions are not continuous.
    """

    def __init__(self, config: Config, restore: dict[str, Any] | None = None):
        super().__init__(config)
        if restore is not None:
            self.load_state_dict(restore)

    def _step(self, metrics: dict[str, float]) -> None:
        self._advance(self.config.num_steps)

    def _learn(self, num_updates: int) -> None:
        """Gradient steps on independent minibatches; the metrics are the last one's."""
        size = self.config.batch_size
        for first in range(0, num_updates, _DRAW):
            count = min(_DRAW, num_updates - first)
            with span("transfer"):
                rows = self.env_pool.draw(self.streams.uniform(count, size))  # (count, K, B, width)
                noise = self.streams.normal(count, *self.learner.noise_shape(size)).movedim(1, 0)
            with span("update"):
                self.learner.run(rows, noise, self._metrics)
