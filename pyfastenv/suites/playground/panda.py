"""Franka's Panda lifts a cube to a place, or pulls a cabinet open.

Formulas: MuJoCo Playground 0.2, _src/manipulation/franka_emika_panda: panda.py, pick.py,
pick_cartesian.py and open_cabinet.py.
"""

import mujoco
import numpy as np

from pyfastenv.suites.playground import panda_arm
from pyfastenv.suites.playground import terms as t
from pyfastenv.suites.playground.arms import Arms
from pyfastenv.tasks.language.fields import memory
from pyfastenv.tasks.language.rewards import reward_terms

HAND = ("left_finger_pad", "right_finger_pad", "hand_capsule")
SCENES = "manipulation/franka_emika_panda/xmls"


class Panda(Arms):
    """A Panda and a thing.

    Attributes:
        thing: The body that is to be brought to the target, which a mocap body shows.
        reached: Distance of the gripper from the thing at which it has been reached [m].
    """

    frame_skip, action_scale = 4, 0.04
    thing, reached = "box", 0.012

    targets, has_reached = memory(8), memory()

    def setup(self):
        super().setup()
        self.thing_id = self.model.body(self.thing).id

    def move(self, data):
        """The physics of a step; notes whether the gripper has reached the thing."""
        super().move(data)
        if t.gap(data.xpos[self.thing_id], data.site("gripper").xpos) < self.reached:
            self.has_reached = 1.0

    def nearness(self, data):
        """Rewards for a gripper near the thing, and for arms near their pose."""
        gripper = t.nearness(t.gap(data.xpos[self.thing_id], data.site("gripper").xpos))
        return gripper, 1.0 - np.tanh(t.gap(self.home[:7], data.qpos))

    def is_lost(self, data):
        """Whether the thing has gone too far away."""
        return t.is_far(data.xpos[self.thing_id]) or data.xpos[self.thing_id, 2] < 0.0

    def observation(self, data, obs):
        axes, target = np.zeros(9), np.zeros(9)
        mujoco.mju_quat2Mat(target, data.mocap_quat[0])
        axes[:] = data.xmat[self.thing_id]
        place, gripper = data.xpos[self.thing_id], data.site("gripper").xpos
        obs["angles"] = data.qpos
        obs["velocities"] = data.qvel
        obs["gripper"] = gripper
        obs["gripper_axes"] = data.site("gripper").xmat[3:]
        obs["thing_axes"] = axes[3:]
        obs["thing_offset"] = place - gripper
        obs["target_offset"] = data.mocap_pos[0] - place
        obs["target_turn"] = target[:6] - axes[:6]
        obs["errors"] = data.ctrl - data.qpos[:8]


class PandaPickCube(Panda, actions=8):
    """A Panda lifts a cube to a target.

    Attributes:
        most_turn: Greatest angle of the target about a random axis [rad].
    """

    max_episode_steps = 150
    scene = f"{SCENES}/mjx_single_cube.xml"
    collisions = tuple((name, "floor") for name in HAND)
    most_turn = 0.0

    def place(self, data, rng):
        """Places the cube and the target."""
        spot = self.home[9:12]
        data.qpos[9:11] = spot[:2] + rng.uniform(-0.2, 0.2, 2)
        data.mocap_pos[0, :2] = spot[:2] + rng.uniform(-0.2, 0.2, 2)
        data.mocap_pos[0, 2] = spot[2] + rng.uniform(0.2, 0.4)
        if self.most_turn > 0.0:
            axis, turn = rng.uniform(-1.0, 1.0, 3), np.zeros(4)
            angle = rng.uniform(0.0, self.most_turn)
            mujoco.mju_axisAngle2Quat(turn, axis / t.length(axis), angle)
            data.mocap_quat[0] = turn

    def bringing(self, data):
        """Reward for a cube near the target, once it has been reached."""
        target = np.zeros(9)
        mujoco.mju_quat2Mat(target, data.mocap_quat[0])
        off = 0.9 * t.gap(data.mocap_pos[0], data.xpos[self.thing_id])
        turned = t.gap(target[:6], data.xmat[self.thing_id])
        return t.nearness(off + 0.1 * turned) * self.has_reached

    @reward_terms(gripper_box=4.0, box_target=8.0, no_floor_collision=0.25, robot_target_qpos=0.3)
    def step(self, data, action, info):
        self.move(data)
        gripper, pose = self.nearness(data)
        terms = {
            "gripper_box": gripper,
            "box_target": self.bringing(data),
            "no_floor_collision": self.is_clear(data),
            "robot_target_qpos": pose,
        }
        return terms, {"out_of_bounds": self.is_lost(data)}


class PandaPickCubeOrientation(PandaPickCube, actions=8):
    """A Panda lifts a cube to a target and turns it as the target is."""

    most_turn = 0.25 * np.pi


class PandaOpenCabinet(Panda, actions=8):
    """A Panda pulls a cabinet's handle to a target, from a random pose.

    Attributes:
        least_bend, most_bend: Of the arm's joints at the start [rad].
    """

    max_episode_steps = 150
    scene, keyframe, thing = f"{SCENES}/mjx_cabinet.xml", "upright", "handle"
    collisions = tuple((name, "barrier") for name in HAND)
    least_bend = tuple(np.deg2rad((-30, -30, -30, -60, -30, 0, -30)).tolist())
    most_bend = tuple(np.deg2rad((30, 30, 30, 0, 30, 60, 30)).tolist())

    def prepare(self, spec):
        """The hand meets the barrier, too."""
        spec.geom("hand_capsule").conaffinity = 3

    def place(self, data, rng):
        """Bends the arm and places the target."""
        bent = rng.uniform(self.least_bend, self.most_bend)
        data.qpos[:7] += bent
        data.ctrl[:7] += bent
        data.mocap_pos[0] = rng.uniform(0.2, 0.4), 0.0, 0.5

    @reward_terms(gripper_box=4.0, box_target=8.0, no_barrier_collision=0.25, robot_target_qpos=0.3)
    def step(self, data, action, info):
        self.move(data)
        gripper, pose = self.nearness(data)
        off = t.gap(data.mocap_pos[0], data.xpos[self.thing_id])
        terms = {
            "box_target": t.nearness(off) * self.has_reached,
            "gripper_box": gripper,
            "no_barrier_collision": self.is_clear(data),
            "robot_target_qpos": pose,
        }
        return terms, {"out_of_bounds": self.is_lost(data)}


class PandaPickCubeCartesian(PandaPickCube, actions=3):
    """A Panda lifts a cube to a fixed place; an action moves its finger tips: y, z, and the grip.

    The reward is what the weighted terms gain on the best of the episode. Two things that look
    unintended in Playground are kept: ``no_box_collision`` is shown and counts nothing, and the
    tips' target goes on where no joints reach it.

    Attributes:
        reach_y: How far the cube may be aside [m].
        picked: Probability that an episode starts with the cube in the hand.
        least_success: Distance from the target at which the episode ends [m].
    """

    max_episode_steps, frame_skip, action_scale = 200, 10, 0.005
    scene, keyframe = f"{SCENES}/mjx_single_cube_camera.xml", "low_home"
    reach_y, picked, least_success = 0.05, 0.05, 0.05
    gripper_box_weight, box_target_weight, no_floor_collision_weight = 4.0, 8.0, 0.25
    robot_target_qpos_weight, action_rate_weight, unsolved_weight = 0.0, -0.0005, -0.01
    lifted_weight, success_weight = 0.5, 2.0

    tips, unsolved, best, steps = memory(3), memory(), memory(), memory()

    def setup(self):
        super().setup()
        key, data = self.model.key("picked"), mujoco.MjData(self.model)
        self.box, self.palm = (np.array([self.model.geom(n).id]) for n in ("box", "hand_capsule"))
        self.guide, self.guide_held = key.qpos.copy(), key.ctrl.copy()
        data.qpos[:7] = self.held[:7]
        mujoco.mj_kinematics(self.model, data)
        hand = data.body("hand")
        self.axes = hand.xmat.reshape(3, 3).copy()
        self.start_tips = hand.xpos + (panda_arm.TIP - 0.107) * self.axes[:, 2]

    def place(self, data, rng):
        forward = self.start_tips[0] - 0.03  # servos give way
        data.qpos[9:12] = forward, rng.uniform(-self.reach_y, self.reach_y), 0.0
        data.mocap_pos[0] = forward, 0.0, 0.2
        if rng.random() < self.picked:
            data.qpos[:], data.ctrl[:] = self.guide, self.guide_held
        self.tips[:] = self.start_tips

    def tips_after(self, action):
        """Where the finger tips are to be after an action [m]."""
        y, z = (
            self.tips[1] + self.action_scale * action[0],
            self.tips[2] + self.action_scale * action[1],
        )
        return np.array(
            (min(max(self.tips[0], 0.25), 0.77), min(max(y, -0.32), 0.32), min(max(z, 0.02), 0.5))
        )

    def control(self, action, ctrl):
        ctrl[:] = self.targets
        panda_arm.reach(ctrl, self.tips_after(action), self.axes, self.targets)
        ctrl[7] += -0.02 if action[2] < 0.0 else 0.02
        for i in range(8):
            ctrl[i] = min(max(ctrl[i], self.least_target[i]), self.most_target[i])

    def step(self, data, action, info):
        self.remember(action)
        tips = self.tips_after(action)
        solved = panda_arm.reach(np.zeros(8), tips, self.axes, self.targets)
        self.move(data)
        self.tips[:], self.unsolved = tips, 1.0 - solved
        place = data.xpos[self.thing_id]
        gripper, pose = self.nearness(data)
        success = t.gap(place, data.mocap_pos[0]) < self.least_success
        gripper *= self.gripper_box_weight
        brought = self.box_target_weight * self.bringing(data)
        clear = self.no_floor_collision_weight * self.is_clear(data)
        pose *= self.robot_target_qpos_weight
        rate = self.action_rate_weight * t.gap(action, self.last_action)
        missed = self.unsolved_weight * self.unsolved
        lifted = self.lifted_weight * (place[2] > 0.05)
        done = self.success_weight * success
        info["reward_gripper_box"] = gripper
        info["reward_box_target"] = brought
        info["reward_no_floor_collision"] = clear
        info["reward_robot_target_qpos"] = pose
        info["reward_action_rate"] = rate
        info["reward_unsolved"] = missed
        info["reward_lifted"] = lifted
        info["reward_success"] = done
        info["no_box_collision"] = 1.0 - t.meet(data, self.box, self.palm)[0]
        total = gripper + brought + clear + pose + rate + missed + lifted + done
        gain = max(total - self.best, 0.0) * (self.steps > 0.0)
        self.best = max(total, self.best)
        self.steps += 1.0
        return gain, success or self.is_lost(data)

    def observation(self, data, obs):
        super().observation(data, obs)
        obs["unsolved"] = self.unsolved
        obs["action"] = self.action
