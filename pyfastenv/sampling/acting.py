"""Policies that act in Python between steps, planners say, and what comes of their steps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, runtime_checkable

import torch
from numpy.typing import ArrayLike, NDArray

from pyfastenv.sampling.device_sampling import DeviceSampler
from pyfastenv.sampling.rollouts import RolloutBatch
from pyfastenv.vector.vector_env import FastVectorEnv


@runtime_checkable
class ActingPolicy(Protocol):
    """A policy that acts in Python between steps."""

    def reset(self, env_ids: ArrayLike | None = None) -> None:
        """New episodes begin in these environments; None: in all of them."""

    def act(self, obs: NDArray[Any]) -> NDArray[Any]:
        """Actions (num_envs, …) for all environments, of observations (num_envs, obs_size)."""


def acting_steps(
    envs: FastVectorEnv, policy: ActingPolicy, dtype: torch.dtype = torch.float32
) -> Callable[[], RolloutBatch]:
    """Lets a policy act in environments that have been reset, one step at a time.

    Args:
        envs: Autoreset mode SameStep.
        policy: It is reset, and hears of every episode's end.
        dtype: Of observations and rewards.

    Returns:
        A function that takes a step and gives its batch, which its next call overwrites.
    """
    sampler = DeviceSampler(envs, 1, torch.device("cpu"), dtype=dtype)

    def act(obs: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        actions = torch.from_numpy(policy.act(obs.numpy()))
        return actions, torch.zeros(len(actions)), actions

    def step() -> RolloutBatch:
        batch = sampler.collect(act)
        if len(batch.episodes):
            policy.reset(batch.episodes.env_ids.numpy())
        return batch

    policy.reset()
    return step
