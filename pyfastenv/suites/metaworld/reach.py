"""The hand reaches a goal, with or without a wall between."""

import numpy as np

from pyfastenv.suites.metaworld.base import LONG_TAIL, Sawyer, orientation, see, tolerance


class Reach(Sawyer):
    """Bring the hand to the goal."""

    file = "sawyer_reach_v3"
    low, high = (-0.1, 0.6, 0.02, -0.1, 0.8, 0.05), (0.1, 0.7, 0.02, 0.1, 0.9, 0.3)
    apart = 0.15

    def start(self, data, numbers):
        self.goal[:], self.thing_start[:] = numbers[3:], numbers[:3]
        self.put(data, numbers[:3])

    def see_things(self, data):
        see(self.now, 0, data.body("obj").xpos, orientation(data.geom("objGeom").xmat))

    def judge(self, data, action):
        gap = np.linalg.norm(self.tcp(data) - self.goal)
        margin = np.linalg.norm(self.hand_start - self.goal)
        in_place = tolerance(gap, (0.0, 0.05), margin, LONG_TAIL)
        return 10.0 * in_place, gap <= 0.05, gap, 1.0, gap, in_place, gap


class ReachWall(Reach):
    """Bring the hand to the goal, around a wall."""

    file = "sawyer_reach_wall_v3"
    low, high = (-0.05, 0.6, 0.015, -0.05, 0.85, 0.05), (0.05, 0.65, 0.015, 0.05, 0.9, 0.3)

    def judge(self, data, action):
        reward, success, _, _, _, in_place, gap = super().judge(data, action)
        return reward, success, 0.0, 0.0, 0.0, in_place, gap
