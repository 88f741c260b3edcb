"""Drawers and windows slide open and closed."""

import mujoco
import numpy as np

from pyfastenv.suites.dm_control.rewards import GAUSSIAN
from pyfastenv.suites.metaworld.base import LONG_TAIL, Fixture, both, see, single, tolerance, within
from pyfastenv.tasks.language.fields import memory


class DrawerOpen(Fixture):
    """Pull a drawer open."""

    file, fixture = "sawyer_drawer", "drawer"
    low, high = (-0.1, 0.9, 0.0), (0.1, 0.9, 0.0)
    hand_start = single(0.0, 0.6, 0.2)

    def start(self, data, numbers):
        self.goal[:] = numbers + np.array((0.0, -0.16 - 0.2, 0.09))

    def see_things(self, data):
        drawer = data.body("drawer_link")
        see(self.now, 0, drawer.xpos + np.array((0.0, -0.16, 0.0)), drawer.xquat)

    def judge(self, data, action):
        handle, scale = self.seen[4:7], np.array((3.0, 3.0, 1.0))
        left = np.linalg.norm(handle - self.goal)
        opened = tolerance(left, (0.0, 0.02), 0.2, LONG_TAIL)
        start = self.goal + np.array((0.0, 0.2, 0.0))
        gap = np.linalg.norm((handle - self.seen[:3]) * scale)
        margin = np.linalg.norm((start - self.tcp_start) * scale)
        near = tolerance(gap, (0.0, 0.01), margin, LONG_TAIL)
        reward = (near + opened) * 5.0
        is_near = np.linalg.norm(handle - self.seen[:3]) <= 0.03
        return reward, left <= 0.03, is_near, self.seen[3] > 0, near, opened, left


class DrawerClose(DrawerOpen):
    """Push a drawer shut."""

    def start(self, data, numbers):
        self.goal[:] = numbers + np.array((0.0, -0.16, 0.09))
        data.qpos[9] = -0.15
        mujoco.mj_forward(self.model, data)
        self.thing_start[:] = data.body("drawer_link").xpos + np.array((0.0, -0.16, 0.05))

    def see_things(self, data):
        place = data.body("drawer_link").xpos + np.array((0.0, -0.16, 0.05))
        see(self.now, 0, place, np.zeros(4))

    def judge(self, data, action):
        handle = self.seen[4:7]
        left = np.linalg.norm(handle - self.goal)
        in_place = within(left, 0.05, np.linalg.norm(self.thing_start - self.goal))
        gap = np.linalg.norm(handle - self.tcp(data))
        start = np.linalg.norm(self.thing_start - self.tcp_start)
        grasp = both(within(gap, 0.005, start, GAUSSIAN), min(max(0.0, action[3]), 1.0))
        success = left <= 0.05 + 0.015
        reward = 10.0 * (1.0 if success else both(grasp, in_place))
        return reward, success, gap <= 0.01, 1.0, grasp, in_place, left


class WindowOpen(Fixture):
    """Slide a window open."""

    file, fixture = "sawyer_window_horizontal", "window"
    low, high = (-0.1, 0.7, 0.16), (0.1, 0.9, 0.16)
    hand_start = single(0.0, 0.4, 0.2)
    goal_way, handle_way, slid, sigmoid = 0.2, 0.0, 0.0, LONG_TAIL
    way = memory()

    def start(self, data, numbers):
        # the handle's place is that of the hand's way: MetaWorld computes none anew
        self.thing_start[:] = self.handle(data) + np.array((self.handle_way, 0.0, 0.0))
        self.goal[:] = numbers + np.array((self.goal_way, 0.0, 0.0))
        data.joint("window_slide").qpos[0] = self.slid
        self.way = abs(self.first(numbers) - self.goal[0])

    def first(self, numbers):
        """Where it begins, in x [m]."""
        return numbers[0]

    def handle(self, data):
        return data.site("handleOpenStart").xpos

    def see_things(self, data):
        see(self.now, 0, self.handle(data), np.zeros(4))

    def judge(self, data, action):
        handle = self.handle(data)
        left = abs(handle[0] - self.goal[0])
        in_place = within(left, 0.05, self.way)
        gap = np.linalg.norm(handle - self.tcp(data))
        start = np.linalg.norm(self.thing_start - self.tcp_start)
        near = within(gap, 0.02, start, self.sigmoid)
        reward = 10.0 * both(near, in_place)
        return reward, left <= 0.05, gap <= 0.05, 1.0, near, in_place, left


class WindowClose(WindowOpen):
    """Slide a window shut."""

    low, high = (0.0, 0.75, 0.2), (0.0, 0.9, 0.2)
    goal_way, handle_way, slid, sigmoid = 0.0, 0.2, 0.2, GAUSSIAN

    def handle(self, data):
        return data.site("handleCloseStart").xpos

    def first(self, numbers):
        return self.thing_start[0]
