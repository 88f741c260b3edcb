"""Hammers, nuts on pegs, sticks and mugs: things that are taken by a handle."""

import mujoco
import numpy as np

from pyfastenv.suites.metaworld.base import (
    LONG_TAIL,
    Fixture,
    Sawyer,
    both,
    funnel,
    orientation,
    see,
    single,
    tolerance,
)
from pyfastenv.tasks.language.fields import memory

_STILL = np.zeros(4)


class Hammer(Fixture):
    """Drive a nail into a block."""

    file, fixture = "sawyer_hammer", "box"
    low, high = (-0.1, 0.4, 0.0), (0.1, 0.5, 0.0)
    goal_low, goal_high = (0.2399, 0.7399, 0.109), (0.2401, 0.7401, 0.111)
    hand_start = (0.0, 0.4, 0.2)

    def arrange(self, numbers):
        self.model.body("box").pos[:] = (0.24, 0.85, 0.0)

    def start(self, data, numbers):
        self.goal[:], self.thing_start[:] = data.site("goal").xpos, numbers
        self.put(data, numbers)

    def see_things(self, data):
        hammer, nail = data.body("hammer"), data.body("nail_link")
        see(self.now, 0, hammer.xpos, hammer.xquat)
        see(self.now, 1, nail.xpos, nail.xquat)

    def judge(self, data, action):
        handle = handle_of(self.seen, 0.14 / 2.0)
        head = self.seen[4:7] + np.array((0.16, 0.06, 0.0))
        upright = uprightness(self.seen, np.array((1.0, 0.0, 0.0, 0.0)))
        grasp = self.grip(data, action, handle, 0.015, 0.02, 0.01)
        near = tolerance(np.linalg.norm(self.goal - head), (0.0, 0.02), 0.2, LONG_TAIL)
        in_place = 0.1 * np.float64(head[2] > 0.02) + 0.9 * near
        reward = (2.0 * grasp + 6.0 * in_place) * upright
        success = data.joint("NailSlideJoint").qpos[0] > 0.09
        if success and reward > 5.0:
            reward = 10.0
        return reward, success, upright, grasp >= 0.5, grasp, in_place, 0.0


class Nut(Sawyer):
    """The base of the two: a nut with a handle, and a peg."""

    file = "sawyer_assembly_peg"
    model_fields = ("body_pos",)
    apart = 0.1

    def see_things(self, data):
        see(self.now, 0, data.site("RoundNut-8").xpos, data.body("RoundNut").xquat)

    def upright(self):
        return uprightness(self.seen, np.array((0.707, 0.0, 0.0, 0.707)))


class Assembly(Nut):
    """Put a nut on a peg."""

    low, high = (0.0, 0.6, 0.02, -0.1, 0.75, 0.1), (0.0, 0.6, 0.02, 0.1, 0.85, 0.1)
    hand_start = single(0.0, 0.6, 0.2)

    def arrange(self, numbers):
        self.model.body("peg").pos[:] = numbers[3:] - np.array((0.0, 0.0, 0.05))

    def start(self, data, numbers):
        self.thing_start[:], self.goal[:] = numbers[:3], numbers[3:]
        self.put(data, self.thing_start)

    def judge(self, data, action):
        handle, upright = handle_of(self.seen, 0.02 / 2.0), self.upright()
        grasp = self.reach_and_grip(data, action, handle, 0.015, 0.02, 0.01, 0.01)
        nut = data.site("RoundNut").xpos
        error = self.goal - nut
        radius = np.linalg.norm(error[:2])
        success = radius < 0.02 and error[2] > 0.0
        threshold = 0.02 if success else 0.01
        error[2] = funnel(radius, threshold, 0.02, 0.2) - nut[2]
        lifted = nut[2] > 0.02 or radius < threshold
        left = np.linalg.norm(error * np.array((1.0, 1.0, 3.0)))
        placed = tolerance(left, (0.0, 0.02), 0.4, LONG_TAIL)
        in_place = 0.1 * np.float64(lifted) + 0.9 * placed
        reward = 10.0 if success else (2.0 * grasp + 6.0 * in_place) * upright
        return reward, success, upright, grasp >= 0.5, grasp, in_place, 0.0


class Disassemble(Nut):
    """Take a nut off a peg."""

    low = (0.0, 0.6, 0.025, -0.1, 0.6, 0.1699)
    high = (0.1, 0.75, 0.02501, 0.1, 0.75, 0.1701)
    goal_low, goal_high = (-0.1, 0.6, 0.1749), (0.1, 0.75, 0.1751)
    hand_start = single(0.0, 0.4, 0.2)

    def arrange(self, numbers):
        self.model.body("peg").pos[:] = numbers[:3] + np.array((0.0, 0.0, 0.03))

    def start(self, data, numbers):
        self.thing_start[:] = numbers[:3]
        self.goal[:] = numbers[:3] + np.array((0.0, 0.0, 0.15))
        self.put(data, self.thing_start)

    def judge(self, data, action):
        handle, upright = handle_of(self.seen, 0.02 / 2.0), self.upright()
        grasp = self.grip(data, action, handle, 0.015, 0.02, 0.01)
        nut = data.site("RoundNut").xpos
        left = np.linalg.norm(self.goal + np.array((0.0, 0.0, 0.1)) - nut)
        off = tolerance(left, (0.0, 0.02), 0.2, LONG_TAIL)
        in_place = 0.1 * np.float64(nut[2] > 0.02) + 0.9 * off
        success = self.seen[6] > self.goal[2]
        reward = 10.0 if success else (2.0 * grasp + 6.0 * in_place) * upright
        return reward, success, upright, grasp >= 0.5, grasp, in_place, 0.0


class Stick(Sawyer):
    """The base of the two: a stick, and a container that it moves."""

    file = "sawyer_stick_obj"
    apart = 0.1
    stick_start, container_start = memory(3), memory(3)

    def place(self, data, numbers, container):
        """Puts both where an episode begins."""
        self.stick_start[:2], self.stick_start[2] = numbers[:2], 0.02
        data.qpos[16:18], data.qvel[16:18] = container, 0.0
        self.put(data, self.stick_start)
        self.container_start[:] = data.body("object").xpos

    def is_stick_lifted(self, by):
        """Whether the stick is higher than it was, in an open gripper."""
        return self.seen[3] > 0 and self.seen[6] - by > self.stick_start[2]


class StickPush(Stick):
    """Push a container with a stick."""

    low, high = (-0.08, 0.58, 0.0, 0.399, 0.55, 0.1319), (-0.03, 0.62, 0.001, 0.401, 0.6, 0.1321)

    def start(self, data, numbers):
        self.goal[:2], self.goal[2] = numbers[3:5], data.site("insertion").xpos[2]
        self.place(data, numbers, np.zeros(2))
        self.thing_start[:] = self.stick_start

    def see_things(self, data):
        stick = data.body("stick")
        see(self.now, 0, stick.xpos, orientation(stick.xmat))
        see(self.now, 1, data.site("insertion").xpos + np.array((0.0, 0.09, 0.0)), _STILL)

    def judge(self, data, action):
        stick = self.seen[4:7] + np.array((0.015, 0.0, 0.0))
        gap = np.linalg.norm(stick - self.tcp(data))
        margin = np.linalg.norm(self.stick_start - self.goal) - 0.12
        in_place = tolerance(np.linalg.norm(stick - self.goal), (0.0, 0.12), margin, LONG_TAIL)
        left = np.linalg.norm(self.seen[11:14] - self.goal)
        margin = np.linalg.norm(self.container_start - self.goal) - 0.12
        pushed = tolerance(left, (0.0, 0.12), margin, LONG_TAIL)
        lifted = self.is_stick_lifted(0.01)
        reward = grasp = 1.0
        if gap < 0.02 and lifted:
            reward = 10.0 if left <= 0.12 else 2.0 + 5.0 * in_place + 3.0 * pushed
        else:
            reward = grasp = self.grip(data, action, stick, 0.04, 0.05, 0.01)
        grasped = lifted and self.touching(data, self.model.geom("objGeom").id)
        success = grasped and left <= 0.12
        return reward, success, gap <= 0.03, grasped, grasp, in_place, left


class StickPull(Stick):
    """Pull a container with a stick through its handle."""

    low, high = (-0.1, 0.55, 0.0, 0.35, 0.45, 0.0199), (0.0, 0.65, 0.001, 0.45, 0.55, 0.0201)
    hand_low = (-0.5, 0.35, 0.05)

    def start(self, data, numbers):
        self.goal[:2], self.goal[2] = numbers[3:5], 0.02
        self.place(data, numbers, np.array((0.0, 0.09)))
        # MetaWorld's caging is of where the container was
        self.thing_start[:] = self.container_start

    def see_things(self, data):
        stick = data.body("stick")
        see(self.now, 0, stick.xpos, orientation(stick.xmat))
        see(self.now, 1, data.site("insertion").xpos, _STILL)

    def judge(self, data, action):
        stick, handle, end = self.seen[4:7], self.seen[11:14], data.site("stick_end").xpos
        ahead, scale = np.array((0.05, 0.0, 0.0)), np.array((1.0, 1.0, 2.0))
        gap = np.linalg.norm(stick - self.tcp(data))
        left = np.linalg.norm(handle - self.goal)
        there = np.linalg.norm((stick - (handle + ahead)) * scale)
        margin = np.linalg.norm((self.stick_start - (self.container_start + ahead)) * scale)
        in_place = tolerance(there, (0.0, 0.05), margin, LONG_TAIL)
        lifted = gap < 0.02 and self.is_stick_lifted(0.01)
        inserted = (
            end[0] >= handle[0]
            and abs(end[1] - handle[1]) <= 0.04
            and abs(end[2] - handle[2]) <= 0.06
        )
        grasp = 1.0 if lifted else self.grip(data, action, stick, 0.014, 0.05, 0.01)
        reward = both(grasp, in_place)
        if lifted and inserted:
            reward = 10.0 if left <= 0.12 else self.pulled(stick, handle + ahead, reward)
        elif lifted:
            reward = 1.0 + reward + 5.0 * in_place
        grasped = self.is_lifted(0.02) and self.touching(data, self.model.geom("objGeom").id)
        return reward, left <= 0.12 and inserted, gap <= 0.03, grasped, grasp, in_place, left

    def pulled(self, stick, container, held):
        """The reward with the stick in the handle."""
        margin = np.linalg.norm(self.stick_start - self.goal)
        stick_in = tolerance(np.linalg.norm(stick - self.goal), (0.0, 0.05), margin, LONG_TAIL)
        margin = np.linalg.norm(self.container_start - self.goal)
        gap = np.linalg.norm(container - self.goal)
        container_in = tolerance(gap, (0.0, 0.05), margin, LONG_TAIL)
        return 1.0 + held + 5.0 + 2.0 * stick_in + 1.0 * container_in


class CoffeePull(Sawyer):
    """Pull a mug from a coffee machine."""

    file = "sawyer_coffee"
    model_fields = ("body_pos",)
    low, high = (-0.05, 0.7, -0.001, -0.1, 0.55, -0.001), (0.05, 0.75, 0.001, 0.1, 0.65, 0.001)
    hand_start, apart = (0.0, 0.4, 0.2), 0.15

    def arrange(self, numbers):
        self.model.body("coffee_machine").pos[:] = numbers[:3] + np.array((0.0, 0.22, 0.0))

    def start(self, data, numbers):
        self.thing_start[:], self.goal[:] = numbers[:3], numbers[3:]
        data.qpos[:3] = numbers[:3]
        data.qvel[9:15] = 0.0
        mujoco.mj_forward(self.model, data)

    def see_things(self, data):
        see(self.now, 0, data.body("obj").xpos, orientation(data.geom("mug").xmat))

    def judge(self, data, action):
        mug, scale = self.seen[4:7], np.array((2.0, 2.0, 1.0))
        scaled = np.linalg.norm((mug - self.goal) * scale)
        margin = np.linalg.norm((self.thing_start - self.goal) * scale)
        in_place = tolerance(scaled, (0.0, 0.05), margin, LONG_TAIL)
        gap = np.linalg.norm(mug - self.tcp(data))
        grasp = self.reach_and_grip(data, action, mug, 0.02, 0.05, 0.04, 0.05, 0.7)
        reward = both(grasp, in_place)
        if gap < 0.04 and self.seen[3] > 0:
            reward += 1.0 + 5.0 * in_place
        if scaled < 0.05:
            reward = 10.0
        left = np.linalg.norm(mug - self.goal)
        touched = self.seen[3] > 0 and self.touching(data, self.model.geom("mug").id)
        return reward, left <= 0.07, gap <= 0.03, touched, grasp, in_place, left


class CoffeePush(CoffeePull):
    """Push a mug under a coffee machine."""

    low, high = (-0.1, 0.55, -0.001, -0.05, 0.7, -0.001), (0.1, 0.65, 0.001, 0.05, 0.75, 0.001)

    def arrange(self, numbers):
        self.model.body("coffee_machine").pos[:] = numbers[3:] + np.array((0.0, 0.22, 0.0))


def handle_of(seen, threshold):
    """Where the hand takes a thing: before it, within a distance in x [m]."""
    place = seen[4:7].copy()
    if abs(place[0] - seen[0]) < threshold:
        place[0] = seen[0]
    return place


def uprightness(seen, ideal):
    """How nearly the first thing's orientation is an ideal one."""
    return max(1.0 - np.linalg.norm(seen[7:11] - ideal) / 0.4, 0.0)
