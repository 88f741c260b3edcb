"""A plate slides into a goal and out of it, ahead and sideways."""

import mujoco
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


class PlateSlide(Sawyer):
    """Slide a plate into the goal."""

    file = "sawyer_plate_slide"
    model_fields = ("body_pos",)
    low, high = (0.0, 0.6, 0.0, -0.1, 0.85, 0.0), (0.0, 0.6, 0.0, 0.1, 0.9, 0.0)
    hand_start, slid = single(0.0, 0.6, 0.2), (0.0, 0.0)

    def arrange(self, numbers):
        self.model.body("puck_goal").pos[:] = numbers[3:]

    def start(self, data, numbers):
        self.thing_start[:], self.goal[:] = numbers[:3], numbers[3:]
        data.qpos[9:11] = self.slid
        mujoco.mj_forward(self.model, data)

    def see_things(self, data):
        plate = data.geom("puck")
        see(self.now, 0, plate.xpos, orientation(plate.xmat))

    def judge(self, data, action):
        plate = self.seen[4:7]
        left = np.linalg.norm(plate - self.goal)
        gap = np.linalg.norm(self.tcp(data) - plate)
        to_goal = np.linalg.norm(self.thing_start - self.goal) - self.inner
        to_plate = np.linalg.norm(self.tcp_start - self.thing_start) - self.inner
        in_place = tolerance(left, (0.0, 0.05), to_goal, LONG_TAIL)
        near = tolerance(gap, (0.0, 0.05), to_plate, LONG_TAIL)
        reward = 10.0 if left < 0.05 else self.worth(data, gap, near, in_place)
        return reward, left <= 0.07, gap <= 0.03, 0.0, near, in_place, left

    inner = 0.0

    def worth(self, data, gap, near, in_place):
        return 8.0 * both(near, in_place)


class PlateSlideBack(PlateSlide):
    """Slide a plate back out of the goal."""

    low, high = (0.0, 0.85, 0.0, -0.1, 0.6, 0.015), (0.0, 0.85, 0.0, 0.1, 0.6, 0.015)
    slid, inner = (0.0, 0.15), 0.05

    def arrange(self, numbers):
        pass

    def worth(self, data, gap, near, in_place):
        is_down = self.tcp(data)[2] <= 0.03 and gap < 0.07
        return 2.0 + 7.0 * in_place if is_down else 1.5 * near


class PlateSlideSide(PlateSlideBack):
    """Slide a plate sideways into the goal."""

    file, slid = "sawyer_plate_slide_sideway", (0.0, 0.0)
    low, high = (0.0, 0.6, 0.0, -0.3, 0.54, 0.0), (0.0, 0.6, 0.0, -0.25, 0.66, 0.0)


class PlateSlideBackSide(PlateSlideBack):
    """Slide a plate sideways out of the goal."""

    file, slid = "sawyer_plate_slide_sideway", (-0.15, 0.0)
    low, high = (-0.25, 0.6, 0.0, -0.05, 0.6, 0.015), (-0.25, 0.6, 0.0, 0.15, 0.6, 0.015)

    def arrange(self, numbers):
        self.model.body("puck_goal").pos[:] = numbers[:3]
