"""rl_games: the environments as an ``IVecEnv`` of tensors. Needs rl_games >= 1.6.

rl_games takes the row that a step returns as the next observation, so SAME_STEP is the mode. What
it bootstraps a truncated episode from (``value_bootstrap``) is the value before its last step,
which it knows by ``infos["time_outs"]``.
"""

from __future__ import annotations

from typing import Any

import gymnasium
import torch
from gymnasium.vector import AutoresetMode
from numpy.typing import NDArray
from rl_games.common import env_configurations, vecenv
from rl_games.common.ivecenv import IVecEnv
from torch import Tensor

from pyfastenv.integrations import require, tiled_picture
from pyfastenv.sampling.staging import TorchVectorEnv
from pyfastenv.tasks.language.task import Task
from pyfastenv.tasks.pool.make import make_vec
from pyfastenv.vector.vector_env import FastVectorEnv

VECENV_TYPE = "PYFASTENV"


def register_rl_games(env_id: str, **kwargs: Any) -> str:
    """Registers environments with rl_games; the name returned is the configuration's ``env_name``.

    The configuration's ``num_actors`` is the number of environments, and its ``env_config`` adds to
    the arguments here and overrides them. Players make one environment, or ``num_actors`` with
    ``use_vecenv: True``.

    Args:
        env_id: As for :func:`pyfastenv.make_vec`: ``"HalfCheetah-v5"``, an own task …
        **kwargs: See :func:`make_rl_games`.

    Returns:
        ``"pyfastenv/" + env_id``.
    """
    name = f"pyfastenv/{env_id.removeprefix('pyfastenv/')}"

    def create(num_actors: int = 1, **env_config: Any) -> IVecEnv:
        return make_rl_games(env_id, num_actors, **{**kwargs, **env_config})

    env_configurations.register(name, {"env_creator": create, "vecenv_type": VECENV_TYPE})
    vecenv.register(
        VECENV_TYPE,
        lambda config_name, num_actors, **env_config: env_configurations.configurations[
            config_name
        ]["env_creator"](num_actors, **env_config),
    )
    return name


def make_rl_games(
    env_id: str | type[Task],
    num_envs: int = 1,
    *,
    device: str | torch.device = "cpu",
    seed: int | None = None,
    **kwargs: Any,
) -> IVecEnv:
    """Makes environments; :func:`register_rl_games` has rl_games do so.

    Args:
        env_id: As for :func:`pyfastenv.make_vec`: ``"HalfCheetah-v5"``, an own task …
        num_envs: How many.
        device: Where tensors are: that of the training (the configuration's ``device``).
        seed: Environment i starts with ``seed + i``.
        **kwargs: See :class:`pyfastenv.FastVectorEnv`; the autoreset mode is chosen here, and
            observations are float32 and gymnasium's info entries left out unless asked for.

    Raises:
        ValueError: Another autoreset mode was asked for.
    """
    kwargs = {"obs_dtype": "float32", "infos": False, **kwargs}
    kwargs.setdefault("autoreset_mode", AutoresetMode.SAME_STEP)
    return to_rl_games(make_vec(env_id, num_envs, **kwargs), device, seed=seed)


def to_rl_games(
    envs: FastVectorEnv, device: str | torch.device = "cpu", *, seed: int | None = None
) -> IVecEnv:
    """The environments as an ``IVecEnv``, whose ``close`` closes them; arguments as above.

    Raises:
        ValueError: Their autoreset mode is not SAME_STEP.
    """
    require(envs, AutoresetMode.SAME_STEP, "rl_games")
    return FastRLGamesEnv(TorchVectorEnv(envs, device), seed)


class FastRLGamesEnv(IVecEnv):
    """Use :func:`register_rl_games` or :func:`to_rl_games`."""

    def __init__(self, envs: TorchVectorEnv, seed: int | None):
        self.envs = envs
        self.observation_space = envs.single_observation_space
        self.action_space = envs.single_action_space
        self._discrete = isinstance(self.action_space, gymnasium.spaces.Discrete)
        self._seed = seed

    def reset(self) -> Tensor:
        """Starts all episodes; observations ``(num_envs, obs_size)`` float32."""
        obs: Tensor
        obs, _ = self.envs.reset(seed=self._seed)
        self._seed = None
        return obs

    def step(self, actions: Tensor) -> tuple[Tensor, Tensor, Tensor, dict[str, Any]]:
        """Observations, rewards (float32), dones and infos with ``"time_outs"``, all tensors."""
        if self._discrete:
            actions = actions.flatten().long()
        obs, rewards, terminations, truncations, infos = self.envs.step(actions.contiguous())
        infos["time_outs"] = truncations & ~terminations
        return obs, rewards.float(), terminations | truncations, infos

    def seed(self, seed: int) -> None:
        """For the next reset."""
        self._seed = seed

    def get_env_info(self) -> dict[str, Any]:
        """The spaces of one environment."""
        return {"observation_space": self.observation_space, "action_space": self.action_space}

    def render(self, mode: str = "rgb_array") -> NDArray[Any] | None:
        """One picture of all environments; None without ``render_mode="rgb_array"``."""
        return tiled_picture(self.envs.envs)

    def close(self) -> None:
        """Closes the environments."""
        self.envs.close()
