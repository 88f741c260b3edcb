"""Physics without an environment: open-loop rollouts of a user's own MuJoCo models.

    from pyfastenv import physics
    states, sensordata = physics.rollout(model, data, initial_state, control)

takes the arguments of ``mujoco.rollout.rollout`` and returns its results bit for bit.
"""

from __future__ import annotations

from pyfastenv.physics.errors import RolloutError
from pyfastenv.physics.open_loop import (
    Rollout,
    engine,
    lanes_refusal,
    rollout,
    shutdown_persistent_pool,
)

__all__ = [
    "Rollout",
    "RolloutError",
    "engine",
    "lanes_refusal",
    "rollout",
    "shutdown_persistent_pool",
]
