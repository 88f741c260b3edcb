"""Costs of plans by environments: the reward that is learned is the one that is planned for."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode
from numpy.typing import NDArray

from pyfastenv.vector.vector_env import FastVectorEnv

Array = NDArray[np.float64]


class EnvRollouts:
    """Rollouts of environments from a snapshot; a plan costs minus its mean reward per step.

    Any environment may be planned in: gymnasium's, a suite's, an own task, compiled. An episode
    that ends in a rollout earns nothing from there on. A snapshot has the environment's random
    stream, so an environment that draws numbers while it runs draws in the rollouts what it will
    draw: the planner knows its future noise.

    Args:
        envs: One environment per candidate: as many as the optimiser's ``num_rollouts``. They are
            overwritten; they and those that the snapshots are from are made alike (autoreset mode,
            ``max_episode_steps``, dtypes).

    Raises:
        ValueError: Discrete or unlimited actions, or autoreset is disabled.
    """

    def __init__(self, envs: FastVectorEnv):
        space = envs.single_action_space
        if not isinstance(space, gymnasium.spaces.Box) or not space.is_bounded():
            raise ValueError(f"envs: expected a Box of limited actions, got {space}")
        if envs.autoreset_mode == AutoresetMode.DISABLED:
            raise ValueError("envs: expected autoreset_mode SameStep or NextStep, got Disabled")
        self.low, self.high = space.low.astype(np.float64), space.high.astype(np.float64)
        self._envs, self._dtype = envs, space.dtype

    def costs(self, state: Any, controls: Array) -> Array:
        """Mean costs per step.

        Args:
            state: ``envs.get_state([i])[0]``, (state_bytes,) uint8.
            controls: (R, T, nu).

        Returns:
            (R,) float64.

        Raises:
            ValueError: Another number of candidates than of environments, or no snapshot of such
                environments.
            EnvError: Environments raised.
        """
        envs = self._envs
        if len(controls) != envs.num_envs:
            raise ValueError(
                f"envs: expected {len(controls)}, one per candidate (num_rollouts), "
                f"got {envs.num_envs}"
            )
        envs.set_state(np.repeat(np.asarray(state)[None], len(controls), 0))
        total, running = np.zeros(len(controls)), np.ones(len(controls), np.bool_)
        for actions in controls.astype(self._dtype).swapaxes(0, 1):
            _, rewards, terminations, truncations, _ = envs.flat_step(actions)
            total += np.where(running, rewards, 0.0)
            running &= ~(terminations | truncations)
            if not running.any():
                break
        costs: Array = -total / controls.shape[1]
        return costs
