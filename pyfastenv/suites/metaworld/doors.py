"""Doors are opened, closed, locked and unlocked."""

import mujoco
import numpy as np

from pyfastenv.suites.dm_control.rewards import GAUSSIAN
from pyfastenv.suites.metaworld.base import (
    LONG_TAIL,
    Fixture,
    both,
    funnel,
    orientation,
    see,
    single,
    tolerance,
)

_SHOULDER = np.array((0.0, 0.055, 0.07))


class Door(Fixture):
    """The base of the two: a door with a handle."""

    file, fixture = "sawyer_door_pull", "door"
    low, high = (0.0, 0.85, 0.15), (0.1, 0.95, 0.15)
    way, angle = (-0.3, -0.45, 0.0), 0.0

    def start(self, data, numbers):
        self.thing_start[:] = numbers
        self.goal[:] = numbers + self.way
        data.joint("doorjoint").qpos[0] = self.angle
        data.joint("doorjoint").qvel[0] = 0.0
        mujoco.mj_forward(self.model, data)

    def see_things(self, data):
        handle = data.geom("handle")
        see(self.now, 0, handle.xpos, orientation(handle.xmat))


class DoorOpen(Door):
    """Open a door."""

    goal_low, goal_high = (-0.3, 0.4, 0.1499), (-0.2, 0.5, 0.1501)

    def judge(self, data, action):
        angle = data.joint("doorjoint").qpos[0]
        grasp = (np.clip(action[3], -1.0, 1.0) + 1.0) / 2.0
        hand = self.seen[:3]
        handle = self.seen[4:7] + np.array((-0.05, 0.0, 0.0))
        floor = funnel(np.linalg.norm(hand[:2] - handle[:2]), 0.12, 0.04, 0.4)
        above = 1.0
        if hand[2] < floor:
            above = tolerance(floor - hand[2], (0.0, 0.01), floor / 2.0, LONG_TAIL)
        gap = np.linalg.norm(hand - handle - np.array((0.05, 0.03, -0.01)))
        near = both(above, tolerance(gap, (0.0, 0.06), 0.5, LONG_TAIL))
        left = np.pi / 2.0 + np.pi / 6 + angle
        opened = tolerance(left, (0.0, 0.5), np.pi / 3.0, LONG_TAIL)
        in_place = 0.2 * np.float64(angle < -np.pi / 90.0) + 0.8 * opened
        reward = 2.0 * both(near, grasp) + 8.0 * in_place
        success = abs(self.seen[4] - self.goal[0]) <= 0.08
        if success:
            reward = 10.0
        return reward, success, near, grasp >= 0.5, grasp, in_place, 0.0


class DoorClose(Door):
    """Close a door."""

    goal_low, goal_high = (0.2, 0.65, 0.1499), (0.3, 0.75, 0.1501)
    hand_start = single(-0.5, 0.6, 0.2)
    way, angle = (0.2, -0.2, 0.0), -1.5708

    def judge(self, data, action):
        thing = self.seen[4:7]
        gap = np.linalg.norm(thing - self.goal)
        margin = np.linalg.norm(self.thing_start - self.goal)
        closed = tolerance(gap, (0.0, 0.05), margin, GAUSSIAN)
        margin = np.linalg.norm(self.hand_start - thing) + 0.1
        left = np.linalg.norm(self.tcp(data) - self.goal)
        in_place = tolerance(left, (0.0, 0.25 * 0.05), margin, GAUSSIAN)
        reward = 10.0 if gap < 0.05 else 3.0 * in_place + 6.0 * closed
        return reward, gap <= 0.08, 0.0, 1.0, 1.0, in_place, gap


class Lock(Door):
    """The base of the two: a door with a lock."""

    file = "sawyer_door_lock"
    low, high = (-0.1, 0.8, 0.15), (0.1, 0.85, 0.15)
    hand_low, hand_start = (-0.5, 0.4, -0.15), single(0.0, 0.6, 0.2)
    goal_low = hand_low


class DoorLock(Lock):
    """Turn a lock down."""

    def start(self, data, numbers):
        for _ in range(self.frame_skip):
            mujoco.mj_step(self.model, data)
        self.goal[:] = data.body("lock_link").xpos + np.array((0.0, -0.04, -0.1))

    def see_things(self, data):
        see(self.now, 0, data.site("lockStartLock").xpos, data.body("door_link").xquat)

    def judge(self, data, action):
        thing = self.seen[4:7]
        apart = (thing - data.body("leftpad").xpos) * np.array((0.25, 1.0, 0.5))
        gap = np.linalg.norm(apart)
        left = abs(self.goal[2] - thing[2])
        # MetaWorld's margin is of where the pad is now, not of where it was
        near = tolerance(gap, (0.0, 0.01), gap, LONG_TAIL)
        in_place = tolerance(left, (0.0, 0.005), 0.1, LONG_TAIL)
        reward = 2.0 * both(max(self.seen[3], 0.0), near) + 8.0 * in_place
        return reward, left <= 0.02, gap <= 0.05, self.seen[3] > 0, near, in_place, left


class DoorUnlock(Lock):
    """Turn a lock to the side."""

    goal_low, goal_high = (0.0, 0.64, 0.21), (0.2, 0.7, 0.2111)

    def start(self, data, numbers):
        self.bend(data, 1.5708)
        self.goal[:] = data.body("lock_link").xpos + np.array((0.1, -0.04, 0.0))

    def see_things(self, data):
        see(self.now, 0, data.site("lockStartUnlock").xpos, data.body("door_link").xquat)

    def judge(self, data, action):
        thing, scale = self.seen[4:7], np.array((0.25, 1.0, 0.5))
        gap = np.linalg.norm((self.seen[:3] + _SHOULDER - thing) * scale)
        # MetaWorld's margin is of where the lock is now, not of where it was
        lock = data.body("lock_link").xpos
        margin = np.linalg.norm((self.tcp_start + _SHOULDER - lock) * scale)
        near = tolerance(gap, (0.0, 0.02), margin, LONG_TAIL)
        left = abs(self.goal[0] - thing[0])
        in_place = tolerance(left, (0.0, 0.005), 0.1, LONG_TAIL)
        reward = 2.0 * near + 8.0 * in_place
        return reward, left <= 0.02, gap <= 0.05, self.seen[3] > 0, near, in_place, left
