"""The environments of a run: those it trains in, by its options."""

from __future__ import annotations

from typing import Any

import pyfastenv
from pyfastenv.runs.config import RunConfig
from pyfastenv.tasks.language.find import find_task
from pyfastenv.vector.vector_env import FastVectorEnv


def make_training_envs(config: RunConfig, num_envs: int, **defaults: Any) -> FastVectorEnv:
    """The environments that a run trains in.

    Args:
        config: The run's options.
        num_envs: How many.
        **defaults: The environments' own arguments where ``config.env_kwargs`` has no other.

    Raises:
        ValueError: They would show pixels, from which no algorithm here learns.
    """
    if config.env_kwargs.get("pixels") is not None:
        raise ValueError("pixels: no algorithm here learns from pictures yet; expected None")
    return pyfastenv.make_vec(
        config.env_id,
        num_envs,
        num_threads=config.num_threads,
        engine=config.engine,
        autoreset_mode="SameStep",
        infos=find_task(config.env_id) is not None,  # what sums an episode up is among them
        **{**defaults, **config.env_kwargs},
    )
