"""G1 follows a motion that was recorded, on flat ground, by mjlab's terms.

Formulas: mjlab 1.6, tasks/tracking (tracking_env_cfg.py, config, mdp) and envs/mdp.
"""

import mujoco
import numpy as np

from pyfastenv.suites.mjlab.base import G1, G1_SOLE_FRICTION, OWN, body_poses, yaw_of
from pyfastenv.suites.mjlab.motion import load_motion
from pyfastenv.suites.playground import terms as t
from pyfastenv.tasks.language.fields import memory
from pyfastenv.tasks.language.helpers import in_frame
from pyfastenv.tasks.language.noise import uniform
from pyfastenv.tasks.language.randomise import shift
from pyfastenv.tasks.language.rewards import reward_terms

# bodies that follow, the root first; the one at which the motion is laid
BODIES = (
    "pelvis",
    *(f"left_{name}_link" for name in ("hip_roll", "knee", "ankle_roll")),
    *(f"right_{name}_link" for name in ("hip_roll", "knee", "ankle_roll")),
    "torso_link",
    *(f"left_{name}_link" for name in ("shoulder_roll", "elbow", "wrist_yaw")),
    *(f"right_{name}_link" for name in ("shoulder_roll", "elbow", "wrist_yaw")),
)
ANCHOR = BODIES.index("torso_link")
COUNT = len(BODIES)
ENDS = ("ankle_roll_link", "wrist_yaw_link")  # must be at about the motion's height
ESTIMATED = ("motion_anchor_pos_b", "base_lin_vel")
SEEN = (
    "command", "motion_anchor_pos_b", "motion_anchor_ori_b", "base_lin_vel", "base_ang_vel",
    "joint_pos", "joint_vel", "actions",
)  # fmt: skip
TRUE = tuple(f"true_{name}" for name in (*SEEN[:3], "body_pos", "body_ori", *SEEN[3:]))
_OF_BODY = mujoco.mjtObj.mjOBJ_XBODY


class TrackingFlatG1(G1):
    """mjlab's Mjlab-Tracking-Flat-Unitree-G1: a motion to follow, frame by frame.

    As in mjlab, a reward is of what the last substep was computed from; the motion's bodies are
    laid where the robot's torso was in the last observation; and after its last frame the robot is
    put back into some frame, within the episode.

    Attributes:
        motion_file: The motion, of 50 frames a second: :mod:`pyfastenv.suites.mjlab.motion`.
        sampling: In which frame an episode begins: any (``"uniform"``), or the first (``"start"``).
        pose_range, velocity_range, joint_position_range: The most that the state may differ from
            the frame's at first: the root's place and turns about the world's axes [m, rad], its
            velocities [m/s, rad/s], joints [rad].
    """

    max_episode_steps = 500
    motion_file, sampling = "", "uniform"
    encoder_bias, feet = 0.01, ()
    pose_range, joint_position_range = (0.05, 0.05, 0.01, 0.1, 0.1, 0.2), 0.1
    velocity_range = push_velocity = (0.5, 0.5, 0.2, 0.52, 0.52, 0.78)
    randomise = {
        "geom_friction": G1_SOLE_FRICTION,
        "body_ipos": [
            shift(-0.025, 0.025, of="robot/torso_link", columns=0),
            shift(-0.05, 0.05, of="robot/torso_link", columns=(1, 2)),
        ],
    }
    observation_noise = {
        "motion_anchor_pos_b": uniform(-0.25, 0.25),
        "motion_anchor_ori_b": uniform(-0.05, 0.05),
        "base_lin_vel": uniform(-0.5, 0.5),
        "base_ang_vel": uniform(-0.2, 0.2),
        "joint_pos": uniform(-0.01, 0.01),
        "joint_vel": uniform(-0.5, 0.5),
    }
    observation_dict = {"policy": SEEN, "critic": TRUE}

    # the motion's frame, where bodies were when last observed, how far off an episode was
    frame, places, turns, misses = memory(), memory(3 * COUNT), memory(4 * COUNT), memory(3)

    def setup(self):
        super().setup()
        if self.sampling not in ("uniform", "start"):
            raise ValueError(f"sampling: expected 'uniform' or 'start', got {self.sampling!r}")
        self.begins_anywhere = self.sampling == "uniform"
        self.is_end = np.array([name.endswith(ENDS) for name in BODIES])
        self.body_ids = np.array([self.model.body(f"robot/{name}").id for name in BODIES])
        bodies = np.flatnonzero(self.model.body_jntnum)
        motion = load_motion(self.motion_file, len(self.pose), len(bodies), 1.0 / self.dt)
        followed = np.searchsorted(bodies, self.body_ids)
        for name, values in motion.items():
            own = values if name.startswith("joint") else values[:, followed]
            setattr(self, f"motion_{name}", np.ascontiguousarray(own))

    def reset(self, data, rng):
        self.bias[:] = rng.uniform(-self.encoder_bias, self.encoder_bias, len(self.bias))
        self.push_in = rng.uniform(self.push_every[0], self.push_every[1])
        self.begin(data, rng)
        self.go_on(data, rng)

    def begin(self, data, rng):
        """Puts the robot near a frame of the motion."""
        frame = rng.integers(0, len(self.motion_joint_pos)) if self.begins_anywhere else 0
        self.frame = frame
        reach, own, quat = self.pose_range, np.zeros(4), np.zeros(4)
        data.qpos[:3] = self.motion_body_pos_w[frame, 0] + rng.uniform(-reach[:3], reach[:3])
        data.qpos[3:7] = self.motion_body_quat_w[frame, 0]
        for i in range(3):
            axis = np.zeros(3)
            axis[i] = 1.0
            mujoco.mju_axisAngle2Quat(own, axis, rng.uniform(-reach[3 + i], reach[3 + i]))
            mujoco.mju_mulQuat(quat, own, data.qpos[3:7])
            data.qpos[3:7] = quat
        change = rng.uniform(-self.velocity_range, self.velocity_range)
        data.qvel[:3] = self.motion_body_lin_vel_w[frame, 0] + change[:3]
        turning = self.motion_body_ang_vel_w[frame, 0] + change[3:]
        data.qvel[3:6] = in_frame(data.qpos[3:7], turning)
        most = self.joint_position_range
        joints = self.motion_joint_pos[frame] + rng.uniform(-most, most, len(self.pose))
        data.qpos[7:] = np.minimum(np.maximum(joints, self.lowest), self.highest)
        data.qvel[6:] = self.motion_joint_vel[frame]

    def go_on(self, data, rng):
        """Takes the next frame, and looks where bodies are in the new state."""
        self.frame += 1.0
        if self.frame >= len(self.motion_joint_pos):
            self.begin(data, rng)
        self.look(data)

    def look(self, data):
        """Keeps where bodies are in the new state, of which mjData knows no places yet."""
        places, turns = body_poses(self.model, data.qpos)
        for i in range(COUNT):
            self.places[3 * i : 3 * i + 3] = places[self.body_ids[i]]
            self.turns[4 * i : 4 * i + 4] = turns[self.body_ids[i]]

    @reward_terms(
        motion_global_root_pos=0.5,
        motion_global_root_ori=0.5,
        motion_body_pos=1.0,
        motion_body_ori=1.0,
        motion_body_lin_vel=1.0,
        motion_body_ang_vel=1.0,
        action_rate_l2=-0.1,
        joint_limit=-10.0,
        self_collisions=-10.0,
    )
    def step(self, data, action, info, rng):
        frame, dt = int(self.frame), self.dt
        hits = self.advance(data, action)
        wanted, wanted_turns = self.motion_body_pos_w[frame], self.motion_body_quat_w[frame]
        height, anchor = wanted[ANCHOR, 2], self.body_ids[ANCHOR]
        left = t.turn_from(self.turns[4 * ANCHOR : 4 * ANCHOR + 4], wanted_turns[ANCHOR])
        yaw = yaw_of(left)
        heading = np.array((np.cos(0.5 * yaw), 0.0, 0.0, np.sin(0.5 * yaw)))
        place, turn, own = np.zeros(3), np.zeros(4), np.zeros(6)
        far, turned, slow, spun, miss, strays = 0.0, 0.0, 0.0, 0.0, 0.0, False
        for i in range(COUNT):
            body = self.body_ids[i]
            mujoco.mju_rotVecQuat(place, wanted[i] - wanted[ANCHOR], heading)
            place[:2] += self.places[3 * ANCHOR : 3 * ANCHOR + 2]
            place[2] += height
            mujoco.mju_mulQuat(turn, heading, wanted_turns[i])
            mujoco.mj_objectVelocity(self.model, data, _OF_BODY, body, own, 0)
            gap = t.distance(place, data.xpos[body])
            far += gap
            miss += np.sqrt(gap)
            turned += np.square(t.angle_of(t.turn_from(turn, data.xquat[body])))
            slow += t.distance(self.motion_body_lin_vel_w[frame, i], own[3:])
            spun += t.distance(self.motion_body_ang_vel_w[frame, i], own[:3])
            if self.is_end[i] and abs(place[2] - data.xpos[body, 2]) > 0.25:
                strays = True
        off = t.distance(wanted[ANCHOR], data.xpos[anchor])
        lean = t.angle_of(t.turn_from(wanted_turns[ANCHOR], data.xquat[anchor]))
        terms = {
            "motion_global_root_pos": dt * np.exp(-off / 0.3**2),
            "motion_global_root_ori": dt * np.exp(-lean * lean / 0.4**2),
            "motion_body_pos": dt * np.exp(-far / COUNT / 0.3**2),
            "motion_body_ori": dt * np.exp(-turned / COUNT / 0.4**2),
            "motion_body_lin_vel": dt * np.exp(-slow / COUNT),
            "motion_body_ang_vel": dt * np.exp(-spun / COUNT / 3.14**2),
            "action_rate_l2": dt * t.distance(action, self.last_action),
            "joint_limit": dt * t.beyond(data.qpos[7:], self.lowest, self.highest),
            "self_collisions": dt * hits[OWN],
        }
        quat = wanted_turns[ANCHOR]
        upright = 1.0 - 2.0 * (quat[1] * quat[1] + quat[2] * quat[2])
        ends = {
            "anchor_pos": abs(height - data.xpos[anchor, 2]) > 0.25,
            "anchor_ori": abs(upright - data.xmat[anchor, 8]) > 0.8,
            "ee_body_pos": strays,
        }
        self.misses[0] += 1.0
        self.misses[1] += miss / COUNT
        self.misses[2] += t.gap(data.qpos[7:], self.motion_joint_pos[frame])
        info["episode_error_body_pos"] = self.misses[1] / self.misses[0]
        info["episode_error_joint_pos"] = self.misses[2] / self.misses[0]
        self.last_action[:] = action
        self.suffer_pushes(data, rng)
        self.go_on(data, rng)
        return terms, ends

    def observation(self, data, obs):
        frame = int(self.frame)
        place = self.places[3 * ANCHOR : 3 * ANCHOR + 3]
        quat = self.turns[4 * ANCHOR : 4 * ANCHOR + 4]
        command = np.concatenate((self.motion_joint_pos[frame], self.motion_joint_vel[frame]))
        ahead = in_frame(quat, self.motion_body_pos_w[frame, ANCHOR] - place)
        turn = axes(quat, self.motion_body_quat_w[frame, ANCHOR])
        velocity, joints = self.imu_velocity(data), data.qpos[7:] - self.pose
        obs["command"] = command
        self.estimate_place(obs, ahead)
        obs["motion_anchor_ori_b"] = turn
        self.estimate_velocity(obs, velocity)
        obs["base_ang_vel"] = data.qvel[3:6]
        obs["joint_pos"] = joints + self.bias
        obs["joint_vel"] = data.qvel[6:]
        obs["actions"] = self.last_action
        body_pos, body_ori = np.zeros(3 * COUNT), np.zeros(6 * COUNT)
        for i in range(COUNT):
            body_pos[3 * i : 3 * i + 3] = in_frame(quat, self.places[3 * i : 3 * i + 3] - place)
            body_ori[6 * i : 6 * i + 6] = axes(quat, self.turns[4 * i : 4 * i + 4])
        obs["true_command"] = command
        obs["true_motion_anchor_pos_b"] = ahead
        obs["true_motion_anchor_ori_b"] = turn
        obs["true_body_pos"] = body_pos
        obs["true_body_ori"] = body_ori
        obs["true_base_lin_vel"] = velocity
        obs["true_base_ang_vel"] = data.qvel[3:6]
        obs["true_joint_pos"] = joints
        obs["true_joint_vel"] = data.qvel[6:]
        obs["true_actions"] = self.last_action

    def estimate_place(self, obs, ahead):
        obs["motion_anchor_pos_b"] = ahead

    def estimate_velocity(self, obs, velocity):
        obs["base_lin_vel"] = velocity


class TrackingFlatG1NoStateEstimation(TrackingFlatG1):
    """mjlab's Mjlab-Tracking-Flat-Unitree-G1-No-State-Estimation: its policy sees no estimates."""

    _noise = TrackingFlatG1.observation_noise
    observation_noise = {name: each for name, each in _noise.items() if name not in ESTIMATED}
    observation_dict = {"policy": tuple(n for n in SEEN if n not in ESTIMATED), "critic": TRUE}

    def estimate_place(self, obs, ahead):
        """Leaves the motion's place out."""

    def estimate_velocity(self, obs, velocity):
        """Leaves the velocity out."""


def axes(quat, other):
    """The first two columns of a turn's matrix in another's frame, row by row, ``(6,)``."""
    back, turn, matrix = np.zeros(4), np.zeros(4), np.zeros(9)
    mujoco.mju_negQuat(back, quat)
    mujoco.mju_mulQuat(turn, back, other)
    mujoco.mju_quat2Mat(matrix, turn)
    return np.array((matrix[0], matrix[1], matrix[3], matrix[4], matrix[6], matrix[7]))
