"""Pushes: what a blow does to a robot's velocities."""

from __future__ import annotations

from typing import Any

import mujoco
import numpy as np
from numpy.typing import ArrayLike, NDArray

from pyfastenv.vector.rendering import leaving_base


def pushed(data: Any, velocity: ArrayLike) -> NDArray[np.float64]:
    """Velocities after a blow at the centre of mass of the robot's first body.

    The impulse p is the robot's mass times ``velocity``: one that nothing holds moves by that much
    more, as a whole. Joints answer as they must: M Δqvel = Jᵀ p.

    Args:
        data: ``mjData`` after ``mj_forward``; it is not changed.
        velocity: ``(2,)`` [m/s], forward and to the left of the body's heading.

    Returns:
        ``(nv,)``, what ``qvel`` is afterwards.
    """
    model, body = data.model, pushed_body(data)
    ahead = data.xmat[body].reshape(3, 3)[:2, 0]
    size = np.linalg.norm(ahead)
    ahead = ahead / size if size > 0.1 else np.array([1.0, 0.0])  # the body stands upright
    forward, left = np.asarray(velocity, np.float64)
    impulse = np.zeros(3)
    impulse[:2] = forward * ahead + left * np.array([-ahead[1], ahead[0]])
    impulse *= model.body_subtreemass[body]
    given, change = np.zeros(model.nv), np.zeros((1, model.nv))
    mujoco.mj_applyFT(model, data, impulse, np.zeros(3), data.xipos[body], body, given)
    mujoco.mj_solveM(model, data, change, given[None])
    qvel: NDArray[np.float64] = data.qvel + change[0]
    return qvel


def pushed_body(data: Any) -> int:
    """The first body of a robot that may leave; of one that cannot, the heaviest that moves."""
    base, model = leaving_base(data), data.model
    if base is not None:
        return base
    return int(np.argmax(np.where(model.body_weldid > 0, model.body_mass, -1.0)))
