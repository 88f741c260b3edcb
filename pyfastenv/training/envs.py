"""The environments of a run: those it trains in, by its options."""

from __future__ import annotations

from typing import Any

from torch import Tensor

import pyfastenv
from pyfastenv.errors import EnvError
from pyfastenv.training.config import RunConfig
from pyfastenv.vector.vector_env import FastVectorEnv


def make_training_envs(config: RunConfig, num_envs: int, **defaults: Any) -> FastVectorEnv:
    """The environments that a run trains in.

    Args:
        config: The run's options.
        num_envs: How many.
        **defaults: The environments' own arguments where ``config.env_kwargs`` has no other.
    """
    return pyfastenv.make_vec(
        config.env_id,
        num_envs,
        num_threads=config.num_threads,
        engine=config.engine,
        autoreset_mode="SameStep",
        infos=False,
        **{**defaults, **config.env_kwargs},
    )


def check_observations(obs: Tensor, num_envs: int) -> None:
    """Nothing can be learned from observations that are not finite.

    Args:
        obs: ``(T * num_envs, obs_size)``, step by step.
        num_envs: How many.

    Raises:
        EnvError: One is not; it names the environment.
    """
    if not (finite := obs.isfinite()).all():
        at, component = (~finite).nonzero()[0].tolist()
        message = f"component {component} of its observation is NaN or infinite"
        raise EnvError([at % num_envs], [message])
