"""Physics without an environment: rollouts and batches of a user's own MuJoCo models.

    from pyfastenv import physics
    states, sensordata = physics.rollout(model, data, initial_state, control)
    batch = physics.Batch(model, nsim=1024)

take the arguments of ``mujoco.rollout.rollout`` and ``mujoco.batch.Batch`` and give their results
bit for bit.
"""

from __future__ import annotations

from pyfastenv.physics.batch import Batch
from pyfastenv.physics.errors import RolloutError, SimulationError
from pyfastenv.physics.open_loop import (
    Rollout,
    engine,
    lanes_refusal,
    rollout,
    shutdown_persistent_pool,
)

__all__ = [
    "Batch",
    "Rollout",
    "RolloutError",
    "SimulationError",
    "engine",
    "lanes_refusal",
    "rollout",
    "shutdown_persistent_pool",
]
