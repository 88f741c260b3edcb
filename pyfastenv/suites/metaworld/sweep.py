"""Things are swept over the table: off it, into a hole, into a goal."""

import numpy as np

from pyfastenv.suites.metaworld.base import LONG_TAIL, Sawyer, both, orientation, see, tolerance
from pyfastenv.tasks.language.fields import command

_HOLE = np.array((0.0, 0.84, 0.02))
_EDGE = np.array((0.5, 0.65, 0.01))


class Sweep(Sawyer):
    """Sweep a block off the table.

    Attributes:
        more: How much farther than the block's radius a pad is that grips [m].
        xz: The hand's distance that is near enough, in x and z [m].
    """

    file = "sawyer_sweep_v3"
    rand_vec = command(3, low=-1.0, high=2.0)
    low: tuple[float, ...] = (-0.1, 0.6, 0.02)
    high: tuple[float, ...] = (0.1, 0.7, 0.02)
    goal_low, goal_high = (0.49, 0.6, 0.0), (0.51, 0.7, 0.02)
    more, xz = 0.01, 0.005

    def start(self, data, numbers):
        self.goal[:] = _EDGE
        self.goal[1] = numbers[1]
        self.put_down(data, numbers, 0.02)

    def target(self):
        return self.goal

    def judge(self, data, action):
        block, target = self.seen[4:7], self.target()
        left = np.linalg.norm(block - target)
        gap = np.linalg.norm(block - self.tcp(data))
        margin = np.linalg.norm(self.thing_start - target)
        in_place = tolerance(left, (0.0, 0.05), margin, LONG_TAIL)
        grasp = self.close_grip(data, block, 0.02, self.more, self.xz)
        reward = 10.0 if left < 0.05 else 2.0 * grasp + 6.0 * both(grasp, in_place)
        touched = self.seen[3] > 0 and self.touching(data, self.model.geom("objGeom").id)
        return reward, left <= 0.05, gap <= 0.03, touched, grasp, in_place, left


class SweepInto(Sweep):
    """Sweep a block into a hole."""

    file = "sawyer_table_with_hole"
    rand_vec = command(6, low=-1.0, high=2.0)
    low, high = (-0.1, 0.6, 0.02, -0.001, 0.8399, 0.0199), (0.1, 0.7, 0.02, 0.001, 0.8401, 0.0201)
    more, xz = 0.005, 0.01

    def fits(self, numbers):
        return np.linalg.norm(numbers[:2] - _HOLE[:2]) >= 0.15

    def start(self, data, numbers):
        self.goal[:] = _HOLE
        self.put_down(data, numbers, data.body("obj").xpos[2])

    def see_things(self, data):
        see(self.now, 0, data.body("obj").xpos, orientation(data.geom("objGeom").xmat))

    def target(self):
        return np.array((self.goal[0], self.goal[1], self.seen[6]))


class Soccer(Sawyer):
    """Kick a ball into the goal."""

    file = "sawyer_soccer"
    model_fields = ("body_pos",)
    low, high = (-0.1, 0.6, 0.03, -0.1, 0.8, 0.0), (0.1, 0.7, 0.03, 0.1, 0.9, 0.0)
    apart = 0.15

    def arrange(self, numbers):
        self.model.body("goal_whole").pos[:] = numbers[3:]

    def start(self, data, numbers):
        self.goal[:] = numbers[3:]
        self.put_down(data, numbers, 0.03)

    def see_things(self, data):
        ball = data.body("soccer_ball")
        see(self.now, 0, ball.xpos, orientation(ball.xmat))

    def judge(self, data, action):
        ball, scale = self.seen[4:7], np.array((3.0, 1.0, 1.0))
        gap = np.linalg.norm(ball - self.tcp(data))
        left = np.linalg.norm((ball - self.goal) * scale)
        margin = np.linalg.norm((ball - self.thing_start) * scale)
        in_place = tolerance(left, (0.0, 0.07), margin, LONG_TAIL)
        line = self.goal[1] - 0.1
        if ball[1] > line and abs(ball[0] - self.goal[0]) > 0.1:
            in_place = np.clip(in_place - 2.0 * ((ball[1] - line) / (1.0 - line)), 0.0, 1.0)
        grasp = self.close_grip(data, ball, 0.013, 0.01, 0.005)
        reward = 10.0 if left < 0.07 else 3.0 * grasp + 6.5 * in_place
        to_goal = np.linalg.norm(ball - self.goal)
        grasped = self.is_lifted(0.02) and self.touching(data, self.model.geom("objGeom").id)
        return reward, to_goal <= 0.07, gap <= 0.03, grasped, grasp, in_place, to_goal
