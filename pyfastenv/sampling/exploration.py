"""Exploring: steps with uniformly random actions, and noise for a policy's own."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

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

    def of_uniform(self, uniform: Tensor) -> Tensor:
        """Actions ``(N, A)`` of numbers ``(N, A)`` in [0, 1)."""
        return self.low + (self.high - self.low) * uniform


class ActionNumbers:
    """Discrete actions, which stand in the learner's rows as their numbers.

    Args:
        space: The environment's single action space.

    Attributes:
        number: How many there are.
    """

    def __init__(self, space: gymnasium.spaces.Discrete):
        self.number = int(space.n)

    def __len__(self) -> int:
        return 1

    def to_unit(self, actions: Tensor) -> Tensor:
        """The actions ``(…, 1)`` as they are."""
        return actions

    def of_uniform(self, uniform: Tensor) -> Tensor:
        """Actions ``(N,)`` int64 of numbers ``(N, 1)`` in [0, 1]."""
        return (uniform[:, 0] * self.number).long().clamp(max=self.number - 1)


def continuous_actions(envs: FastVectorEnv, algorithm: str) -> ActionBox:
    """The environments' action box.

    Raises:
        ValueError: The actions are discrete or have no bounds. The environments have been closed.
    """
    space = envs.single_action_space
    wanted, other = "continuous actions", "dqn or ppo"
    if isinstance(space, gymnasium.spaces.Box):
        if (np.isfinite(space.low) & np.isfinite(space.high) & (space.low < space.high)).all():
            return ActionBox(space)
        wanted = "a lower and a greater finite bound of each action (a motor's ctrlrange)"
        other = "ppo"
    raise _unfit(envs, algorithm, wanted, other)


def discrete_actions(envs: FastVectorEnv, algorithm: str) -> ActionNumbers:
    """The environments' discrete actions.

    Raises:
        ValueError: The actions are continuous. The environments have been closed.
    """
    space = envs.single_action_space
    if isinstance(space, gymnasium.spaces.Discrete):
        return ActionNumbers(space)
    raise _unfit(envs, algorithm, "discrete actions", "sac or ppo")


def _unfit(envs: FastVectorEnv, algorithm: str, wanted: str, other: str) -> ValueError:
    """Closes the environments; the error that says why."""
    name = (
        envs.spec.id.removeprefix("pyfastenv/") if envs.spec is not None else "these environments"
    )
    envs.close()
    return ValueError(
        f"env_id: {algorithm} needs {wanted}, and those of {name} are "
        f"{envs.single_action_space}; try {other}"
    )


def explore(
    envs: FastVectorEnv,
    kind: ActionBox | ActionNumbers,
    num_steps: int,
    draw: Callable[[], Tensor],
) -> Transitions:
    """Steps of uniform actions, which no policy of the pool draws: through ``step``.

    Args:
        envs: Autoreset mode SameStep; they go on from where they are.
        kind: Of actions.
        num_steps: Of each environment.
        draw: Gives ``(N, len(kind))`` numbers in [0, 1).

    Returns:
        ``num_steps * N`` transitions, step by step.
    """
    steps, obs = [], torch.from_numpy(envs.latest_obs().copy())
    for _ in range(num_steps):
        actions = kind.of_uniform(draw())
        after, rewards, terminated, truncated, infos = envs.flat_step(actions.numpy())
        next_obs = after.copy()
        ended = terminated | truncated
        if ended.any():
            next_obs[ended] = np.stack(infos["final_obs"][ended])
        # what step returns is its own again in a later one, with copy=False
        tensors = map(torch.from_numpy, (rewards.copy(), next_obs, terminated.copy(), ended))
        steps.append(Transitions(obs, actions.view(len(obs), -1), *tensors))
        obs = torch.from_numpy(after.copy())
    return Transitions(*map(torch.cat, zip(*steps, strict=True)))


class RepeatedNoise:
    """Noise that stays for a while, so that exploration goes somewhere (Kim et al. 2026,
    arXiv:2604.04539, section 4.3): for n steps with a probability proportional to 1 / n².

    Args:
        num_seeds: K, each with draws of its own.
        num_envs: Environments of each.
        action_size: Components.
        longest: No n is greater.
        device: Where the policies act.
    """

    def __init__(
        self,
        num_seeds: int,
        num_envs: int,
        action_size: int,
        longest: int,
        device: torch.device | str = "cpu",
    ):
        weights = 1.0 / torch.arange(1.0, longest + 1.0).square()
        self._chances = (weights.cumsum(0) / weights.sum())[:-1].to(device)  # of at most 1, 2, …
        self._noise = torch.zeros(num_seeds, num_envs, action_size, device=device)
        self._left = torch.zeros(num_seeds, num_envs, dtype=torch.int64, device=device)

    def each(self) -> list[Callable[[torch.Generator | None], Tensor]]:
        """For each seed what gives the noise of a step, ``(num_envs, A)``."""
        return [partial(self._next, k) for k in range(len(self._noise))]

    def _next(self, k: int, generator: torch.Generator | None) -> Tensor:
        noise, left = self._noise[k], self._left[k]
        fresh = torch.empty_like(noise).normal_(generator=generator)
        uniform = torch.empty(len(left), device=left.device).uniform_(generator=generator)
        due = left == 0
        left.copy_(torch.where(due, 1 + torch.bucketize(uniform, self._chances, right=True), left))
        noise.copy_(torch.where(due[:, None], fresh, noise))
        left.sub_(1)
        return noise.clone()

    def state_dict(self) -> dict[str, Any]:
        """Noise, and for how long it stays."""
        return {"noise": self._noise, "left": self._left}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restores :meth:`state_dict`."""
        self._noise.copy_(state["noise"])
        self._left.copy_(state["left"])
