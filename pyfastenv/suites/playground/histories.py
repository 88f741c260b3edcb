"""Barkour and OP3 follow a joystick, and see some steps of the past.

Formulas: MuJoCo Playground 0.2, joystick.py of _src/locomotion/{barkour,op3}.
"""

import mujoco
import numpy as np

from pyfastenv.suites.playground import terms as t
from pyfastenv.suites.playground.legged import Legged
from pyfastenv.tasks.language.commands import MOTION
from pyfastenv.tasks.language.fields import command, memory
from pyfastenv.tasks.language.noise import uniform
from pyfastenv.tasks.language.rewards import reward_terms
from pyfastenv.tasks.language.symmetry import (
    AXIAL_VECTOR,
    VECTOR,
    Symmetry,
    actuator_mirror,
    joined,
    joint_mirror,
    mirror,
)

FEET = ("foot_front_left", "foot_hind_left", "foot_front_right", "foot_hind_right")


class Remembering(Legged):
    """A robot whose observation has the frames of its latest steps, the newest first.

    Attributes:
        velocity: The command, in the robot's frame: forward, sideways [m/s], turning [rad/s].
        tracking_sigma: Squared error at which a reward for tracking is 1/e.
        least_upright, least_height: Of the trunk, below which the robot has fallen; [m].
        late: Steps since the command was drawn from which on a fall costs nothing.
        num_frames, turning: How many frames; how the turning in front of each mirrors.
    """

    observation_noise = {"frames": uniform(-0.05, 0.05)}
    tracking_sigma, least_upright, least_height, late = 0.25, 0.0, 0.0, 500
    action_scale = 0.3

    told_for = memory()

    def symmetry(self):
        """The mirrors of actions and of all frames."""
        actions = actuator_mirror(self.model, 0.05)
        parts = (self.turning, VECTOR, mirror((0,), (1, -1, -1)), joint_mirror(self.model, 0.05))
        frame = joined(*parts, actions)
        return Symmetry(actions, {"frames": joined(*[frame] * self.num_frames)})

    def reset(self, data, rng):
        super().reset(data, rng)
        mujoco.mj_forward(self.model, data)
        self.see(data)

    def control(self, action, ctrl):
        self.aim(ctrl, self.pose, action)

    def see(self, data):
        """Puts a frame in front of the others."""
        frame = self.frame(data)
        for i in range(len(frame)):
            frame[i] = min(max(frame[i], -100.0), 100.0)
        t.push_front(self.frames, frame)

    def falls(self, data):
        """Whether the robot has fallen, or a joint is beyond what its servo can be told."""
        leans = data.sensor("upvector").data[2] < self.least_upright
        is_low = data.xpos[self.trunk_id, 2] < self.least_height
        return leans or is_low or self.is_bent_too_far(data)

    def early(self):
        """Whether a fall costs; counts steps since the command was drawn, as Playground does."""
        is_early = self.told_for < self.late
        self.told_for += 1.0
        if self.told_for > 500.0:
            self.told_for = 0.0
        return is_early

    def observation(self, data, obs):
        obs["frames"] = self.frames


class BarkourJoystick(Remembering, joints=12, feet=4):
    """Google's Barkour walks as it is told, and is kicked."""

    scene, trunk = "mujoco_menagerie/google_barkour_vb/scene_mjx.xml", "torso"
    imu = "imu_frame"
    soles, stands = FEET, tuple((foot,) for foot in FEET)
    stiffness, damping, least_height = 35.0, 0.5239, 0.18
    kick, kick_least, kick_duration = 1.0, 0.1, (0.02, 0.2)
    velocity = command(low=(-0.6, -0.8, -0.7), high=(1.5, 0.8, 0.7), every=10.02, names=MOTION)

    num_frames, turning = 15, mirror((0,), (-1,))
    frames = memory(15 * 31)

    def setup(self):
        super().setup()
        self.least_target = np.array((-0.7, -1.0, 0.05) * 4)
        self.most_target = np.array((0.52, 2.1, 2.1) * 4)

    def frame(self, data):
        told = self.velocity * np.array((2.0, 2.0, 0.25))
        turn = np.array((0.25 * data.sensor("gyro").data[2],))
        up, joints = data.sensor("upvector").data, data.qpos[7:] - self.pose
        return np.concatenate((turn, up, told, joints, self.last_action))

    @reward_terms(
        0.0,
        tracking_lin_vel=1.5,
        tracking_ang_vel=0.8,
        lin_vel_z=-2.0,
        ang_vel_xy=-0.05,
        orientation=-5.0,
        torques=-0.0002,
        action_rate=-0.1,
        stand_still=-0.5,
        termination=-1.0,
        feet_air_time=0.2,
    )
    def step(self, data, action, info, rng):
        self.suffer_kicks(data, rng)
        self.remember(action)
        self.remember_feet()
        self.simulate(data)
        self.feel(data)
        self.see(data)
        told, dt, fallen = self.velocity, self.dt, self.falls(data)
        follows, turns, rises, rolls, leans = self.motion(data, self.velocity)
        over_ground = t.length(told[:2])
        stands = over_ground > 0.0 and told[1] / over_ground < 0.1
        terms = {
            "tracking_lin_vel": dt * follows,
            "tracking_ang_vel": dt * turns,
            "lin_vel_z": dt * rises,
            "ang_vel_xy": dt * rolls,
            "orientation": dt * leans,
            "torques": dt * t.effort(data.qfrc_actuator),
            "action_rate": dt * t.distance(action, self.last_action),
            "stand_still": dt * stands * t.apart(data.qpos[7:], self.pose),
            "termination": dt * (self.early() and fallen),
            "feet_air_time": dt
            * (over_ground > 0.05)
            * t.flight(self.air_time, self.landed, 0.1, np.inf),
        }
        return terms, {"fallen": fallen}


class Op3Joystick(Remembering, joints=20, feet=2):
    """Robotis' OP3 walks as it is told."""

    scene, keyframe = "locomotion/op3/xmls/scene_mjx_feetonly.xml", "stand_bent_knees"
    trunk, soles = "body_link", ("left_foot", "right_foot")
    stands = tuple(tuple(f"{side}_foot{i}" for i in (1, 2)) for side in "lr")
    stiffness, damping, least_upright, least_height = 21.1, 1.084, 0.85, 0.21
    ccd_iterations, max_foot_height = 10, 0.07
    velocity = command(
        low=(-0.6, -0.8, -0.7), high=(1.5, 0.8, 0.7), every=10.02, standing=0.1, names=MOTION
    )

    num_frames, turning = 3, AXIAL_VECTOR
    frames = memory(3 * 49)

    def frame(self, data):
        gyro, up = data.sensor("gyro").data, data.sensor("upvector").data
        joints = data.qpos[7:] - self.pose
        return np.concatenate((gyro, up, self.velocity, joints, self.last_action))

    @reward_terms(
        0.0,
        tracking_lin_vel=1.5,
        tracking_ang_vel=0.8,
        lin_vel_z=-2.0,
        ang_vel_xy=-0.05,
        orientation=-5.0,
        torques=-0.0002,
        action_rate=-0.01,
        zero_cmd=-0.5,
        termination=-1.0,
        feet_slip=-0.1,
        feet_clearance=0.0,
        energy=-0.0001,
    )
    def step(self, data, action, info):
        self.remember(action)
        self.simulate(data)
        self.see(data)
        dt, forces, fallen = self.dt, data.actuator_force, self.falls(data)
        follows, turns, rises, rolls, leans = self.motion(data, self.velocity)
        speeds, off, heights = self.ground_speeds(data), 0.0, self.heights(data)
        for i in range(2):
            off += np.square(heights[i] - self.max_foot_height) * np.sqrt(np.sqrt(speeds[i]))
        terms = {
            "tracking_lin_vel": dt * follows,
            "tracking_ang_vel": dt * turns,
            "lin_vel_z": dt * rises,
            "ang_vel_xy": dt * rolls,
            "orientation": dt * leans,
            "torques": dt * t.effort(forces),
            "action_rate": dt * t.jerk(action, self.last_action, self.action_before),
            "zero_cmd": dt * (t.length(self.velocity) < 0.1) * t.squares(action),
            "termination": dt * (self.early() and fallen),
            "feet_slip": dt * t.slip(speeds, self.standing(data)),
            "feet_clearance": dt * off,
            "energy": dt * t.power(data.qvel[6:], forces),
        }
        return terms, {"fallen": fallen}
