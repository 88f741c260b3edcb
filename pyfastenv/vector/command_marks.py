"""A commanded velocity drawn above a robot: blue what it is told, green what it does."""

from __future__ import annotations

from itertools import pairwise

import mujoco
import numpy as np
from numpy.typing import NDArray

_TOLD, _DONE = (0.1, 0.35, 1.0, 1.0), (0.1, 0.8, 0.2, 1.0)
_THICK, _ARC, _PIECE = 0.04, 0.6, 0.2  # shares of the robot's size, and an angle [rad]
_ABOVE, _BELOW = 0.35, 0.12  # the robot's highest part, and the command; likewise
_LONGEST = np.pi  # of arcs [rad]


class CommandMarks:
    """Lines that show a velocity and, by arcs, a turning rate, as geoms of a scene.

    1 m/s is 0.7 times as long as the robot reaches from its centre of mass, and an arc is how far
    it turns in a second, at most half a turn.

    Args:
        data: Of the robot, in its default pose; of what is drawn later.
        base: The robot's first body.
    """

    def __init__(self, data: mujoco.MjData, base: int):
        self._data, self._base = data, base
        model = data.model
        parts = model.body_rootid[model.geom_bodyid] == model.body_rootid[base]
        apart = data.geom_xpos[parts] - data.subtree_com[base]
        reach = np.linalg.norm(apart, axis=1) + model.geom_rbound[parts]
        self._size = 0.7 * float(reach.max(initial=0.1))
        self._height = float(apart[:, 2].max(initial=0.0)) + _ABOVE * self._size

    def add_to(self, scene: mujoco.MjvScene, told: NDArray[np.float64]) -> None:
        """Adds the command ``(3,)`` [m/s, m/s, rad/s] and the motion, where there is room."""
        data, base = self._data, self._base
        velocity = np.zeros(6)  # turning and moving, along the world's axes
        mujoco.mj_objectVelocity(
            data.model, data, int(mujoco.mjtObj.mjOBJ_XBODY), base, velocity, 0
        )
        heading = np.arctan2(data.xmat[base, 3], data.xmat[base, 0])
        cos, sin = np.cos(heading), np.sin(heading)
        ahead = cos * told[0] - sin * told[1], sin * told[0] + cos * told[1]
        above = data.subtree_com[base] + (0.0, 0.0, self._height)
        below = above - (0.0, 0.0, _BELOW * self._size)
        self._mark(scene, above, heading, np.array(ahead), told[2], _TOLD)
        self._mark(scene, below, heading, velocity[3:5], velocity[2], _DONE)

    def _mark(
        self,
        scene: mujoco.MjvScene,
        place: NDArray[np.float64],
        heading: float,
        velocity: NDArray[np.float64],
        turning: float,
        colour: tuple[float, float, float, float],
    ) -> None:
        line = place + self._size * np.append(velocity, 0.0)
        turned = float(np.clip(turning, -_LONGEST, _LONGEST))
        angles = heading + np.linspace(0.0, turned, 2 + int(abs(turned) / _PIECE))
        ring = np.stack([np.cos(angles), np.sin(angles), np.zeros_like(angles)], axis=1)
        arc = place + _ARC * self._size * ring
        ends = [(place, line), *pairwise(arc)]
        for start, end in ends:
            self._add(scene, start, end, _THICK, colour)
        for tip in (line, arc[-1]):
            self._add(scene, tip, tip, 2.0 * _THICK, colour)

    def _add(
        self,
        scene: mujoco.MjvScene,
        start: NDArray[np.float64],
        end: NDArray[np.float64],
        thick: float,
        colour: tuple[float, float, float, float],
    ) -> None:
        if scene.ngeom == scene.maxgeom:
            return
        geom, capsule = scene.geoms[scene.ngeom], int(mujoco.mjtGeom.mjGEOM_CAPSULE)
        mujoco.mjv_initGeom(
            geom, capsule, np.zeros(3), np.zeros(3), np.zeros(9), np.array(colour, np.float32)
        )
        mujoco.mjv_connector(geom, capsule, thick * self._size, start, end)
        scene.ngeom += 1
