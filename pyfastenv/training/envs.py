"""The environments of a run: those it trains in, by its options."""

from __future__ import annotations

import pyfastenv
from pyfastenv.runs.config import RunConfig
from pyfastenv.tasks.language.find import find_task
from pyfastenv.vector.vector_env import FastVectorEnv


def make_training_envs(config: RunConfig, num_envs: int) -> FastVectorEnv:
    """The environments that a run trains in.

    Args:
        config: The run's options.
        num_envs: How many.

    Raises:
        ValueError: They would show pixels to an algorithm that learns from numbers, or the reverse.
    """
    if (pixels := config.env_kwargs.get("pixels")) is None and config.learns_from_pixels:
        raise ValueError(
            f"pixels: {config.algorithm} learns from pictures; expected their size, "
            "--env.pixels.height 84 --env.pixels.width 84 say, got None"
        )
    if pixels is not None and not config.learns_from_pixels:
        raise ValueError(
            f"pixels: {config.algorithm} learns from numbers; expected None (drqv2 learns from "
            f"pictures), got {pixels!r}"
        )
    return pyfastenv.make_vec(
        config.env_id,
        num_envs,
        num_threads=config.num_threads,
        engine=config.engine,
        autoreset_mode="SameStep",
        infos=find_task(config.env_id) is not None,  # what sums an episode up is among them
        **{**config.env_defaults(), **config.env_kwargs},
    )
