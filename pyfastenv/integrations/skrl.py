"""skrl: the environments as one of its wrappers, with tensors. Needs skrl >= 2.1, for PyTorch.

skrl takes the row that a step returns as the next step's observation and never resets several
environments itself, so SAME_STEP is the mode (NEXT_STEP would have it learn from transitions that
lead from one episode into another). As with every environment in skrl, what it bootstraps a
truncated episode from (``time_limit_bootstrap``, off-policy targets) is the next one's first
observation: skrl has no place for the last one, which is in ``infos["final_obs"]``.
"""

from __future__ import annotations

from typing import Any

import gymnasium
import torch
from gymnasium.vector import AutoresetMode
from numpy.typing import NDArray
from skrl import config
from skrl.envs.wrappers.torch import Wrapper
from torch import Tensor

from pyfastenv.integrations import require, tiled_picture
from pyfastenv.sampling.staging import TorchVectorEnv
from pyfastenv.tasks.language.task import Task
from pyfastenv.tasks.pool.make import make_vec
from pyfastenv.vector.vector_env import FastVectorEnv, Infos

Results = tuple[Tensor, Tensor, Tensor, Tensor, Infos]


def make_skrl(
    env_id: str | type[Task],
    num_envs: int = 1,
    *,
    device: str | torch.device = "cpu",
    **kwargs: Any,
) -> Wrapper:
    """Makes environments in place of ``wrap_env(gymnasium.make_vec(env_id, num_envs))``.

    Args:
        env_id: As for :func:`pyfastenv.make_vec`: ``"HalfCheetah-v5"``, an own task …
        num_envs: How many.
        device: Where tensors are: the CPU or a CUDA device.
        **kwargs: See :class:`pyfastenv.FastVectorEnv`; the autoreset mode is chosen here, and
            observations are float32 and gymnasium's info entries left out unless asked for.
    """
    kwargs = {"obs_dtype": "float32", "infos": False, **kwargs}
    envs = make_vec(env_id, num_envs, autoreset_mode=AutoresetMode.SAME_STEP, **kwargs)
    return to_skrl(envs, device)


def to_skrl(envs: FastVectorEnv, device: str | torch.device = "cpu") -> Wrapper:
    """The environments as a skrl wrapper, whose ``close`` closes them.

    Args:
        envs: The environments.
        device: Where tensors are: the CPU or a CUDA device.

    Raises:
        ValueError: Their autoreset mode is not SAME_STEP.
    """
    require(envs, AutoresetMode.SAME_STEP, "skrl")
    return FastSkrlEnv(TorchVectorEnv(envs, device))


class FastSkrlEnv(Wrapper):
    """Use :func:`to_skrl`.

    Results are those of ``wrap_env(envs, "gymnasium")``, bit for bit. The first reset takes the
    seed of ``skrl.utils.set_seed``; the later ones only return the latest observations.
    """

    def __init__(self, envs: TorchVectorEnv):
        super().__init__(envs)
        self._envs = envs
        self._device = envs.device
        self._latest: tuple[Tensor, Infos] | None = None

    @property
    def observation_space(self) -> gymnasium.Space[Any]:
        """One environment's observations."""
        return self._envs.single_observation_space

    @property
    def action_space(self) -> gymnasium.Space[Any]:
        """One environment's actions."""
        return self._envs.single_action_space

    def reset(self) -> tuple[Tensor, Infos]:
        """Observations ``(num_envs, obs_size)`` float32, and infos."""
        if self._latest is None:
            self._latest = self._envs.reset(seed=config.torch.key)
        return self._latest

    def step(self, actions: Tensor) -> Results:
        """Steps every environment once; rewards and flags are ``(num_envs, 1)``."""
        if isinstance(self.action_space, gymnasium.spaces.Discrete):
            actions = actions.flatten().long()
        obs, rewards, terminations, truncations, infos = self._envs.step(actions.contiguous())
        self._latest = obs, infos
        return (
            obs,
            rewards.float()[:, None],
            terminations[:, None],
            truncations[:, None],
            infos,
        )

    def state(self) -> None:
        """None: there is no state beyond observations."""

    def render(self, *args: Any, **kwargs: Any) -> NDArray[Any] | None:
        """One picture of all environments; None without ``render_mode="rgb_array"``."""
        return tiled_picture(self._envs.envs)

    def close(self) -> None:
        """Closes the environments."""
        self._envs.close()
