"""Other people's trainers on pyfastenv's environments: one file per consumer.

Each file imports its library, so import the file you need; none of the libraries is a dependency.
Adapters that make environments choose the autoreset mode themselves; those that are given
environments refuse a wrong one. Nothing here steps physics or learns.
"""

from __future__ import annotations

from gymnasium.vector import AutoresetMode

from pyfastenv.vector.vector_env import FastVectorEnv


def require_autoreset(
    envs: FastVectorEnv, modes: AutoresetMode | tuple[AutoresetMode, ...], consumer: str
) -> None:
    """Refuses environments whose autoreset mode ``consumer`` would misread.

    Args:
        envs: The environments.
        modes: The mode, or the modes, that the consumer understands.
        consumer: Its name, e.g. ``"Stable-Baselines3"``.

    Raises:
        ValueError: Another mode; the message names the right ones.
    """
    modes = (modes,) if isinstance(modes, AutoresetMode) else modes
    if envs.autoreset_mode not in modes:
        right = " or ".join(f"autoreset_mode={mode.value!r}" for mode in modes)
        raise ValueError(
            f"{consumer} needs environments made with {right}, "
            f"got autoreset_mode={envs.autoreset_mode.value!r}"
        )


def require_flat(envs: FastVectorEnv, consumer: str) -> None:
    """Refuses a Dict of observations, which ``consumer`` (or our adapter to it) does not take.

    Raises:
        ValueError: The observation space is a Dict.
    """
    if envs.obs_views is not None:
        raise ValueError(
            f"{consumer} needs flat observations: make the environments with "
            f"observation_dict=False, got {envs.single_observation_space}"
        )
