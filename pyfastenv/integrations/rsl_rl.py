"""rsl_rl: the environments as its VecEnv, with tensors. Needs rsl-rl-lib >= 5.5.

rsl_rl takes the row that a step returns as the next step's observation and never resets
environments itself, so SAME_STEP is the mode. Observations are a TensorDict of groups, which its
``obs_groups`` names: one group, ``"policy"``, or the entries of a Dict space. It bootstraps a
truncated episode (``extras["time_outs"]``) from the value of the observation before.
"""

from __future__ import annotations

from typing import Any

import torch
from gymnasium.spaces import Box
from gymnasium.vector import AutoresetMode
from rsl_rl.env import VecEnv
from tensordict import TensorDict
from torch import Tensor

from pyfastenv.integrations import require
from pyfastenv.sampling.staging import TorchVectorEnv
from pyfastenv.tasks.language.task import Task
from pyfastenv.tasks.pool.make import make_vec
from pyfastenv.vector.vector_env import FastVectorEnv


def make_rsl_rl(
    env_id: str | type[Task],
    num_envs: int,
    *,
    device: str | torch.device = "cpu",
    seed: int | None = None,
    clip_actions: bool = True,
    **kwargs: Any,
) -> FastRslRlEnv:
    """Makes environments for ``rsl_rl.runners.OnPolicyRunner``.

    Args:
        env_id: As for :func:`pyfastenv.make_vec`: ``"HalfCheetah-v5"``, an own task …
        num_envs: How many.
        device: Where tensors are: the CPU or a CUDA device.
        seed: For the first episodes: environment i gets ``seed + i``.
        clip_actions: As for :func:`to_rsl_rl`.
        **kwargs: See :class:`pyfastenv.FastVectorEnv`; the autoreset mode is chosen here, and
            observations are float32 and gymnasium's info entries left out unless asked for.
    """
    kwargs = {"obs_dtype": "float32", "infos": False, **kwargs}
    envs = make_vec(env_id, num_envs, autoreset_mode=AutoresetMode.SAME_STEP, **kwargs)
    return to_rsl_rl(envs, device, seed=seed, clip_actions=clip_actions)


def to_rsl_rl(
    envs: FastVectorEnv,
    device: str | torch.device = "cpu",
    *,
    seed: int | None = None,
    clip_actions: bool = True,
) -> FastRslRlEnv:
    """The environments as rsl_rl's, whose ``close`` closes them.

    Args:
        envs: The environments.
        device: Where tensors are: the CPU or a CUDA device.
        seed: For the first episodes.
        clip_actions: Clip actions to the action space, as rsl_rl's Gaussians do not.

    Raises:
        ValueError: Their autoreset mode is not SAME_STEP, episodes have no limit, or actions are
            not continuous.
    """
    require(envs, AutoresetMode.SAME_STEP, "rsl_rl", takes_dicts=True)
    if not isinstance(envs.single_action_space, Box):
        raise ValueError(
            f"rsl_rl needs continuous actions, {envs.env_id} has {envs.single_action_space}"
        )
    if envs.max_episode_steps is None:
        raise ValueError("rsl_rl needs environments with max_episode_steps, got None")
    return FastRslRlEnv(TorchVectorEnv(envs, device), seed, clip_actions)


class FastRslRlEnv(VecEnv):
    """Use :func:`make_rsl_rl` or :func:`to_rsl_rl`.

    ``episode_length_buf``, ``(num_envs,)`` int64, counts every episode's steps. Whoever sets it, as
    ``learn(init_at_random_ep_len=True)`` does, has the episodes under way end that much earlier.
    """

    def __init__(self, envs: TorchVectorEnv, seed: int | None, clip_actions: bool):
        self._envs = envs
        self._seed = seed
        self._latest: TensorDict | None = None
        space = envs.single_action_space
        assert isinstance(space, Box)
        bounds = (torch.from_numpy(bound).to(envs.device) for bound in (space.low, space.high))
        self._bounds = tuple(bounds) if clip_actions else None
        limit = envs.envs.max_episode_steps
        assert limit is not None
        self.num_envs = envs.num_envs
        self.num_actions = space.shape[0]
        self.max_episode_length = limit
        self.episode_length_buf = torch.zeros(envs.num_envs, dtype=torch.int64, device=envs.device)
        self.device = envs.device
        self.cfg = {"env_id": envs.envs.env_id, "num_envs": envs.num_envs}

    def get_observations(self) -> TensorDict:
        """The latest observations; the first call resets the environments.

        Returns:
            Groups of ``(num_envs, …)`` float32.
        """
        if self._latest is None:
            self._latest = self._groups(self._envs.reset(seed=self._seed)[0])
        return self._latest

    def step(self, actions: Tensor) -> tuple[TensorDict, Tensor, Tensor, dict[str, Any]]:
        """Steps every environment once.

        Args:
            actions: ``(num_envs, num_actions)`` float32 on ``device``.

        Returns:
            Observations as :meth:`get_observations`, rewards ``(num_envs,)`` float32, dones
            ``(num_envs,)`` int64, and extras with ``"time_outs"``, ``(num_envs,)`` bool: episodes
            that the limit ended and nothing else.
        """
        self.get_observations()  # has the first episodes begin
        if self._bounds is not None:
            actions = actions.clamp(*self._bounds)
        obs, rewards, terminations, truncations, _ = self._envs.step(actions.contiguous())
        dones = terminations | truncations
        self.episode_length_buf.add_(1)
        early = (self.episode_length_buf >= self.max_episode_length) & ~dones
        if early.any():  # somebody has set their lengths
            dones = dones | early
            obs, _ = self._envs.reset(options={"reset_mask": early.cpu().numpy()})
        self.episode_length_buf.masked_fill_(dones, 0)
        self._latest = self._groups(obs)
        extras = {"time_outs": dones & ~terminations}
        return self._latest, rewards.float(), dones.long(), extras

    def close(self) -> None:
        """Closes the environments."""
        self._envs.close()

    def _groups(self, obs: Any) -> TensorDict:
        groups = obs if isinstance(obs, dict) else {"policy": obs}
        return TensorDict(groups, batch_size=[self.num_envs], device=self.device)
