"""Deep deterministic policy gradient (Lillicrap et al. 2016, arXiv:1509.02971).

It is TD3 (:mod:`pyfastenv.algorithms.td3.spec`, which see) with one critic, a policy step for each
of the critic's and no noise on the target policy's actions. Its defaults are for Pendulum.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from pyfastenv.algorithms.td3 import spec as td3
from pyfastenv.runs.options import POSITIVE, WIDTHS, at_least
from pyfastenv.training.entry_points import entry_points


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


train, load_policy = entry_points(lambda: DDPG)
