"""Steps with uniformly random actions, before a policy is worth following."""

from __future__ import annotations

from collections.abc import Callable

import gymnasium
import numpy as np
import torch
from torch import Tensor

from pyfastenv.sampling.buffers import Transitions
from pyfastenv.vector.vector_env import FastVectorEnv


class ActionBox:
    """A box of actions and its place in the learner's numbers.

    Args:
        space: The environment's single action space.

    Attributes:
        low, high: ``(A,)`` float32 bounds.
        center, half: ``(A,)``: the middle, and half the width.
    """

    def __init__(self, space: gymnasium.spaces.Box):
        self.low = torch.from_numpy(space.low.ravel())
        self.high = torch.from_numpy(space.high.ravel())
        self.center = (self.high + self.low) / 2.0
        self.half = (self.high - self.low) / 2.0

    def __len__(self) -> int:
        return len(self.low)

    def to_unit(self, actions: Tensor) -> Tensor:
        """The environment's actions ``(…, A)``, CPU, in [-1, 1]."""
        return (actions - self.center) / self.half


def continuous_actions(envs: FastVectorEnv, algorithm: str) -> ActionBox:
    """The environments' action box.

    Raises:
        ValueError: The actions are discrete. The environments have been closed.
    """
    space = envs.single_action_space
    if isinstance(space, gymnasium.spaces.Box):
        return ActionBox(space)
    name = (
        envs.spec.id.removeprefix("pyfastenv/") if envs.spec is not None else "these environments"
    )
    envs.close()
    raise ValueError(
        f"env_id: {algorithm} needs continuous actions, and those of {name} are {space}; try ppo"
    )


def explore(
    envs: FastVectorEnv,
    obs: Tensor,
    box: ActionBox,
    num_steps: int,
    draw: Callable[[], Tensor],
) -> Transitions:
    """Steps of uniform actions, which no policy of the pool draws: through ``step``.

    Args:
        envs: Autoreset mode SameStep.
        obs: ``(N, obs_size)`` where they stand.
        box: Of actions.
        num_steps: Of each environment.
        draw: Gives ``(N, A)`` numbers in [0, 1).

    Returns:
        ``num_steps * N`` transitions, step by step.
    """
    steps = []
    for _ in range(num_steps):
        actions = box.low + (box.high - box.low) * draw()
        after, rewards, terminated, truncated, infos = envs.flat_step(actions.numpy())
        next_obs = after.copy()
        ended = terminated | truncated
        if ended.any():
            next_obs[ended] = np.stack(infos["final_obs"][ended])
        tensors = map(torch.from_numpy, (rewards, next_obs, terminated))
        steps.append(Transitions(obs, actions, *tensors))
        obs = torch.from_numpy(after)
    return Transitions(*map(torch.cat, zip(*steps, strict=True)))
