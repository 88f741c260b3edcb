"""Handles are pressed and pulled, faucets, dials and levers turned."""

import mujoco
import numpy as np

from pyfastenv.suites.dm_control.rewards import GAUSSIAN
from pyfastenv.suites.metaworld.base import (
    LONG_TAIL,
    Fixture,
    both,
    orientation,
    see,
    single,
    tolerance,
    within,
)

_DEEP = (-0.5, 0.4, -0.15)


class HandlePress(Fixture):
    """Press a handle down."""

    file, fixture = "sawyer_handle_press", "box"
    low, high = (-0.1, 0.8, -0.001), (0.1, 0.9, 0.001)
    goal_low, goal_high = (-0.1, 0.55, 0.04), (0.1, 0.7, 0.08)

    def start(self, data, numbers):
        self.bend(data, -0.001)
        self.goal[:] = data.site("goalPress").xpos
        self.thing_start[:] = data.site("handleStart").xpos

    def see_things(self, data):
        see(self.now, 0, data.site("handleStart").xpos, np.zeros(4))

    def judge(self, data, action):
        handle = self.seen[4:7]
        left = abs(handle[2] - self.goal[2])
        in_place = within(left, 0.02, abs(self.thing_start[2] - self.goal[2]))
        gap = np.linalg.norm(handle - self.tcp(data))
        near = within(gap, 0.02, np.linalg.norm(self.thing_start - self.tcp_start))
        reward = 10.0 * (1.0 if left <= 0.02 else both(near, in_place))
        return reward, left <= 0.02, gap <= 0.05, 1.0, near, in_place, left


class HandlePressSide(HandlePress):
    """Press a handle down that stands sideways."""

    file = "sawyer_handle_press_sideways"
    low, high = (-0.35, 0.65, -0.001), (-0.25, 0.75, 0.001)
    goal_low, goal_high = Fixture.hand_low, Fixture.hand_high


class HandlePull(HandlePress):
    """Pull a handle up."""

    goal_high = (0.1, 0.7, 0.18)

    def start(self, data, numbers):
        self.bend(data, -0.1)
        self.goal[:] = data.site("goalPull").xpos
        self.thing_start[:] = numbers

    def see_things(self, data):
        see(self.now, 0, data.site("handleRight").xpos, np.zeros(4))

    def judge(self, data, action):
        left = abs(self.goal[2] - self.seen[6])
        margin = abs(self.goal[2] - self.thing_start[2])
        grasp = self.grip(data, action, self.seen[4:7], 0.022, 0.05, 0.01)
        return self.lift(data, left, margin, grasp, self.seen[5], 0.05)

    def lift(self, data, left, margin, grasp, height, radius):
        """Judges a step by how far the handle is from the goal."""
        in_place = tolerance(left, (0.0, 0.05), margin, LONG_TAIL)
        gap = np.linalg.norm(self.seen[4:7] - self.tcp(data))
        reward = both(grasp, in_place)
        if gap < 0.035 and self.seen[3] > 0 and height - 0.01 > self.thing_start[2]:
            reward += 1.0 + 5.0 * in_place
        if left < 0.05:
            reward = 10.0
        return reward, left <= radius, gap <= 0.05, self.is_lifted(0.03), grasp, in_place, left


class HandlePullSide(HandlePull):
    """Pull a handle up that stands sideways."""

    file = "sawyer_handle_press_sideways"
    low, high = (-0.35, 0.65, 0.0), (-0.25, 0.75, 0.0)
    goal_low, goal_high = Fixture.hand_low, Fixture.hand_high

    def start(self, data, numbers):
        super().start(data, numbers)
        self.thing_start[:] = data.site("handleCenter").xpos

    def see_things(self, data):
        see(self.now, 0, data.site("handleCenter").xpos, np.zeros(4))

    def judge(self, data, action):
        left = np.linalg.norm(self.seen[4:7] - self.goal)
        margin = np.linalg.norm(self.thing_start - self.goal)
        grasp = self.grip(data, action, self.seen[4:7], 0.032, 0.06, 0.01)
        return self.lift(data, left, margin, grasp, self.seen[6], 0.08)


class FaucetOpen(Fixture):
    """Turn a faucet on."""

    file, fixture = "sawyer_faucet", "faucetBase"
    low, high = (-0.05, 0.8, 0.0), (0.05, 0.85, 0.0)
    hand_low, goal_low, hand_start = _DEEP, _DEEP, (0.0, 0.4, 0.2)
    goal_way, handle_offset = (0.175, 0.0, 0.125), (-0.04, 0.0, 0.03)

    def start(self, data, numbers):
        self.thing_start[:] = numbers
        self.goal[:] = numbers + self.goal_way

    def see_things(self, data):
        place = data.site("handleStartOpen").xpos + np.array((0.0, 0.0, -0.01))
        see(self.now, 0, place, data.body("faucetBase").xquat)

    def judge(self, data, action):
        handle = self.seen[4:7] + self.handle_offset
        left = np.linalg.norm(handle - self.goal)
        in_place = within(left, 0.07, np.linalg.norm(self.thing_start - self.goal))
        gap = np.linalg.norm(handle - self.tcp(data))
        start = np.linalg.norm(self.thing_start - self.tcp_start)
        near = within(gap, 0.01, start, GAUSSIAN)
        reward = 10.0 if left <= 0.07 else (2.0 * near + 3.0 * in_place) * 2.0
        return reward, left <= 0.07, gap <= 0.01, 1.0, near, in_place, left


class FaucetClose(FaucetOpen):
    """Turn a faucet off."""

    low, high = (-0.1, 0.8, 0.0), (0.1, 0.85, 0.0)
    goal_way, handle_offset = (-0.175, 0.0, 0.125), (0.0, 0.0, 0.0)

    def start(self, data, numbers):
        super().start(data, numbers)
        mujoco.mj_forward(self.model, data)

    def see_things(self, data):
        place = data.site("handleStartClose").xpos + np.array((0.0, 0.0, -0.01))
        see(self.now, 0, place, data.body("faucetBase").xquat)


class LeverPull(Fixture):
    """Pull a lever up."""

    file, fixture = "sawyer_lever_pull", "lever"
    low, high = (-0.1, 0.7, 0.0), (0.1, 0.8, 0.0)
    hand_low, goal_low, hand_start = _DEEP, _DEEP, single(0.0, 0.4, 0.2)

    def start(self, data, numbers):
        self.thing_start[:] = numbers + np.array((0.12, -0.2, 0.25))
        self.goal[:] = numbers + np.array((0.12, 0.0, 0.25 + 0.2))

    def see_things(self, data):
        matrix = data.geom("objGeom").xmat
        see(self.now, 0, data.site("leverStart").xpos, orientation(matrix))

    def judge(self, data, action):
        lever, scale = self.seen[4:7], np.array((4.0, 1.0, 4.0))
        shoulder = np.array((0.0, 0.055, 0.07))
        gap = np.linalg.norm((self.seen[:3] + shoulder - lever) * scale)
        start = np.linalg.norm((self.tcp_start + shoulder - self.thing_start) * scale)
        near = tolerance(gap, (0.0, 0.02), start, LONG_TAIL)
        angle = abs(-data.joint("LeverAxis").qpos[0] - np.pi / 2.0)
        turned = tolerance(angle, (0.0, np.pi / 48.0), np.pi / 2.0 - np.pi / 12.0, LONG_TAIL)
        margin = np.linalg.norm(self.thing_start - self.goal)
        in_place = tolerance(np.linalg.norm(lever - self.goal), (0.0, 0.04), margin, LONG_TAIL)
        reward = 10.0 * both(near, in_place)
        return reward, angle <= np.pi / 24, gap < 0.03, near > 0.9, near, turned, gap


class DialTurn(Fixture):
    """Turn a dial."""

    file, fixture = "sawyer_dial", "dial"
    low, high = (-0.1, 0.7, 0.0), (0.1, 0.8, 0.0)
    goal_low, goal_high = (-0.1, 0.73, 0.0299), (0.1, 0.83, 0.0301)
    hand_start = single(0.0, 0.6, 0.2)

    def start(self, data, numbers):
        self.thing_start[:] = self.knob(data) + np.array((0.05, 0.02, 0.09))
        self.goal[:] = numbers + np.array((0.0, 0.03, 0.03))

    def knob(self, data):
        angle = data.joint("knob_Joint_1").qpos[0]
        return data.body("dial").xpos + np.array((np.sin(angle), -np.cos(angle), 0.0)) * 0.05

    def see_things(self, data):
        see(self.now, 0, self.knob(data), data.body("dial").xquat)

    def judge(self, data, action):
        knob = self.seen[4:7]
        left = np.linalg.norm(knob - self.goal)
        in_place = within(left, 0.07, np.linalg.norm(self.thing_start - self.goal))
        gap = np.linalg.norm(knob + np.array((0.05, 0.02, 0.09)) - self.tcp(data))
        start = np.linalg.norm(self.thing_start - self.tcp_start)
        grasp = both(within(gap, 0.005, start, GAUSSIAN), min(max(0.0, action[3]), 1.0))
        reward = 10.0 * both(grasp, in_place)
        return reward, left <= 0.07, gap <= 0.01, 1.0, grasp, in_place, left
