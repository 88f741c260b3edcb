"""Things are picked out of bins, holes and sockets, and put into bins, shelves, baskets, boxes."""

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


class BinPicking(Sawyer):
    """Move a block from one bin into the other."""

    file = "sawyer_bin_picking"
    low = (-0.21, 0.65, 0.02, 0.1199, 0.699, -0.001)
    high = (-0.03, 0.75, 0.02, 0.1201, 0.701, 0.001)
    hand_low = (-0.5, 0.4, 0.07)
    first_left = memory()

    def start(self, data, numbers):
        self.put_down(data, numbers, data.body("obj").xpos[2])
        self.goal[:] = data.body("bin_goal").xpos

    def judge(self, data, action):
        hand, block = self.seen[:3], self.seen[4:7]
        left = np.linalg.norm(block - self.goal)
        if self.first_left == 0.0:
            self.first_left = left
        in_place = tolerance(left, (0.0, 0.05), self.first_left, LONG_TAIL)
        floor = min(
            funnel(np.linalg.norm(hand[:2] - self.thing_start[:2]), 0.03, 0.02, 0.2),
            funnel(np.linalg.norm(hand[:2] - self.goal[:2]), 0.03, 0.02, 0.2),
        )
        above = 1.0
        if hand[2] < floor:
            above = tolerance(max(floor - hand[2], 0.0), (0.0, 0.01), 0.05, LONG_TAIL)
        grasp = self.grip(data, action, block, 0.015, 0.05, 0.01, 0.7)
        reward = both(grasp, in_place)
        near = np.linalg.norm(block - hand) < 0.04
        grasped = near and block[2] - 0.02 > self.thing_start[2] and self.seen[3] >= 0.43
        if grasped:
            reward += 1.0 + 5.0 * both(above, in_place)
        if left < 0.05:
            reward = 10.0
        return reward, left <= 0.05, near, grasped, grasp, in_place, left


class PickOutOfHole(Sawyer):
    """Pick a block out of a hole."""

    file = "sawyer_pick_out_of_hole"
    low, high = (0.0, 0.75, 0.02, -0.1, 0.5, 0.15), (0.0, 0.75, 0.02, 0.1, 0.6, 0.3)
    hand_low, apart = (-0.5, 0.4, -0.05), 0.15

    def start(self, data, numbers):
        self.thing_start[:], self.goal[:] = numbers[:3], numbers[3:]
        self.put(data, self.thing_start)

    def judge(self, data, action):
        block, tcp = self.seen[4:7], self.tcp(data)
        left = np.linalg.norm(block - self.goal)
        gap = np.linalg.norm(block - tcp)
        floor = funnel(np.linalg.norm(tcp[:2] - self.thing_start[:2]), 0.03, 0.015, 0.15)
        above = 1.0
        if tcp[2] < floor:
            above = tolerance(max(floor - tcp[2], 0.0), (0.0, 0.01), 0.02, LONG_TAIL)
        grasp = self.grip(data, action, block, 0.015, 0.02, 0.03, 0.1)
        margin = np.linalg.norm(self.thing_start - self.goal)
        in_place = tolerance(left, (0.0, 0.02), margin, LONG_TAIL)
        reward = both(grasp, in_place)
        lifted = block[2] - 0.02 > self.thing_start[2]
        grasped = gap < 0.04 and lifted and self.seen[3] >= 0.33
        if grasped:
            reward += 1.0 + 5.0 * both(in_place, above)
        if left < 0.05:
            reward = 10.0
        return reward, left <= 0.07, gap <= 0.03, grasped, grasp, in_place, left


class ShelfPlace(Sawyer):
    """Place a block on a shelf."""

    file = "sawyer_shelf_placing"
    model_fields = ("body_pos",)
    low, high = (-0.1, 0.5, 0.019, -0.1, 0.8, 0.299), (0.1, 0.6, 0.021, 0.1, 0.9, 0.301)
    hand_start, apart = single(0.0, 0.6, 0.2), 0.1

    def arrange(self, numbers):
        self.model.body("shelf").pos[:] = numbers[3:] - np.array((0.0, 0.0, 0.3))

    def start(self, data, numbers):
        self.goal[:] = self.model.site("goal").pos + self.model.body("shelf").pos
        self.put_down(data, numbers, data.body("obj").xpos[2])

    def see_things(self, data):
        see(self.now, 0, data.body("obj").xpos, orientation(data.geom("objGeom").xmat))

    def judge(self, data, action):
        block, goal = self.seen[4:7], self.goal
        left = np.linalg.norm(block - goal)
        gap = np.linalg.norm(block - self.tcp(data))
        margin = np.linalg.norm(self.thing_start - goal)
        in_place = tolerance(left, (0.0, 0.05), margin, LONG_TAIL)
        _, grasp = self.caging(data, action, block, 0.02, 0.05, 0.01, 1.0)
        reward = both(grasp, in_place)
        if 0.0 < block[2] < 0.24 and goal[0] - 0.15 < block[0] < goal[0] + 0.15:
            front = goal[1] - 3.0 * 0.05
            if front < block[1] < goal[1]:
                under = both((block[1] - front) / (3.0 * 0.05), (0.24 - block[2]) / 0.24)
                in_place = np.clip(in_place - under, 0.0, 1.0)
            elif block[1] > goal[1]:
                in_place = 0.0
        if gap < 0.025 and self.is_lifted(0.01):
            reward += 1.0 + 5.0 * in_place
        if left < 0.05:
            reward = 10.0
        grasped = self.is_lifted(0.02) and self.touching(data, self.model.geom("objGeom").id)
        return reward, left <= 0.07, gap <= 0.03, grasped, grasp, in_place, left


class Basketball(Sawyer):
    """Dunk a ball into a basket."""

    file, thing = "sawyer_basketball", "bsktball"
    model_fields = ("body_pos",)
    low, high = (-0.1, 0.6, 0.0299, -0.1, 0.85, 0.0), (0.1, 0.7, 0.0301, 0.1, 0.9 + 1e-7, 0.0)
    goal_low = (-0.1, 0.85 - 0.083, 0.2499)
    goal_high = (0.1, 0.9 + 1e-7 - 0.083, 0.2501)
    hand_start, apart = single(0.0, 0.6, 0.2), 0.15
    height = single(0.03)[0]

    def arrange(self, numbers):
        self.model.body("basket_goal").pos[:] = numbers[3:]

    def start(self, data, numbers):
        self.put_down(data, numbers, self.height)
        self.goal[:] = data.site("goal").xpos

    def judge(self, data, action):
        ball, scale = self.seen[4:7], np.array((1.0, 1.0, 2.0))
        target = np.array((self.goal[0], self.goal[1], 0.3))
        left = np.linalg.norm((ball - target) * scale)
        margin = np.linalg.norm((self.thing_start - target) * scale)
        in_place = tolerance(left, (0.0, 0.08), margin, LONG_TAIL)
        gap = np.linalg.norm(ball - self.tcp(data))
        held = gap < 0.035 and self.is_lifted(0.01)
        grasp = 1.0 if held else self.grip(data, action, ball, 0.025, 0.06, 0.005)
        reward = both(grasp, in_place)
        if held:
            reward += 1.0 + 5.0 * in_place
        if left < 0.08:
            reward = 10.0
        return reward, left <= 0.08, gap <= 0.05, self.is_lifted(0.03), grasp, in_place, left


class BoxClose(Sawyer):
    """Put the lid on a box."""

    file, thing = "sawyer_box", "top_link"
    model_fields = ("body_pos",)
    low, high = (-0.05, 0.5, 0.02, -0.1, 0.7, 0.133), (0.05, 0.55, 0.02, 0.1, 0.8, 0.133)
    hand_start, apart = single(0.0, 0.6, 0.2), 0.25
    height = single(0.02)[0]

    def arrange(self, numbers):
        self.model.body("boxbody").pos[:2] = numbers[3:5]

    def start(self, data, numbers):
        self.thing_start[:2], self.thing_start[2] = numbers[:2], self.height
        self.goal[:] = numbers[3:]
        for _ in range(self.frame_skip):
            mujoco.mj_step(self.model, data)
        self.put(data, self.thing_start)

    def judge(self, data, action):
        grasp = np.clip((np.clip(action[3], -1.0, 1.0) + 1.0) / 2.0, 0.0, 1.0)
        ideal = np.array((0.707, 0.0, 0.0, 0.707))
        upright = max(1.0 - np.linalg.norm(self.seen[7:11] - ideal) / 0.2, 0.0)
        hand, lid = self.seen[:3], self.seen[4:7] + np.array((0.0, 0.0, 0.02))
        floor = funnel(np.linalg.norm(hand[:2] - lid[:2]), 0.02, 0.04, 0.4)
        above = 1.0
        if hand[2] < floor:
            above = tolerance(floor - hand[2], (0.0, 0.01), floor / 2.0, LONG_TAIL)
        near = both(above, tolerance(np.linalg.norm(hand - lid), (0.0, 0.02), 0.5, LONG_TAIL))
        left = np.linalg.norm((self.goal - lid) * np.array((1.0, 1.0, 3.0)))
        placed = tolerance(left, (0.0, 0.05), 0.25, LONG_TAIL)
        in_place = 0.2 * np.float64(lid[2] > 0.04) + 0.8 * placed
        success = np.linalg.norm(self.seen[4:7] - self.goal) < 0.08
        reward = 10.0 if success else 2.0 * both(grasp, near) + 8.0 * in_place
        return reward * upright, success, near, grasp >= 0.5, grasp, in_place, 0.0


class PegInsertSide(Sawyer):
    """Put a peg into a hole at the side of a box."""

    file = "sawyer_peg_insertion_side"
    model_fields = ("body_pos",)
    low, high = (0.0, 0.5, 0.02, -0.35, 0.4, -0.001), (0.2, 0.7, 0.02, -0.25, 0.7, 0.001)
    goal_low, goal_high = (-0.35 + 0.03, 0.4, 0.129), (-0.25 + 0.03, 0.7, 0.131)
    apart = 0.1
    head_start = memory(3)

    def arrange(self, numbers):
        self.model.body("box").pos[:] = numbers[3:]

    def start(self, data, numbers):
        self.thing_start[:] = numbers[:3]
        self.head_start[:] = data.site("pegHead").xpos
        self.goal[:] = numbers[3:] + np.array((0.03, 0.0, 0.13))
        self.put(data, self.thing_start)

    def see_things(self, data):
        peg = data.site("pegGrasp")
        see(self.now, 0, peg.xpos, orientation(peg.xmat))

    def judge(self, data, action):
        peg, head = self.seen[4:7], data.site("pegHead").xpos
        gap = np.linalg.norm(peg - self.tcp(data))
        scale = np.array((1.0, 2.0, 2.0))
        left = np.linalg.norm((head - self.goal) * scale)
        margin = np.linalg.norm((self.head_start - self.goal) * scale)
        in_place = tolerance(left, (0.0, 0.07), margin, LONG_TAIL)
        collides = both(
            inside(
                head,
                data.site("bottom_right_corner_collision_box_2").xpos,
                data.site("top_left_corner_collision_box_2").xpos,
            ),
            inside(
                head,
                data.site("bottom_right_corner_collision_box_1").xpos,
                data.site("top_left_corner_collision_box_1").xpos,
            ),
        )
        in_place = both(in_place, collides)
        held = gap < 0.08 and self.is_lifted(0.01)
        grasp = 1.0 if held else self.grip(data, action, peg, 0.0075, 0.03, 0.005)
        reward = both(grasp, in_place)
        if held:
            reward += 1.0 + 5.0 * in_place
        if left <= 0.07:
            reward = 10.0
        grasped = gap < 0.02 and self.is_lifted(0.01)
        return reward, left <= 0.07, gap <= 0.03, grasped, grasp, in_place, left


class PegUnplugSide(Fixture):
    """Pull a plug out of a socket at the side."""

    file, fixture = "sawyer_peg_unplug_side", "box"
    low, high = (-0.25, 0.6, -0.001), (-0.15, 0.8, 0.001)
    goal_low = (-0.25 + (0.044 + 0.15), 0.6, -0.001 + 0.131)
    goal_high = (-0.15 + (0.044 + 0.15), 0.8, 0.001 + 0.131)

    def start(self, data, numbers):
        place = numbers + np.array((0.044, 0.0, 0.131))
        data.qpos[9:12], data.qpos[12:16] = place, (1.0, 0.0, 0.0, 0.0)
        data.qvel[9:12] = 0.0
        mujoco.mj_forward(self.model, data)
        self.thing_start[:] = data.site("pegEnd").xpos
        self.goal[:] = place + np.array((0.15, 0.0, 0.0))

    def see_things(self, data):
        see(self.now, 0, data.site("pegEnd").xpos, data.body("plug1").xquat)

    def judge(self, data, action):
        plug = self.seen[4:7]
        gap = np.linalg.norm(plug - self.tcp(data))
        left = np.linalg.norm(plug - self.goal)
        grasp = self.grip(data, action, plug, 0.025, 0.05, 0.005, 0.8)
        margin = np.linalg.norm(self.thing_start - self.goal)
        in_place = tolerance(left, (0.0, 0.05), margin, LONG_TAIL)
        grasped = self.seen[3] > 0.5 and plug[0] - self.thing_start[0] > 0.015
        reward = 2.0 * grasp
        if grasped and gap < 0.035:
            reward = 1.0 + 2.0 * grasp + 5.0 * in_place
        if left <= 0.05:
            reward = 10.0
        return reward, left <= 0.07, gap <= 0.03, grasped, grasp, in_place, left


def inside(place, zero, one):
    """How far a place is from a box's one corner to the other; 1 outside."""
    value = 1.0
    for i in range(3):
        if not min(zero[i], one[i]) <= place[i] <= max(zero[i], one[i]):
            return 1.0
        value = value * ((place[i] - zero[i]) / (one[i] - zero[i]))
    return value
