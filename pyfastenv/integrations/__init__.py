"""Other people's trainers on pyfastenv's environments: one file per consumer.

Each file imports its library, so import the file you need; none of the libraries is a dependency.
Adapters that make environments choose the autoreset mode themselves; those that are given
environments refuse a wrong one. Nothing here steps physics or learns.
"""

from __future__ import annotations

from typing import Any

from gymnasium.vector import AutoresetMode
from numpy.typing import NDArray

from pyfastenv.vector.vector_env import FastVectorEnv


def require(
    envs: FastVectorEnv, mode: AutoresetMode, consumer: str, *, takes_dicts: bool = False
) -> None:
    """Refuses environments that ``consumer`` would misread.

    Args:
        envs: The environments.
        mode: The autoreset mode that the consumer understands.
        consumer: Its name, e.g. ``"Stable-Baselines3"``.
        takes_dicts: Whether it, by our adapter, takes a Dict of observations.

    Raises:
        ValueError: Another mode, or a Dict; the message names what is right.
    """
    if envs.autoreset_mode != mode:
        raise ValueError(
            f"{consumer} needs environments made with autoreset_mode={mode.value!r}, "
            f"got autoreset_mode={envs.autoreset_mode.value!r}"
        )
    if envs.pixels is not None and not takes_dicts:
        raise ValueError(
            f"{consumer} needs observations of numbers: make the environments without pixels, got "
            f"{envs.single_observation_space}"
        )
    if envs.obs_views is not None and not takes_dicts:
        raise ValueError(
            f"{consumer} needs flat observations: make the environments with "
            f"observation_dict=False, got {envs.single_observation_space}"
        )


def tiled_picture(envs: FastVectorEnv) -> NDArray[Any] | None:
    """One picture of all environments; None without ``render_mode="rgb_array"``."""
    picture = None if envs.render_mode is None else envs.render(tiled=True)
    assert not isinstance(picture, tuple)
    return picture
