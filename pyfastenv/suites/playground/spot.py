"""Spot follows a joystick.

Formulas: MuJoCo Playground 0.2, _src/locomotion/spot/joystick.py and base.py.
"""

import numpy as np

from pyfastenv.suites.playground import terms as t
from pyfastenv.suites.playground.legged import TORSO, Legged
from pyfastenv.tasks.language.commands import MOTION
from pyfastenv.tasks.language.fields import command, memory
from pyfastenv.tasks.language.noise import uniform
from pyfastenv.tasks.language.rewards import reward_terms

FEET = ("FL", "FR", "HL", "HR")
STATE = ("gyro", "upvector", "joints", "errors", "feet_places", "last_action", "command")
PRIVILEGED = (
    "true_gyro", "accelerometer", "true_upvector", "linvel", "angvel", "true_joints",
    "true_feet_places", "joint_velocities", "torques", "contacts", "feet_velocities", "air_time",
    "kick_force",
)  # fmt: skip


class Spot(Legged, joints=12, feet=4):
    """Boston Dynamics' Spot."""

    trunk = "body"
    soles, stands = FEET, tuple((foot,) for foot in FEET)


class SpotFlatTerrainJoystick(Spot):
    """Boston Dynamics' Spot walks forward, sideways and turns as it is told.

    Attributes:
        velocity: The command, in the robot's frame: forward, sideways [m/s], turning [rad/s].
        tracking_sigma: Squared error at which a reward for tracking is 1/e.
        max_foot_height: How high a foot is to be lifted [m].
    """

    scene = "locomotion/spot/xmls/scene_mjx_feetonly_flat_terrain.xml"
    stiffness, damping, action_scale = 300.0, 1.0, 0.3
    sensors = (*TORSO, *(f"{foot}_pos" for foot in FEET))
    observation_dict = {"policy": STATE, "critic": (*STATE, *PRIVILEGED)}
    observation_noise = {
        "gyro": uniform(-0.1, 0.1),
        "upvector": uniform(-0.03, 0.03),
        "joints": uniform(-0.05, 0.05),
        "errors": uniform(-0.05, 0.05),
        "feet_places": uniform((-0.01, -0.005, -0.02) * 4, (0.01, 0.005, 0.02) * 4),
    }
    velocity = command(
        low=(-1.0, -0.8, -1.0), high=(1.0, 0.8, 1.0), every=4.02, standing=0.1, names=MOTION
    )
    tracking_sigma, max_foot_height = 0.25, 0.12

    errors = memory(36)

    def setup(self):
        super().setup()
        self.places_at = np.array([self.model.sensor(f"{foot}_pos").adr[0] for foot in FEET])

    def reset(self, data, rng):
        super().reset(data, rng)
        self.errors[:12] = data.qpos[7:]

    def control(self, action, ctrl):
        self.aim(ctrl, self.pose, action)

    @reward_terms(
        0.0,
        tracking_lin_vel=1.5,
        tracking_ang_vel=0.8,
        lin_vel_z=-2.0,
        ang_vel_xy=-0.05,
        orientation=-5.0,
        posture=1.0,
        termination=-1.0,
        torques=-0.0002,
        action_rate=-0.01,
        energy=-0.001,
        feet_slip=-0.1,
        feet_clearance=-2.0,
        feet_height=-0.1,
        feet_air_time=0.1,
    )
    def step(self, data, action, info, rng):
        if self.kick > 0.0:
            self.suffer_kicks(data, rng)
        self.remember(action)
        self.remember_feet()
        self.simulate(data)
        self.feel(data)
        t.push_front(self.errors, data.qpos[7:] - data.ctrl)
        dt, forces, height = self.dt, data.actuator_force, self.max_foot_height
        follows, turns, rises, rolls, leans = self.motion(data, self.velocity)
        moves = t.length(self.velocity) >= 0.01
        speeds, off = self.ground_speeds(data), t.distance(data.qpos[7:], self.pose)
        fallen = data.sensor("upvector").data[2] < 0.85
        terms = {
            "tracking_lin_vel": dt * follows,
            "tracking_ang_vel": dt * turns,
            "lin_vel_z": dt * rises,
            "ang_vel_xy": dt * rolls,
            "orientation": dt * leans,
            "posture": dt * np.exp(-10.0 * (not moves) * off),
            "termination": dt * fallen,
            "torques": dt * t.effort(forces),
            "action_rate": dt * t.jerk(action, self.last_action, self.action_before),
            "energy": dt * t.power(data.qvel[6:], forces),
            "feet_slip": dt * t.slip(speeds, self.contact),
            "feet_clearance": dt * t.clearance(speeds, self.heights(data), height),
            "feet_height": dt * moves * t.swing_error(self.swing_peak, self.landed, height),
            "feet_air_time": dt * moves * t.flight(self.air_time, self.landed, 0.1, np.inf),
        }
        return terms, {"fallen": fallen}

    def feet_places(self, data):
        """Places of the feet in the trunk's frame, one behind the other [m]."""
        found = np.zeros(12)
        for i in range(4):
            at = self.places_at[i]
            found[3 * i : 3 * i + 3] = data.sensordata[at : at + 3]
        return found

    def observation(self, data, obs):
        gyro, up = data.sensor("gyro").data, data.sensor("upvector").data
        obs["gyro"] = gyro
        obs["upvector"] = up
        obs["joints"] = data.qpos[7:] - self.pose
        obs["errors"] = self.errors
        obs["feet_places"] = self.feet_places(data)
        obs["last_action"] = self.last_action
        obs["command"] = self.velocity
        obs["true_gyro"] = gyro
        obs["accelerometer"] = data.sensor("accelerometer").data
        obs["true_upvector"] = up
        obs["linvel"] = data.sensor("local_linvel").data
        obs["angvel"] = data.sensor("global_angvel").data
        obs["true_joints"] = data.qpos[7:] - self.pose
        obs["true_feet_places"] = self.feet_places(data)
        obs["joint_velocities"] = data.qvel[6:]
        obs["torques"] = data.actuator_force
        obs["contacts"] = self.last_contact
        obs["feet_velocities"] = self.feet_velocities(data)
        obs["air_time"] = self.air_time
        obs["kick_force"] = data.xfrc_applied[self.trunk_id, :3]
