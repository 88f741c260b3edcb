"""Deep deterministic policy gradient (Lillicrap et al. 2016, arXiv:1509.02971).

It is TD3 (:mod:`pyfastenv.algorithms.td3.spec`, which see) with one critic, a policy step for each
of the critic's and no noise on the target policy's actions. Its defaults are for Pendulum.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from pyfastenv.algorithms.td3 import spec as td3
from pyfastenv.nn.policy_spec import PolicySpec
from pyfastenv.nn.torch_policy import TorchPolicy
from pyfastenv.runs.options import POSITIVE, WIDTHS, at_least
from pyfastenv.runs.restored import greedy_policies
from pyfastenv.training.callbacks import Callback, StepFunction
from pyfastenv.training.loop import RunResult, run


@dataclass(kw_only=True)
class Config(td3.Config):
    """Deep deterministic policy gradient."""

    algorithm: ClassVar[str] = "ddpg"
    presets = {}

    num_critics: int = field(default=1, metadata=at_least(1))
    policy_delay: int = field(default=1, metadata=at_least(1))
    target_noise: float = field(default=0.0, metadata=at_least(0))
    env_id: str = "Pendulum-v1"
    num_envs: int = 8
    total_steps: int = 20_000
    eval_every: int = 5_000
    log_every: int = 1
    num_steps: int = field(default=8, metadata=at_least(1))
    learning_starts: int = 1_000
    batch_size: int = 64
    policy_learning_rate: float = field(default=1e-3, metadata=POSITIVE)
    critic_learning_rate: float = field(default=1e-3, metadata=POSITIVE)
    hidden_sizes: tuple[int, ...] = field(default=(64, 64), metadata=WIDTHS)
    torch_threads: int = 1


class DDPG(td3.TD3):
    """The algorithm; :func:`train` drives it."""


def train(config: Config, callbacks: Sequence[Callback | StepFunction] = ()) -> RunResult:
    """Trains; see :func:`pyfastenv.training.loop.run` for what comes out and what is raised.

    Raises:
        ValueError: The environment's actions are not continuous.
    """
    return run(DDPG, config, callbacks)


def load_policy(config: Config, state: dict[str, Any]) -> PolicySpec | list[TorchPolicy]:
    """The policies of a checkpoint, one per seed, without noise."""
    return greedy_policies(DDPG, config, state)
