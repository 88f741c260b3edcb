"""Aloha's two arms hand a box over, or put a peg into a socket.

Formulas: MuJoCo Playground 0.2, _src/manipulation/aloha: base.py, handover.py and
single_peg_insertion.py.
"""

import numpy as np

from pyfastenv.suites.dm_control.rewards import LINEAR, tolerance
from pyfastenv.suites.playground import terms as t
from pyfastenv.suites.playground.arms import Arms
from pyfastenv.tasks.language.fields import memory
from pyfastenv.tasks.language.rewards import reward_terms

SCENES = "manipulation/aloha/xmls"
FINGERS = tuple(
    f"{arm}/{side}_finger_{end}"
    for arm in ("left", "right")
    for side in ("left", "right")
    for end in ("top", "bottom")
)


class Aloha(Arms):
    """Two arms on a table, which no finger is to touch."""

    collisions = tuple(("table", finger) for finger in FINGERS)

    targets = memory(14)


class AlohaHandOver(Aloha, actions=14):
    """The left arm lifts a box and gives it to the right arm, which brings it to a target.

    The reward is what the weighted terms, divided by the weights' sum, gain on the best of the
    episode, and a little of their sum where the right arm alone holds the box.

    Attributes:
        whole: Steps of an episode, of which the observation has the share that is over.
        drop_cost: Of a box that falls after it has been lifted; the episode ends.
    """

    max_episode_steps, frame_skip, action_scale = 250, 4, 0.015
    scene = f"{SCENES}/mjx_hand_over.xml"
    gripper_box_weight, box_handover_weight = 1.0, 4.0
    handover_target_weight, no_table_collision_weight = 8.0, 0.3
    meeting = (0.0, 0.0, 0.24)
    whole, drop_cost = 250.0, 0.1

    best, has_lifted, steps = memory(), memory(), memory()

    def setup(self):
        super().setup()
        self.least_target[6] = 0.01  # the left gripper does not shut
        self.half_width = self.model.geom("box").size[1]

    def place(self, data, rng):
        """Places the box and the target."""
        data.qpos[16] += rng.uniform(-0.05, 0.05)
        data.qpos[17] += rng.uniform(-0.1, 0.1)
        data.mocap_pos[0] = np.array((0.2, 0.0, 0.25)) + rng.uniform(-0.15, 0.15, 3)
        data.mocap_pos[0, 0] = max(data.mocap_pos[0, 0], 0.15)

    def step(self, data, action, info):
        self.move(data)
        box, hand = data.body("box").xpos, data.site("left/gripper").xpos
        before, after = 1.0 * (box[0] < -0.1), 1.0 * (box[0] >= 0.0)
        between = (1.0 - before) * (1.0 - after)
        left = near(data.site("box_top").xpos, hand) * (before + between)
        taken = near(data.site("box_bottom").xpos, data.site("right/gripper").xpos)
        right = taken * (between + after) + taken * after
        met = max(near(box, self.meeting), near(hand, self.meeting) * after)
        away = barrier(hand[0], -100.0)
        brought = near(data.mocap_pos[0], box) * right * away
        held = self.gripper_box_weight * (left + right)
        met *= self.box_handover_weight
        brought *= self.handover_target_weight
        clear = self.no_table_collision_weight * self.is_clear(data)
        info["reward_gripper_box"] = held
        info["reward_box_handover"] = met
        info["reward_handover_target"] = brought
        info["reward_no_table_collision"] = clear
        total = (held + met + brought + clear) / (
            self.gripper_box_weight
            + self.box_handover_weight
            + self.handover_target_weight
            + self.no_table_collision_weight
        )
        reward = max(total - self.best, 0.0) + 0.02 * total * away * barrier(box[0] - 0.1, 100.0)
        reward *= self.steps > 0.0
        self.best = max(total, self.best)
        self.has_lifted = max(self.has_lifted, 1.0 * (box[2] > 0.15))
        dropped = box[2] < 0.05 and self.has_lifted > 0.0
        ends = dropped or t.is_far(box) or box[2] < 0.0
        self.steps = 0.0 if ends or self.steps + 1.0 >= self.whole else self.steps + 1.0
        return reward - self.drop_cost * dropped, ends

    def observation(self, data, obs):
        width = self.half_width
        obs["angles"] = data.qpos
        obs["velocities"] = data.qvel
        obs["fingers"] = np.concatenate((data.qpos[6:8], data.qpos[14:16])) - width
        obs["box_top"] = data.site("box_top").xpos
        obs["box_bottom"] = data.site("box_bottom").xpos
        obs["left"] = data.site("left/gripper").xpos
        obs["left_axes"] = data.site("left/gripper").xmat[3:]
        obs["right"] = data.site("right/gripper").xpos
        obs["right_axes"] = data.site("right/gripper").xmat[3:]
        obs["box_axes"] = data.body("box").xmat[3:]
        obs["box_offset"] = data.body("box").xpos - data.mocap_pos[0]
        obs["time"] = self.steps / self.whole


class AlohaSinglePegInsertion(Aloha, actions=14):
    """The left arm lifts a socket, the right arm a peg, and puts it in.

    Terms are divided by the weights' sum.
    """

    max_episode_steps, timestep, action_scale = 1000, 0.0025, 0.005
    scene = f"{SCENES}/mjx_single_peg_insertion.xml"
    socket_goal, peg_goal = (-0.05, 0.0, 0.15), (0.05, 0.0, 0.15)

    def place(self, data, rng):
        """Places socket and peg."""
        data.qpos[23:25] += rng.uniform(-0.1, 0.1, 2)
        data.qpos[16:18] += rng.uniform(-0.1, 0.1, 2)

    @reward_terms(
        left_reward=1.0,
        right_reward=1.0,
        left_target_qpos=0.3,
        right_target_qpos=0.3,
        no_table_collision=0.3,
        socket_entrance_reward=4.0,
        peg_end2_reward=4.0,
        socket_z_up=0.5,
        peg_z_up=0.5,
        peg_insertion_reward=8.0,
    )
    def step(self, data, action, info):
        self.move(data)
        socket, peg = data.body("socket").xpos, data.body("peg").xpos
        share = 1.0 / (
            self.left_reward_weight
            + self.right_reward_weight
            + self.left_target_qpos_weight
            + self.right_target_qpos_weight
            + self.no_table_collision_weight
            + self.socket_entrance_reward_weight
            + self.peg_end2_reward_weight
            + self.socket_z_up_weight
            + self.peg_z_up_weight
            + self.peg_insertion_reward_weight
        )
        left = fit(t.gap(socket, data.site("left/gripper").xpos), 0.0, 0.001, 0.3)
        right = fit(t.gap(peg, data.site("right/gripper").xpos), 0.0, 0.001, 0.3)
        left_off = t.gap(data.qpos[:6], self.home[:6])
        right_off = t.gap(data.qpos[8:14], self.home[8:14])
        socket_lift = fit(t.gap(self.socket_goal, socket), 0.0, 0.01, 0.15)
        peg_lift = fit(t.gap(self.peg_goal, peg), 0.0, 0.01, 0.15)
        # how deep the peg's end is in the socket, and how far off its middle line
        rear, end = data.site("socket_rear").xpos, data.site("peg_end2").xpos
        line = data.site("socket_entrance").xpos - rear
        beside = end - rear
        along = np.dot(beside, line) / (np.dot(line, line) + 1e-6)
        off_line = t.gap(end, rear + along * line)
        deep = fit(t.gap(end, rear), 0.0, 0.001, 0.1) * (off_line < 0.005)
        info["peg_end2_dist_to_line"] = off_line
        terms = {
            "left_reward": share * left,
            "right_reward": share * right,
            "left_target_qpos": share * tolerance(left_off, (0.0, 0.01), 2.0) * left * right,
            "right_target_qpos": share * tolerance(right_off, (0.0, 0.01), 2.0) * left * right,
            "no_table_collision": share * self.is_clear(data),
            "socket_entrance_reward": share * socket_lift,
            "peg_end2_reward": share * peg_lift,
            "socket_z_up": share * fit(data.body("socket").xmat[8], 0.99, 1.0, 0.03) * socket_lift,
            "peg_z_up": share * fit(data.body("peg").xmat[8], 0.99, 1.0, 0.03) * peg_lift,
            "peg_insertion_reward": share * deep,
        }
        return terms, {"out_of_bounds": t.is_far(socket) or t.is_far(peg)}

    def observation(self, data, obs):
        obs["angles"] = data.qpos
        obs["velocities"] = data.qvel
        obs["left"] = data.site("left/gripper").xpos
        obs["socket"] = data.body("socket").xpos
        obs["right"] = data.site("right/gripper").xpos
        obs["peg"] = data.body("peg").xpos
        obs["socket_entrance"] = data.site("socket_entrance").xpos
        obs["peg_end"] = data.site("peg_end2").xpos
        obs["socket_up"] = data.body("socket").xmat[6:]
        obs["peg_up"] = data.body("peg").xmat[6:]


def near(place, other):
    """1 where two places are one, 1/e where they are 0.1 m apart."""
    return np.exp(-10.0 * t.gap(place, other))


def barrier(x, steepness):
    """Rises from 0 to 1 where x passes 0, or falls where ``steepness`` is negative."""
    return 1.0 / (1.0 + np.exp(-steepness * x))


def fit(x, least, most, margin):
    """1 within the bounds, falling in a straight line outside."""
    return tolerance(x, (least, most), margin, LINEAR)
