"""Planners as a policy of environments: to be evaluated, filmed and recorded as others are."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pyfastenv.planning.planner import Planner
from pyfastenv.vector.vector_env import FastVectorEnv


class PlannerPolicy:
    """A policy that plans: every environment has a plan of its own, from its own snapshot.

    It goes where trained policies go: ``evaluate``, films, Minari (``minari.episodes``).

    Args:
        planner: On :class:`EnvRollouts`; it is copied for each environment, with the seeds
            ``planner.seed``, ``planner.seed + 1``, ….
        envs: Which are acted in: made like the rollouts', but others.
    """

    def __init__(self, planner: Planner, envs: FastVectorEnv):
        self._envs = envs
        self._planners = [copy.copy(planner) for _ in range(envs.num_envs)]
        for number, each in enumerate(self._planners):
            each.seed = planner.seed + number
        self.reset()

    def reset(self, env_ids: ArrayLike | None = None) -> None:
        """Forgets plans of episodes that are over.

        Args:
            env_ids: Whose; None: all, and the random streams begin anew.
        """
        if env_ids is None:
            for planner in self._planners:
                planner.reset(seed=planner.seed)
            return
        for env_id in np.asarray(env_ids):
            self._planners[env_id].reset()

    def act(self, obs: Any) -> NDArray[Any]:
        """Actions for the environments in their present states.

        Args:
            obs: Not read: planners see whole states.

        Returns:
            (num_envs, action_size) of the action space's dtype.
        """
        states = self._envs.get_state()
        actions = [each.act(row) for each, row in zip(self._planners, states, strict=True)]
        return np.asarray(actions, self._envs.single_action_space.dtype)
