"""Go1: follow a joystick, on flat ground.

Formulas: MuJoCo Playground 0.2, _src/locomotion/go1/joystick.py and base.py.
"""

import gymnasium
import mujoco
import numpy as np

from pyfastenv.suites.playground.base import playground_file
from pyfastenv.tasks.language.fields import command, memory
from pyfastenv.tasks.language.helpers import touching
from pyfastenv.tasks.language.noise import uniform
from pyfastenv.tasks.language.rewards import reward_terms
from pyfastenv.tasks.language.task import Task

FEET = ("FR", "FL", "RR", "RL")
STATE = ("linvel", "gyro", "gravity", "joints", "joint_velocities", "last_action", "command")
PRIVILEGED = (
    "true_gyro", "accelerometer", "true_gravity", "true_linvel", "angvel", "true_joints",
    "true_joint_velocities", "torques", "contacts", "feet_velocities", "air_time", "kick_force",
    "kicked",
)  # fmt: skip

FEET_SENSORS = [f"{foot}_global_linvel" for foot in FEET]  # one behind the other in sensordata
SENSORS = [
    *FEET_SENSORS, "gyro", "local_linvel", "accelerometer", "upvector", "global_linvel",
    "global_angvel",
]  # fmt: skip


class Go1JoystickFlatTerrain(Task):
    """Unitree's Go1 walks forward, sideways and turns as it is told.

    Attributes:
        stiffness: Of the position servos [Nm/rad].
        damping: Of the joints [Nm s/rad].
        action_scale: How far an action of 1 moves a servo's target from the default pose [rad].
        velocity: The command, in the robot's frame: forward, sideways [m/s], turning [rad/s].
        tracking_sigma: Squared error at which a reward for tracking is 1/e.
        max_foot_height: How high a foot is to be lifted [m].
        soft_limit: Share of joints' limits beyond which they cost.
        kick: Greatest speed of kicks [m/s], forces of half a sine on the trunk; 0: none.
        kick_every, kick_duration: The least and the most [s].
    """

    frame_skip = 5
    action_space = gymnasium.spaces.Box(-1.0, 1.0, (12,), np.float64)
    observation_dict = {"policy": STATE, "critic": (*STATE, *PRIVILEGED)}
    observation_noise = {
        "linvel": uniform(-0.1, 0.1),
        "gyro": uniform(-0.2, 0.2),
        "gravity": uniform(-0.05, 0.05),
        "joints": uniform(-0.03, 0.03),
        "joint_velocities": uniform(-1.5, 1.5),
    }
    stiffness, damping, action_scale = 35.0, 0.5, 0.5
    velocity = command(
        low=(-1.5, -0.8, -1.2), high=(1.5, 0.8, 1.2), every=(0.02, 20.0), standing=(0.1, 0.75, 0.5)
    )
    tracking_sigma, max_foot_height, soft_limit = 0.25, 0.1, 0.95
    kick, kick_every, kick_duration = 0.0, (1.0, 3.0), (0.05, 0.2)
    pose_weights = (1.0, 1.0, 0.1) * 4

    action, last_action, misses = memory(12), memory(12), memory(3)
    contact, last_contact, air_time, swing_peak = memory(4), memory(4), memory(4), memory(4)
    kick_wait, kick_for, kick_speed = memory(), memory(), memory()
    kick_at, kick_direction, kick_force = memory(), memory(2), memory(2)

    def model(self):
        """Playground's, with these gains."""
        scene = playground_file("locomotion/go1/xmls/scene_mjx_feetonly_flat_terrain.xml")
        spec = mujoco.MjSpec.from_file(str(scene))
        for sensor in list(spec.sensors):
            if sensor.name not in SENSORS:  # which nobody reads: lanes need not know them
                spec.delete(sensor)
        model = spec.compile()
        model.opt.timestep, model.opt.ccd_iterations = 0.004, 20
        model.dof_damping[6:] = self.damping
        model.actuator_gainprm[:, 0] = self.stiffness
        model.actuator_biasprm[:, 1] = -self.stiffness
        return model

    def setup(self):
        self.home = self.model.key("home").qpos.copy()
        self.pose = self.home[7:]
        self.lowest, self.highest = self.soft_limit * self.model.jnt_range[1:].T
        self.feet = np.array([self.model.geom(name).id for name in FEET])
        self.soles = np.array([self.model.site(name).id for name in FEET])
        self.feet_at = self.model.sensor(FEET_SENSORS[0]).adr[0]
        self.trunk = self.model.body("trunk").id
        self.mass = self.model.body_subtreemass[self.trunk]

    def reset(self, data, rng):
        data.qpos[:] = self.home
        data.qpos[:2] += rng.uniform(-0.5, 0.5, 2)
        heading = rng.uniform(-3.14, 3.14)
        data.qpos[3], data.qpos[6] = np.cos(0.5 * heading), np.sin(0.5 * heading)
        data.qvel[:6] = rng.uniform(-0.5, 0.5, 6)
        data.ctrl[:] = self.pose
        self.kick_wait = rng.uniform(self.kick_every[0], self.kick_every[1])
        self.kick_for = rng.uniform(self.kick_duration[0], self.kick_duration[1])
        self.kick_speed = rng.uniform(0.0, self.kick)
        self.kick_at = self.kick_wait

    def push(self, data, rng):
        """Applies the force of a kick that is under way, in a direction of its own.

        Playground counts whole steps: its kicks may begin a step later.
        """
        since = data.time - self.kick_at
        if since > self.kick_for:
            self.kick_at = data.time + self.kick_wait
            self.kick_force[:] = 0.0
            data.xfrc_applied[self.trunk, :2] = 0.0
        elif since >= 0.0:
            if self.kick_force[0] == 0.0:
                angle = rng.uniform(0.0, 2.0 * np.pi)
                self.kick_direction[:] = np.cos(angle), np.sin(angle)
            strength = 0.5 * np.sin(np.pi * since / self.kick_for) * self.kick_speed
            self.kick_force[:] = strength * self.mass / self.kick_for * self.kick_direction
            data.xfrc_applied[self.trunk, :2] = self.kick_force

    def control(self, action, ctrl):
        ctrl[:] = self.pose + self.action_scale * action

    @reward_terms(
        0.0,
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
    )
    def step(self, data, action, info, rng):
        if self.kick > 0.0:
            self.push(data, rng)
        # what an observation shows of feet and actions is what was before its step
        for i in range(12):
            self.last_action[i], self.action[i] = self.action[i], action[i]
        for i in range(4):
            self.last_contact[i] = self.contact[i]
            if self.contact[i] > 0.0:
                self.air_time[i], self.swing_peak[i] = 0.0, 0.0
        self.simulate(data)
        self.contact[:] = touching(data, self.feet)

        slip, clearance, height, stride = 0.0, 0.0, 0.0, 0.0
        for i in range(4):
            z, at = data.site_xpos[self.soles[i], 2], self.feet_at + 3 * i
            speed = np.square(data.sensordata[at]) + np.square(data.sensordata[at + 1])
            landed = self.contact[i] > 0.0 and self.air_time[i] > 0.0
            self.air_time[i] += self.dt
            self.swing_peak[i] = max(self.swing_peak[i], z)
            slip += speed * self.contact[i]
            clearance += abs(z - self.max_foot_height) * np.sqrt(np.sqrt(speed))
            if landed:
                height += np.square(self.swing_peak[i] / self.max_foot_height - 1.0)
                stride += self.air_time[i] - 0.1
        strange, crouch, squared, torque, power, jerk, beyond = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
        for i in range(12):
            angle, force = data.qpos[7 + i], data.actuator_force[i]
            strange += np.square(angle - self.pose[i]) * self.pose_weights[i]
            crouch += abs(angle - self.pose[i])
            squared += np.square(force)
            torque += abs(force)
            power += abs(data.qvel[6 + i] * force)
            jerk += np.square(action[i] - self.last_action[i])
            beyond += max(self.lowest[i] - angle, 0.0) + max(angle - self.highest[i], 0.0)

        told, dt = self.velocity, self.dt
        linvel, turn = data.sensor("local_linvel").data, data.sensor("gyro").data[2]
        rises, rolls = data.sensor("global_linvel").data[2], data.sensor("global_angvel").data
        up = data.sensor("upvector").data
        miss = np.square(told[0] - linvel[0]) + np.square(told[1] - linvel[1])
        moves = np.sqrt(np.square(told[0]) + np.square(told[1]) + np.square(told[2])) > 0.01
        turn_miss = np.square(told[2] - turn)
        self.misses[0] += 1.0
        self.misses[1] += np.sqrt(miss)
        self.misses[2] += np.sqrt(turn_miss)
        info["episode_velocity_error"] = self.misses[1] / self.misses[0]
        info["episode_turning_error"] = self.misses[2] / self.misses[0]
        fallen = up[2] < 0.0
        terms = {
            "tracking_lin_vel": dt * np.exp(-miss / self.tracking_sigma),
            "tracking_ang_vel": dt * np.exp(-turn_miss / self.tracking_sigma),
            "lin_vel_z": dt * np.square(rises),
            "ang_vel_xy": dt * (np.square(rolls[0]) + np.square(rolls[1])),
            "orientation": dt * (np.square(up[0]) + np.square(up[1])),
            "stand_still": dt * (not moves) * crouch,
            "termination": dt * fallen,
            "pose": dt * np.exp(-strange),
            "torques": dt * (np.sqrt(squared) + torque),
            "action_rate": dt * jerk,
            "energy": dt * power,
            "feet_slip": dt * moves * slip,
            "feet_clearance": dt * clearance,
            "feet_height": dt * moves * height,
            "feet_air_time": dt * moves * stride,
            "dof_pos_limits": dt * beyond,
        }
        return terms, {"fallen": fallen}

    def observation(self, data, obs):
        linvel, gyro = data.sensor("local_linvel").data, data.sensor("gyro").data
        down = -data.site("imu").xmat[6:]
        obs["linvel"] = linvel
        obs["gyro"] = gyro
        obs["gravity"] = down
        obs["joints"] = data.qpos[7:] - self.pose
        obs["joint_velocities"] = data.qvel[6:]
        obs["last_action"] = self.last_action
        obs["command"] = self.velocity
        obs["true_gyro"] = gyro
        obs["accelerometer"] = data.sensor("accelerometer").data
        obs["true_gravity"] = down
        obs["true_linvel"] = linvel
        obs["angvel"] = data.sensor("global_angvel").data
        obs["true_joints"] = data.qpos[7:] - self.pose
        obs["true_joint_velocities"] = data.qvel[6:]
        obs["torques"] = data.actuator_force
        obs["contacts"] = self.last_contact
        obs["feet_velocities"] = data.sensordata[self.feet_at : self.feet_at + 12]
        obs["air_time"] = self.air_time
        obs["kick_force"] = data.xfrc_applied[self.trunk, :3]
        obs["kicked"] = self.kick_force[0] != 0.0
