"""The mirror: MuJoCo's own model and data in the state of one environment of a batch."""

from __future__ import annotations

import mujoco
import numpy as np
from numpy.typing import NDArray

from pyfastenv.vector.rendering import load_state
from pyfastenv.vector.vector_env import FastVectorEnv

_BEFORE_VELOCITY = mujoco.mjtState.mjSTATE_TIME | mujoco.mjtState.mjSTATE_QPOS


class Mirror:
    """Shows an environment's physics to whoever works with MuJoCo's package.

    Args:
        envs: Environments of MuJoCo.

    Attributes:
        model: An ``mjModel`` of its own, with the numbers of the environment loaded last.
        data: Its ``mjData``, after ``mj_forward``.
    """

    def __init__(self, envs: FastVectorEnv):
        self._envs = envs
        self.model = envs.new_model()
        self.data = mujoco.MjData(self.model)

    def load(self, env_id: int) -> None:
        """Takes an environment's state, which stays as it is."""
        load_state(self.model, self.data, *self._envs._state(env_id))

    def set_velocity(self, env_id: int, qvel: NDArray[np.float64]) -> None:
        """Gives an environment other velocities, ``(nv,)``; all else goes on as it was."""
        row, _ = self._envs._core.row(env_id)
        state = self._envs.get_state([env_id])
        begin = state.tobytes().index(row.tobytes())  # a snapshot has the row's bytes
        at = mujoco.mj_stateSize(self.model, _BEFORE_VELOCITY)
        row[at : at + self.model.nv] = qvel
        state[0, begin : begin + row.nbytes] = row.view(np.uint8)
        self._envs.set_state(state, [env_id])
