"""Go1: follow a joystick, on flat and on rough ground; stand on two feet.

Formulas: MuJoCo Playground 0.2, _src/locomotion/go1/joystick.py, handstand.py and base.py.
"""

import numpy as np

from pyfastenv.suites.playground import terms as t
from pyfastenv.suites.playground.legged import Legged
from pyfastenv.tasks.language.commands import MOTION
from pyfastenv.tasks.language.fields import command, memory
from pyfastenv.tasks.language.noise import uniform
from pyfastenv.tasks.language.rewards import reward_terms

FEET = ("FR", "FL", "RR", "RL")
NOISE = {
    "linvel": uniform(-0.1, 0.1),
    "gyro": uniform(-0.2, 0.2),
    "gravity": uniform(-0.05, 0.05),
    "joints": uniform(-0.03, 0.03),
    "joint_velocities": uniform(-1.5, 1.5),
}
BODY = ("gyro", "gravity", "joints", "joint_velocities", "last_action")
TRUTH = (
    "true_gyro", "accelerometer", "true_linvel", "angvel", "angles", "true_joint_velocities",
    "torques", "height",
)  # fmt: skip
STATE = ("linvel", *BODY, "command")
PRIVILEGED = (
    "true_gyro", "accelerometer", "true_gravity", "true_linvel", "angvel", "true_joints",
    "true_joint_velocities", "torques", "contacts", "feet_velocities", "air_time", "kick_force",
    "kicked",
)  # fmt: skip


class Go1(Legged, joints=12, feet=4):
    """Unitree's Go1."""

    trunk = "trunk"
    soles: tuple[str, ...] = FEET
    stands = tuple((foot,) for foot in FEET)
    stiffness: float | tuple[float, ...] = 35.0
    ccd_iterations, damping = 20, 0.5
    place, heading, speed, holds = 0.5, 3.14, 0.5, True

    misses = memory(3)  # steps, and the sums of errors [m/s, rad/s]

    def note_misses(self, data, told, info):
        """Shows the means of the episode's errors."""
        linvel, gyro = data.sensor("local_linvel").data, data.sensor("gyro").data
        t.note_misses(self.misses, told, linvel, gyro[2], info)

    def show_body(self, data, obs):
        """Writes what all policies see of the robot."""
        obs["gyro"] = data.sensor("gyro").data
        obs["gravity"] = -data.site("imu").xmat[6:]
        obs["joints"] = data.qpos[7:] - self.pose
        obs["joint_velocities"] = data.qvel[6:]
        obs["last_action"] = self.last_action

    def show_fallen(self, data, obs):
        """Writes what critics see besides, where the robot does not walk."""
        obs["true_gyro"] = data.sensor("gyro").data
        obs["accelerometer"] = data.sensor("accelerometer").data
        obs["true_linvel"] = data.sensor("local_linvel").data
        obs["angvel"] = data.sensor("global_angvel").data
        obs["angles"] = data.qpos[7:]
        obs["true_joint_velocities"] = data.qvel[6:]
        obs["torques"] = data.actuator_force
        obs["height"] = data.site("imu").xpos[2]


class Go1JoystickFlatTerrain(Go1):
    """Unitree's Go1 walks forward, sideways and turns as it is told.

    Attributes:
        velocity: The command, in the robot's frame: forward, sideways [m/s], turning [rad/s].
        tracking_sigma: Squared error at which a reward for tracking is 1/e.
        max_foot_height: How high a foot is to be lifted [m].
        soft_limit: Share of joints' limits beyond which they cost.

    Its term ``fall``, which Playground has not, costs beside the reward's least of 0.
    """

    scene = "locomotion/go1/xmls/scene_mjx_feetonly_flat_terrain.xml"
    observation_dict = {"policy": STATE, "critic": (*STATE, *PRIVILEGED)}
    observation_noise = NOISE
    velocity = command(
        low=(-1.5, -0.8, -1.2),
        high=(1.5, 0.8, 1.2),
        every=(0.02, 20.0),
        standing=(0.1, 0.75, 0.5),
        names=MOTION,
    )
    tracking_sigma, max_foot_height = 0.25, 0.1
    pose_weights = (1.0, 1.0, 0.1) * 4

    def setup(self):
        super().setup()
        self.lowest, self.highest = self.soft_limit * self.model.jnt_range[1:].T

    @reward_terms(
        0.0,
        ["fall"],
        tracking_lin_vel=1.0,
        tracking_ang_vel=0.5,
        lin_vel_z=-0.5,
        ang_vel_xy=-0.05,
        orientation=-5.0,
        stand_still=-1.0,
        termination=-1.0,
        pose=0.5,
        torques=-0.0002,
        action_rate=-0.01,
        energy=-0.001,
        feet_slip=-0.1,
        feet_clearance=-2.0,
        feet_height=-0.2,
        feet_air_time=0.1,
        dof_pos_limits=-1.0,
        fall=0.0,
    )
    def step(self, data, action, info, rng):
        if self.kick > 0.0:
            self.suffer_kicks(data, rng)
        if self.is_pushed():
            self.suffer_pushes(data, rng)
        self.remember(action)
        self.remember_feet()
        self.simulate(data)
        self.feel(data)
        told, dt, speeds = self.velocity, self.dt, self.ground_speeds(data)
        angles, forces, moves = data.qpos[7:], data.actuator_force, t.length(told) > 0.01
        follows, turns, rises, rolls, leans = self.motion(data, self.velocity)
        fallen = data.sensor("upvector").data[2] < 0.0
        self.note_misses(data, told, info)
        terms = {
            "tracking_lin_vel": dt * follows,
            "tracking_ang_vel": dt * turns,
            "lin_vel_z": dt * rises,
            "ang_vel_xy": dt * rolls,
            "orientation": dt * leans,
            "stand_still": dt * (not moves) * t.apart(angles, self.pose),
            "termination": dt * fallen,
            "pose": dt * np.exp(-t.weighted(angles, self.pose, self.pose_weights)),
            "torques": dt * t.effort(forces),
            "action_rate": dt * t.distance(action, self.last_action),
            "energy": dt * t.power(data.qvel[6:], forces),
            "feet_slip": dt * moves * t.slip(speeds, self.contact),
            "feet_clearance": dt * t.clearance(speeds, self.heights(data), self.max_foot_height),
            "feet_height": dt
            * moves
            * t.swing_error(self.swing_peak, self.landed, self.max_foot_height),
            "feet_air_time": dt * moves * t.flight(self.air_time, self.landed, 0.1, np.inf),
            "dof_pos_limits": dt * t.beyond(angles, self.lowest, self.highest),
            "fall": 1.0 * fallen,
        }
        return terms, {"fallen": fallen}

    def observation(self, data, obs):
        obs["linvel"] = data.sensor("local_linvel").data
        self.show_body(data, obs)
        obs["command"] = self.velocity
        self.show_truth(data, obs)
        obs["torques"] = data.actuator_force
        obs["contacts"] = self.last_contact
        obs["feet_velocities"] = self.feet_velocities(data)
        obs["air_time"] = self.air_time
        obs["kick_force"] = data.xfrc_applied[self.trunk_id, :3]
        obs["kicked"] = self.is_kicked()


class Go1JoystickRoughTerrain(Go1JoystickFlatTerrain):
    """Unitree's Go1 follows a joystick over a height field of rocks."""

    scene = "locomotion/go1/xmls/scene_mjx_feetonly_rough_terrain.xml"
