"""LEAP's and Aero's hands turn a cube.

Formulas: MuJoCo Playground 0.2, base.py, rotate_z.py and reorient.py in _src/manipulation's folders
of leap_hand and aero_hand.
"""

import mujoco
import numpy as np

from pyfastenv.suites.dm_control.rewards import LINEAR, tolerance
from pyfastenv.suites.playground import terms as t
from pyfastenv.suites.playground.base import Robot
from pyfastenv.tasks.language.fields import memory
from pyfastenv.tasks.language.noise import uniform
from pyfastenv.tasks.language.rewards import reward_terms

PRIVILEGED = (
    "true_joints", "joint_velocities", "torques", "fingertips", "cube_offset", "cube_quat",
    "cube_angvel", "cube_linvel",
)  # fmt: skip


class Hand(Robot):
    """A hand on its back, a cube in it.

    Attributes:
        tips: Sites at the fingers' ends.
        start: Where the cube is laid [m].
        scatter: Greatest distance from there, along each axis [m].
        bend: Standard deviation of the start's joint angles [rad].
        least_height: Of the cube, below which it has fallen [m].
        goal_place: Of the cube that shows a goal [m].
    """

    timestep, frame_skip = 0.01, 5
    goal_place = (-100.0, -100.0, -100.0)  # out of sight
    sensors: tuple[str, ...] = ("cube_linvel", "cube_angvel")
    tips: tuple[str, ...] = ()
    start, scatter, bend, least_height = (0.1, 0.0, 0.05), 0.01, 0.1, -0.05

    def setup(self):
        super().setup()
        self.pose = self.home[:-7].copy()
        self.least_start, self.most_start = self.model.jnt_range[:-1].T.copy()
        self.tip_ids = np.array([self.model.site(name).id for name in self.tips])

    def reset(self, data, rng):
        for i in range(len(self.pose)):
            angle = self.pose[i] + self.bend * rng.standard_normal()
            data.qpos[i] = min(max(angle, self.least_start[i]), self.most_start[i])
        scattered = rng.uniform(-self.scatter, self.scatter, 3)
        data.qpos[-7:-4] = self.start + scattered
        data.qpos[-4:] = t.any_turn(rng)
        data.ctrl[:] = self.first_targets(data)
        data.mocap_pos[0] = self.goal_place

    def first_targets(self, data):
        """Where servos begin to aim at."""
        return data.qpos[: len(self.pose)]

    def has_fallen(self, data):
        """Whether the cube has left the hand."""
        return data.body("cube").xpos[2] < self.least_height

    def pose_cost(self, data):
        """Squared distance from the default pose."""
        return t.distance(self.pose, data.qpos)

    def fingertips(self, data):
        """Their places in the palm's frame, one behind the other [m]."""
        found, palm, axes = np.zeros(3 * len(self.tip_ids)), np.zeros(3), np.zeros(9)
        palm[:], axes[:] = data.site("grasp_site").xpos, data.site("grasp_site").xmat
        for k in range(len(self.tip_ids)):
            for i in range(3):
                for j in range(3):
                    apart = data.site_xpos[self.tip_ids[k], j] - palm[j]
                    found[3 * k + i] += axes[3 * j + i] * apart
        return found


class Spinning(Hand):
    """A hand that is to spin a cube about the vertical."""

    max_episode_steps = 500

    def control(self, action, ctrl):
        ctrl[:] = self.held + self.action_scale * action

    def drives(self, data):
        """Forces by which ``energy`` is counted."""
        return data.actuator_force

    def show_truth(self, data, obs):
        """Writes what critics of spinning hands see besides."""
        obs["true_joints"] = data.qpos[: len(self.pose)]
        obs["joint_velocities"] = data.qvel[: len(self.pose)]
        obs["torques"] = data.actuator_force
        obs["fingertips"] = self.fingertips(data)
        obs["cube_offset"] = data.site("grasp_site").xpos - data.body("cube").xpos
        obs["cube_quat"] = data.body("cube").xquat
        obs["cube_angvel"] = data.sensor("cube_angvel").data
        obs["cube_linvel"] = data.sensor("cube_linvel").data


def spin(self, data, action, info):
    """A step of every spinning hand's, under reward_terms with the weights of each."""
    self.remember(action)
    self.simulate(data)
    dt, forces, fallen = self.dt, data.actuator_force, self.has_fallen(data)
    terms = {
        "angvel": dt * data.sensor("cube_angvel").data[2],
        "linvel": dt * t.sizes(data.sensor("cube_linvel").data),
        "termination": dt * fallen,
        "action_rate": dt * t.distance(action, self.last_action),
        "pose": dt * self.pose_cost(data),
        "torques": dt * t.squares(forces),
        "energy": dt * t.power(data.qvel[: len(self.pose)], self.drives(data)),
    }
    return terms, {"fallen": fallen}


def spins(action_rate):
    """The step, rewarded with Playground's weights."""
    return reward_terms(
        angvel=1.0,
        linvel=0.0,
        pose=0.0,
        torques=0.0,
        energy=0.0,
        termination=-100.0,
        action_rate=action_rate,
    )(spin)


class LeapCubeRotateZAxis(Spinning, actions=16):
    """The LEAP hand spins a cube."""

    scene, action_scale = "manipulation/leap_hand/xmls/scene_mjx_cube.xml", 0.6
    tips = ("th_tip", "if_tip", "mf_tip", "rf_tip")
    observation_noise = {"joints": uniform(-0.05, 0.05)}
    observation_dict = {
        "policy": ("joints", "last_action"),
        "critic": ("joints", "last_action", *PRIVILEGED),
    }
    step = spins(action_rate=0.0)

    def observation(self, data, obs):
        obs["joints"] = data.qpos[:16]
        obs["last_action"] = self.last_action
        self.show_truth(data, obs)


class AeroCubeRotateZAxis(Spinning, actions=7):
    """TetherIA's Aero hand spins a cube: six tendons and the thumb's base are moved."""

    scene = "manipulation/aero_hand/xmls/scene_mjx_cube.xml"
    action_scale = (0.02, 0.02, 0.02, 0.02, 0.7, 0.003, 0.012)
    tips = ("if_tip", "mf_tip", "rf_tip", "pf_tip", "th_tip")
    lengths = ("len_if", "len_mf", "len_rf", "len_pf", "len_th1", "len_th2", "len_th_abd")
    sensors = (*Hand.sensors, *lengths)
    observation_noise = {"tendons": uniform(-0.005, 0.005), "thumb": uniform(-0.05, 0.05)}
    observation_dict = {
        "policy": ("tendons", "thumb", "last_action"),
        "critic": ("tendons", "thumb", "last_action", *PRIVILEGED),
    }
    step = spins(action_rate=-1.0)

    def setup(self):
        super().setup()
        self.lengths_at = self.model.sensor("len_if").adr[0]

    def first_targets(self, data):
        return self.held

    def drives(self, data):
        return data.qfrc_actuator[:16]

    def observation(self, data, obs):
        at = self.lengths_at
        obs["tendons"] = data.sensordata[at : at + 6]
        obs["thumb"] = data.sensor("len_th_abd").data
        obs["last_action"] = self.last_action
        self.show_truth(data, obs)


class LeapCubeReorient(Hand, actions=16):
    """The LEAP hand turns a cube as a goal is turned, which moves on when it is met.

    Attributes:
        noise: 1: the observation is noisy; 0: it is not.
        joint_noise, cube_noise, turn_noise: Greatest errors of joints [rad] and the cube's place
            [m]; standard deviation of its quaternion's.
        least_success: Angle between cube and goal at which it is met [rad].
        success_weight: Reward of that.
    """

    scene, action_scale = "manipulation/leap_hand/xmls/scene_mjx_cube.xml", 0.5
    tips = LeapCubeRotateZAxis.tips
    noise, joint_noise, cube_noise, turn_noise = 1.0, 0.05, 0.02, 0.1
    least_success, goal_place = 0.1, (0.25, 0.16, 0.0)
    observation_dict = {
        "policy": ("joints", "errors", "cube_offset", "cube_axes", "last_action"),
        "critic": (
            "joints", "errors", "cube_offset", "cube_axes", "last_action", "true_joints",
            "joint_velocities", "fingertips", "true_cube_offset", "true_cube_axes", "cube_linvel",
            "cube_angvel", "push_direction", "push",
        ),
    }  # fmt: skip

    targets, goal_turning, wrong = memory(16), memory(3), memory(23)
    goal, next_goal = memory(4), memory(4)

    def reset(self, data, rng):
        super().reset(data, rng)
        self.goal[:] = t.any_turn(rng)
        self.next_goal[:], data.mocap_quat[0] = self.goal, self.goal
        self.targets[:] = data.ctrl
        self.err(rng)

    def control(self, action, ctrl):
        self.aim(ctrl, self.targets, action)

    def err(self, rng):
        """Draws the observation's errors: of joints, the cube's place, and its quaternion."""
        for i in range(23):
            if i < 19:
                most = self.joint_noise if i < 16 else self.cube_noise
                self.wrong[i] = self.noise * rng.uniform(-most, most)
            else:
                self.wrong[i] = self.noise * self.turn_noise * rng.standard_normal()

    @reward_terms(
        orientation=5.0,
        position=0.5,
        termination=-100.0,
        hand_pose=-0.5,
        action_rate=-0.001,
        joint_vel=0.0,
        energy=-0.001,
        success=100.0,
    )
    def step(self, data, action, info, rng):
        self.goal[:] = self.next_goal
        self.remember(action)
        self.simulate(data)
        self.targets[:] = data.ctrl
        self.err(rng)
        dt, fallen, cube = self.dt, self.has_fallen(data), data.body("cube")
        angle = t.angle_of(t.turn_from(cube.xquat, self.goal))
        success = angle < self.least_success
        for i in range(3):
            drawn = 3.0 + rng.uniform(-2.0, 2.0)
            self.goal_turning[i] = drawn if success else 0.8 * self.goal_turning[i]
        turned = self.goal.copy()
        mujoco.mju_quatIntegrate(turned, self.goal_turning, 2.0 * dt)
        self.next_goal[:], data.mocap_quat[0] = turned, turned
        off = t.gap(data.site("grasp_site").xpos, cube.xpos)
        terms = {
            "orientation": dt * tolerance(angle, (0.0, 0.2), np.pi, LINEAR),
            "position": dt * tolerance(off, (0.0, 0.02), 0.05, LINEAR),
            "termination": dt * fallen,
            "hand_pose": dt * self.pose_cost(data),
            "action_rate": dt * t.jerk(action, self.last_action, self.action_before),
            "joint_vel": dt * t.squares(data.qvel[:16]) / 16.0,
            "energy": dt * t.power(data.qvel[:16], data.actuator_force),
            "success": success,
        }
        return terms, {"fallen": fallen}

    def axes_off(self, quat):
        """Two axes of the turn between a quaternion and the goal."""
        axes = np.zeros(9)
        mujoco.mju_quat2Mat(axes, t.turn_from(quat, self.goal))
        return axes[3:]

    def observation(self, data, obs):
        cube, joints = data.body("cube"), data.qpos[:16] + self.wrong[:16]
        offset = data.site("grasp_site").xpos - cube.xpos
        obs["joints"] = joints
        obs["errors"] = joints - self.targets
        obs["cube_offset"] = offset - self.wrong[16:19]
        seen = cube.xquat + self.wrong[19:]
        mujoco.mju_normalize4(seen)
        obs["cube_axes"] = self.axes_off(seen)
        obs["last_action"] = self.last_action
        obs["true_joints"] = data.qpos[:16]
        obs["joint_velocities"] = data.qvel[:16]
        obs["fingertips"] = self.fingertips(data)
        obs["true_cube_offset"] = offset
        obs["true_cube_axes"] = self.axes_off(cube.xquat)
        obs["cube_linvel"] = data.sensor("cube_linvel").data
        obs["cube_angvel"] = data.sensor("cube_angvel").data
        obs["push_direction"] = np.zeros(6)
        obs["push"] = np.zeros(6)
