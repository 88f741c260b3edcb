"""Buttons are pressed, from above or from the front, with or without a wall before them."""

import mujoco
import numpy as np

from pyfastenv.suites.metaworld.base import LONG_TAIL, Fixture, both, see, single, tolerance
from pyfastenv.tasks.language.fields import memory


class Button(Fixture):
    """The base of the five.

    Attributes:
        axis: Along which it is pressed.
        offset: From its body to what is touched [m].
        reach: The hand's distance that is near enough [m].
        pressed: The button's, from where it is pressed [m].
    """

    fixture, hand_start = "box", single(0.0, 0.4, 0.2)
    axis, offset, reach, pressed = 1, (0.0, -0.193, 0.0), 0.01, 0.02
    way = memory()

    def start(self, data, numbers):
        self.bend(data, 0.0)
        self.find_button(data)

    def find_button(self, data):
        self.goal[:] = data.site("hole").xpos
        self.way = abs(self.goal[self.axis] - data.site("buttonStart").xpos[self.axis])

    def see_things(self, data):
        button = data.body("button")
        see(self.now, 0, button.xpos + self.offset, button.xquat)

    def judge(self, data, action):
        thing, tcp = self.seen[4:7], self.tcp(data)
        gap = np.linalg.norm(thing - tcp)
        margin = np.linalg.norm(thing - self.tcp_start)
        near = tolerance(gap, (0.0, self.reach), margin, LONG_TAIL)
        left = abs(self.goal[self.axis] - thing[self.axis])
        in_place = tolerance(left, (0.0, 0.005), self.way, LONG_TAIL)
        reward = self.worth(gap, near, in_place)
        return reward, left <= self.pressed, gap <= 0.05, self.seen[3] > 0, near, in_place, left

    def worth(self, gap, near, in_place):
        reward = 2.0 * both(max(self.seen[3], 0.0), near)
        return reward + 8.0 * in_place if gap <= 0.05 else reward


class ButtonPress(Button):
    """Press a button at the front."""

    file = "sawyer_button_press"
    low, high, reach = (-0.1, 0.85, 0.115), (0.1, 0.9, 0.115), 0.05


class ButtonPressWall(Button):
    """Press a button behind a wall."""

    file, pressed = "sawyer_button_press_wall", 0.03
    low, high = (-0.05, 0.85, 0.1149), (0.05, 0.9, 0.1151)

    def worth(self, gap, near, in_place):
        if gap > 0.07:
            return 2.0 * both((1.0 - self.seen[3]) / 2.0, near)
        return 2.0 + 2.0 * (1.0 + self.seen[3]) + 4.0 * in_place**2


class ButtonPressTopdownWall(Button):
    """Press a button behind a wall from above."""

    file, axis, offset = "sawyer_button_press_topdown_wall", 2, (0.0, 0.0, 0.193)
    low, high, pressed = (-0.1, 0.8, 0.115), (0.1, 0.9, 0.115), 0.024

    def start(self, data, numbers):
        mujoco.mj_forward(self.model, data)
        self.find_button(data)

    def grip_of(self, opening):
        return max(opening, 0.0)

    def worth(self, gap, near, in_place):
        reward = 5.0 * both(self.grip_of(self.seen[3]), near)
        return reward + 5.0 * in_place if gap <= 0.03 else reward


class ButtonPressTopdown(ButtonPressTopdownWall):
    """Press a button from above."""

    file = "sawyer_button_press_topdown"

    def grip_of(self, opening):
        return 1.0 - opening


class CoffeeButton(Button):
    """Press the button of a coffee machine, before which a mug stands."""

    file, fixture, reach = "sawyer_coffee", "coffee_machine", 0.05
    hand_start = (0.0, 0.4, 0.2)
    low, high = (-0.1, 0.8, -0.001), (0.1, 0.9, 0.001)
    goal_low = (-0.1 - 0.001, 0.8 + (-0.22 + 0.03), -0.001 + 0.299)
    goal_high = (0.1 + 0.001, 0.9 + (-0.22 + 0.03), 0.001 + 0.301)

    def start(self, data, numbers):
        data.qpos[:3] = numbers + np.array((0.0, -0.22, 0.0))
        data.qvel[9:15] = 0.0
        mujoco.mj_forward(self.model, data)
        self.goal[:] = numbers + np.array((0.0, -0.22, 0.3)) + np.array((0.0, 0.03, 0.0))
        self.way = 0.03

    def see_things(self, data):
        see(self.now, 0, data.site("buttonStart").xpos, np.array((1.0, 0.0, 0.0, 0.0)))
