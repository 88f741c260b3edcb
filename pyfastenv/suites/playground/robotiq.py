"""A Panda with Robotiq's gripper pushes a box.

Formulas: MuJoCo Playground 0.2, push_cube.py and panda_robotiq.py in
_src/manipulation/franka_emika_panda_robotiq.
"""

import mujoco
import numpy as np

from pyfastenv.suites.dm_control.rewards import LINEAR, RECIPROCAL, tolerance
from pyfastenv.suites.playground import terms as t
from pyfastenv.suites.playground.base import Robot
from pyfastenv.suites.playground.panda import HAND
from pyfastenv.tasks.language.fields import memory
from pyfastenv.tasks.language.rewards import reward_terms

PUSHERS = tuple(
    f"{side}_{part}"
    for side in ("left", "right")
    for part in ("coupler_col_1", "coupler_col_2", "follower_pad2")
)
SEEN, LATEST = 48, 30  # numbers of an observation; observations that are kept


class PandaRobotiqPushCube(Robot, actions=7):
    """A Panda's torques push a box to a target; actions and observations come late.

    A target that has been met long enough is drawn anew, farther away each time. Terms are divided
    by the weights' sum. Playground's trainers repeat each action in four steps.

    Attributes:
        action_delay, obs_delay: The least, and one more than the most, of steps that these come
            late; drawn in every step. The first observation is the start's, those before it zero.
        noise: 1: the observation is noisy, with the errors that follow; 0: it is not.
        box_error, joint_error, speed_error, gripper_error: Greatest [m, rad, rad/s, m].
        box_turn, gripper_turn: Greatest, about a random axis [rad].
        place: Greatest distance of the box from its place at the start, aside; forward 0.4 of it
            [m].
        box_far, turn_far: Greatest distances of targets: the start's, then of each that is met [m,
            rad].
        hold_steps: For how long a target is to be met.
        termination_weight, success_weight, success_wait_weight: Of failing, of a target that has
            been held, and of one that is met.
    """

    max_episode_steps, ccd_iterations, action_scale = 3000, 10, 0.1
    scene = "manipulation/franka_emika_panda_robotiq/xmls/scene_panda_robotiq_cube.xml"
    collisions = tuple((part, ground) for ground in ("wall", "floor") for part in HAND)
    action_delay, obs_delay = (1, 3), (6, 12)
    noise, box_error, joint_error, speed_error, gripper_error = 1.0, 0.015, 0.1, 0.1, 0.02
    box_turn, gripper_turn = np.deg2rad(7.5), np.deg2rad(5.0)
    place = 0.15
    box_far = (0.05, 0.05, 0.1, 0.2, 0.2)
    turn_far = tuple(np.deg2rad((45, 45, 90, 135, 180)).tolist())
    hold_steps = 30
    least_joint = (-2.8973, -1.7628, -2.8973, -3.0718, -2.8973, -0.0175, -2.8973)
    most_joint = (2.8973, 1.7628, 2.8973, -0.0698, 2.8973, 3.7525, 2.8973)
    most_speed = (2.175, 2.175, 2.175, 2.175, 2.61, 2.61, 2.61)
    most_torque = tuple(8.0 / gear for gear in (150.0, 150.0, 150.0, 150.0, 20.0, 20.0, 20.0))
    bend = (0.06, 0.06, 0.06, 0.06, 0.09, 0.09, 0.09)

    # the delayed actions of this step and of the one before, the latest actions, the next's delay
    late, late_before, sent, delay = memory(7), memory(7), memory(35), memory()
    row, seen, history = memory(SEEN), memory(SEEN), memory(SEEN * LATEST)
    held_for, level = memory(), memory()

    def setup(self):
        super().setup()
        for name, latest in (("action_delay", 5), ("obs_delay", LATEST - 1)):
            least, end = getattr(self, name)
            if not 0 <= least < end <= latest + 1:
                raise ValueError(
                    f"PandaRobotiqPushCube.{name}: expected a least from 0 on and a greater end up "
                    f"to {latest + 1}, got {least} and {end}"
                )
        self.pushers = np.array([self.model.geom(name).id for name in PUSHERS])
        self.box_geom = self.model.geom("box").id

    def reset(self, data, rng):
        turn, spot = np.zeros(4), self.place_near(rng, self.place)
        data.qpos[:], data.ctrl[:] = self.home, self.held
        for i in range(7):
            least, most = self.bend[i] * self.least_joint[i], self.bend[i] * self.most_joint[i]
            data.qpos[i] += rng.uniform(least, most)
        data.qpos[-7:-5] = spot[:2]
        self.turn_up(rng, turn, 2.0 * np.pi)
        data.qpos[-4:] = turn
        data.mocap_pos[0] = self.place_near(rng, self.box_far[0])
        self.turn_target(data, rng, turn, self.turn_far[0])
        self.delay = 1.0 * rng.integers(int(self.action_delay[0]), int(self.action_delay[1]))
        mujoco.mj_forward(self.model, data)
        self.look(data, rng)
        self.seen[:] = self.row

    def place_near(self, rng, far):
        """A place near the box's at the start [m]."""
        spot, start = np.zeros(3), self.home[-7:-4]
        spot[0] = min(max(start[0] + rng.uniform(-0.4 * far, 0.4 * far), 0.4), 0.65)
        spot[1] = min(max(start[1] + rng.uniform(-far, far), -0.2), 0.2)
        spot[2] = min(max(start[2] + rng.uniform(-0.005, 0.005), -0.005), 0.04)
        return spot

    def turn_up(self, rng, turn, most):
        """Draws a turn about the vertical."""
        half = 0.5 * rng.uniform(0.0, most)
        turn[:] = np.cos(half), 0.0, 0.0, np.sin(half)

    def turn_target(self, data, rng, box, most):
        """Turns the target away from the box."""
        turn, turned = np.zeros(4), np.zeros(4)
        self.turn_up(rng, turn, most)
        mujoco.mju_mulQuat(turned, box, turn)
        data.mocap_quat[0] = turned

    def delayed(self, action, i):
        """A number of the action that arrives in this step."""
        return action[i] if self.delay < 1.0 else self.sent[7 * int(self.delay) - 7 + i]

    def control(self, action, ctrl):
        for i in range(7):
            most = self.most_torque[i]
            ctrl[i] = min(max(self.action_scale * self.delayed(action, i), -most), most)
        ctrl[7] = self.held[7]
        for i in range(8):
            ctrl[i] = min(max(ctrl[i], self.least_target[i]), self.most_target[i])

    @reward_terms(
        gripper_box=2.0,
        box_target=8.0,
        box_orientation=6.0,
        gripper_collision_side=1.0,
        robot_target_qpos=0.75,
        joint_vel=1.0,
        joint_vel_limit=3.0,
        total_command=-0.1,
        action_rate=-0.1,
        termination=-50.0,
        success_wait=3.0,
        success=500.0,
    )
    def step(self, data, action, info, rng):
        self.simulate(data)
        for i in range(7):
            self.late_before[i], self.late[i] = self.late[i], self.delayed(action, i)
        t.push_front(self.sent, action)
        dt, box, target = self.dt, data.body("box"), data.mocap_pos[0].copy()
        share = dt / (
            self.gripper_box_weight
            + self.box_target_weight
            + self.box_orientation_weight
            + self.gripper_collision_side_weight
            + self.robot_target_qpos_weight
            + self.joint_vel_weight
            + self.joint_vel_limit_weight
            + self.total_command_weight
            + self.action_rate_weight
        )
        off, angle = t.gap(target, box.xpos), t.angle_of(t.turn_from(box.xquat, data.mocap_quat[0]))
        # where the gripper is to be: behind the box
        behind = box.xpos + (0.1 * (off > 1e-3) / max(off, 1e-3)) * (box.xpos - target)
        reached = t.gap(behind, data.site("gripper").xpos)
        bent, speed = t.gap(self.home[:7], data.qpos), t.length(data.qvel[:7])
        fails, met = self.fails(data), off < 0.03 and angle < np.deg2rad(10.0)
        success = met and self.held_for >= self.hold_steps
        self.held_for = self.held_for + 1.0 if met and not success else 0.0
        terms = {
            "gripper_box": share * tolerance(reached, (0.0, 0.1), 1.0, LINEAR),
            "box_target": share
            * tolerance(t.gap(target[:2], box.xpos), (0.0, 0.005), 0.4, RECIPROCAL),
            "box_orientation": share * tolerance(angle, (0.0, 0.2), np.pi, RECIPROCAL),
            "gripper_collision_side": share * self.pushes_aside(data),
            "robot_target_qpos": share * tolerance(bent, (0.0, 0.5), 4.5, LINEAR),
            "joint_vel": share * tolerance(speed, (0.0, 0.5), 2.0, RECIPROCAL),
            "joint_vel_limit": share * (not self.is_fast(data)),
            "total_command": share * t.length(action),
            "action_rate": share * t.gap(action, self.late_before),
            "termination": dt * fails,
            "success_wait": dt * met,
            "success": dt * success,
        }
        if success:
            self.level += 1.0
            i = min(int(self.level), len(self.box_far) - 1)
            data.mocap_pos[0] = self.place_near(rng, self.box_far[i])
            self.turn_target(data, rng, box.xquat, self.turn_far[i])
        self.look(data, rng)
        t.push_front(self.history, self.row)
        at = SEEN * rng.integers(int(self.obs_delay[0]), int(self.obs_delay[1]))
        self.seen[:] = self.history[at : at + SEEN]
        self.delay = 1.0 * rng.integers(int(self.action_delay[0]), int(self.action_delay[1]))
        return terms, {"failed": fails}

    def fails(self, data):
        """Whether box or gripper leave the table, the hand touches it, or a joint nears a limit."""
        box, hand = data.body("box").xpos, data.site("gripper").xpos
        gone = box[2] < -0.01 or hand[2] > 0.5
        for place in (box, hand):
            gone = gone or place[0] > 0.75 or place[0] < 0.3 or place[1] > 0.7 or place[1] < -0.5
        for i in range(7):
            angle = data.qpos[i]
            gone = gone or angle > 0.9 * self.most_joint[i] or angle < 0.9 * self.least_joint[i]
        return gone or t.sizes(self.touching(data)) > 0.0

    def is_fast(self, data):
        """Whether some joint is near its greatest speed."""
        fast = False
        for i in range(7):
            fast = fast or abs(data.qvel[i]) > 0.9 * self.most_speed[i]
        return fast

    def pushes_aside(self, data):
        """1 where the gripper's deepest contacts push from the side in the mean, 0 from above."""
        normal = np.zeros(3)
        for k in range(len(self.pushers)):
            deepest, found = np.inf, np.zeros(3)
            for i in range(data.ncon):
                contact = data.contact[i]
                is_first = contact.geom1 == self.pushers[k] and contact.geom2 == self.box_geom
                is_second = contact.geom2 == self.pushers[k] and contact.geom1 == self.box_geom
                if (is_first or is_second) and contact.dist < deepest:
                    deepest = contact.dist
                    found[:] = contact.frame[:3]
                    if is_second:
                        found[:] = -found
            normal += found
        size = t.length(normal)
        return t.length(normal[:2]) / size if size > 1e-6 else 0.0  # opposite ones cancel

    def look(self, data, rng):
        """Writes what is seen now."""
        row, box, hand = self.row, data.body("box"), data.site("gripper")
        wrong, turned, axes, other = np.zeros(4), np.zeros(4), np.zeros(9), np.zeros(9)
        mujoco.mju_quat2Mat(axes, data.mocap_quat[0])
        row[:3], row[3:9], row[9:16] = data.mocap_pos[0], axes[3:], self.late_before
        share = self.noise * rng.random()  # of joints' and the gripper's axes' error, as there
        row[16:23] = data.qpos[:7] + share * self.joint_error
        row[23:30] = data.qvel[:7] + self.noise * rng.uniform(0.0, self.speed_error)
        row[30:33] = hand.xpos + self.noise * rng.uniform(0.0, self.gripper_error)
        mujoco.mju_axisAngle2Quat(wrong, t.any_axis(rng), share * self.gripper_turn)
        mujoco.mju_quat2Mat(other, wrong)
        axes[:] = hand.xmat
        for i in range(1, 3):
            for j in range(3):
                total = 0.0
                for k in range(3):
                    total += other[3 * i + k] * axes[3 * k + j]
                row[30 + 3 * i + j] = total
        angle = self.noise * rng.uniform(0.0, self.box_turn)
        mujoco.mju_axisAngle2Quat(wrong, t.any_axis(rng), angle)
        mujoco.mju_mulQuat(turned, wrong, box.xquat)
        mujoco.mju_quat2Mat(axes, turned)
        row[39:45] = axes[3:]
        row[45:] = box.xpos + self.noise * rng.uniform(-self.box_error, self.box_error, 3)

    def observation(self, data, obs):
        obs["target"] = self.seen[:3]
        obs["target_axes"] = self.seen[3:9]
        obs["last_action"] = self.seen[9:16]
        obs["angles"] = self.seen[16:23]
        obs["velocities"] = self.seen[23:30]
        obs["gripper"] = self.seen[30:33]
        obs["gripper_axes"] = self.seen[33:39]
        obs["box_axes"] = self.seen[39:45]
        obs["box"] = self.seen[45:]
