"""Pucks are pushed, picked up and placed, with or without a wall before the goal."""

import numpy as np

from pyfastenv.suites.metaworld.base import (
    LONG_TAIL,
    Sawyer,
    both,
    orientation,
    see,
    single,
    tolerance,
)
from pyfastenv.suites.metaworld.reach import Reach


class Push(Reach):
    """Push a puck to the goal."""

    file = "sawyer_push_v3"
    low, high = (-0.1, 0.6, 0.02, -0.1, 0.8, 0.01), (0.1, 0.7, 0.02, 0.1, 0.9, 0.02)
    radius = 0.05  # of the goal [m]

    def start(self, data, numbers):
        height = data.geom("objGeom").xpos[2]
        self.goal[:2], self.goal[2] = numbers[3:5], height
        self.put_down(data, numbers, height)

    def judge(self, data, action):
        puck = self.seen[4:7]
        gap = np.linalg.norm(puck - self.tcp(data))
        left = np.linalg.norm(puck - self.goal)
        margin = np.linalg.norm(self.thing_start - self.goal)
        in_place = tolerance(left, (0.0, 0.05), margin, LONG_TAIL)
        grasp = self.grasp(data, action)
        reward = 10.0 if left < 0.05 else self.worth(gap, left, margin, grasp, in_place)
        grasped = self.is_lifted(0.02) and self.touching(data, self.model.geom("objGeom").id)
        return reward, left <= self.radius, gap <= 0.03, grasped, grasp, in_place, left

    def grasp(self, data, action):
        """How well the gripper holds the puck."""
        return self.grip(data, action, self.seen[4:7], 0.015, 0.05, 0.005)

    def worth(self, gap, left, margin, grasp, in_place):
        """The reward of a step that has not reached the goal."""
        if gap < 0.02 and self.seen[3] > 0:
            return 2.0 * grasp + (1.0 + 2.0 * grasp + 5.0 * in_place)
        return 2.0 * grasp


class PushWall(Push):
    """Push a puck around a wall."""

    file, radius = "sawyer_push_wall_v3", 0.07
    low, high = (-0.05, 0.6, 0.015, -0.05, 0.85, 0.01), (0.05, 0.65, 0.015, 0.05, 0.9, 0.02)

    def see_things(self, data):
        puck = data.geom("objGeom")
        see(self.now, 0, puck.xpos, orientation(puck.xmat))

    def midway(self, middle, scale):
        """How near the puck is to a place on its way."""
        gap = np.linalg.norm((self.seen[4:7] - middle) * scale)
        margin = np.linalg.norm((self.thing_start - middle) * scale)
        return tolerance(gap, (0.0, 0.05), margin, LONG_TAIL)

    def worth(self, gap, left, margin, grasp, in_place):
        if gap >= 0.02 or self.seen[3] <= 0:
            return 2.0 * grasp
        if self.seen[5] > 0.75:
            return 2.0 * grasp + 1.0 + 4.0 + 3.0 * in_place
        middle = np.array((-0.05, 0.77, self.seen[6]))
        return 2.0 * grasp + 1.0 + 4.0 * self.midway(middle, np.array((3.0, 1.0, 1.0)))


class PushBack(PushWall):
    """Push a puck towards the robot."""

    file, hand_start = "sawyer_push_back_v3", single(0.0, 0.6, 0.2)
    low, high = (-0.1, 0.8, 0.02, -0.1, 0.6, 0.0199), (0.1, 0.85, 0.02, 0.1, 0.7, 0.0201)

    def grasp(self, data, action):
        return self.close_grip(data, self.seen[4:7], 0.007, 0.003, 0.01)

    def worth(self, gap, left, margin, grasp, in_place):
        reward = both(grasp, in_place)
        if gap < 0.01 and 0 < self.seen[3] < 0.55 and margin - left > 0.01:
            reward += 1.0 + 5.0 * in_place
        return reward


class PickPlace(Push):
    """Pick a puck up and place it at the goal, which may be in the air."""

    file, radius = "sawyer_pick_place_v3", 0.07
    low, high, start = Reach.low, Reach.high, Reach.start

    def cage(self, y, side, thing, radius, pad):
        # MetaWorld's margin is of where the pads are now, not of where they were
        gap = side * (y - thing[1])
        return tolerance(gap, (radius, pad), abs(abs(gap) - pad), LONG_TAIL)

    def worth(self, gap, left, margin, grasp, in_place):
        reward = both(grasp, in_place)
        if gap < 0.02 and self.is_lifted(0.01):
            reward += 1.0 + 5.0 * in_place
        return reward


class PickPlaceWall(PushWall):
    """Pick a puck up and place it behind a wall."""

    file = "sawyer_pick_place_wall_v3"
    low, high = (-0.05, 0.6, 0.015, -0.05, 0.85, 0.05), (0.05, 0.65, 0.015, 0.05, 0.9, 0.3)
    start = Reach.start

    def grasp(self, data, action):
        _, gripped = self.caging(data, action, self.seen[4:7], 0.015, 0.05, 0.005, 1.0)
        return gripped

    def worth(self, gap, left, margin, grasp, in_place):
        middle = np.array((self.goal[0], 0.77, 0.25))
        near = self.midway(middle, np.array((1.0, 1.0, 3.0)))
        held = both(grasp, near)
        if gap >= 0.02 or not self.is_lifted(0.015):
            return held
        if self.seen[5] > 0.75:
            return held + 1.0 + 4.0 + 3.0 * in_place
        return held + 1.0 + 4.0 * near


class HandInsert(Push):
    """Bring a block into a hole in the table."""

    file, hand_start = "sawyer_table_with_hole", single(0.0, 0.6, 0.2)
    low, high = (-0.1, 0.6, 0.05, -0.04, 0.8, -0.0201), (0.1, 0.7, 0.05, 0.04, 0.88, -0.0199)
    hand_low, see_things = (-0.5, 0.4, -0.15), Sawyer.see_things

    def start(self, data, numbers):
        self.goal[:] = numbers[3:]
        self.put_down(data, numbers, 0.05)

    def worth(self, gap, left, margin, grasp, in_place):
        reward = both(grasp, in_place)
        if gap < 0.02 and self.seen[3] > 0:
            reward += 1.0 + 7.0 * in_place
        return reward
