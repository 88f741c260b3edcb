"""Quadruped: walk, run, escape from a bowl, fetch a ball."""

import mujoco
import numpy as np

from pyfastenv.suites.dm_control.base import (
    SuiteModel,
    SuiteTask,
    pick,
    random_quaternion,
    seen_from,
)
from pyfastenv.suites.dm_control.rewards import LINEAR, tolerance
from pyfastenv.suites.starts import MOST_DRAWS


class QuadrupedWalk(SuiteTask):
    model = SuiteModel("quadruped", lambda quadruped: quadruped.make_model(floor_size=20 * 0.5))
    frame_skip = 4
    speed = 0.5
    deviation = 1.0  # the cosine at which the torso is as upright as need be

    def setup(self):
        model, sensor = self.model, mujoco.mjtSensor
        hinges = model.jnt_type == mujoco.mjtJoint.mjJNT_HINGE
        self.hinge_qpos, self.hinge_qvel = model.jnt_qposadr[hinges], model.jnt_dofadr[hinges]
        self.torso = model.body("torso").id
        self.imu = self.readings(sensor.mjSENS_GYRO, sensor.mjSENS_ACCELEROMETER)
        self.force_torque = self.readings(sensor.mjSENS_FORCE, sensor.mjSENS_TORQUE)

    def readings(self, *kinds):
        """Where in sensordata sensors of these kinds stand."""
        at = [
            np.arange(self.model.sensor_adr[i], self.model.sensor_adr[i] + self.model.sensor_dim[i])
            for i in range(self.model.nsensor)
            if self.model.sensor_type[i] in [int(kind) for kind in kinds]
        ]
        return np.concatenate(at)

    def reset(self, data, rng):
        self.put_down(data, random_quaternion(rng), 0.0, 0.0)

    def put_down(self, data, orientation, x, y):
        """On the ground, or as little above it as makes nothing touch anything."""
        data.qpos[0], data.qpos[1], data.qpos[2] = x, y, 0.0
        data.qpos[3:7] = orientation
        for _ in range(MOST_DRAWS):
            mujoco.mj_forward(self.model, data)
            if data.ncon == 0:
                return
            data.qpos[2] += 0.01
        raise ValueError("at every height there are contacts")

    def upright(self, data):
        cosine = data.xmat[self.torso, 8]
        return tolerance(cosine, (self.deviation, np.inf), 1 + self.deviation, LINEAR, 0.0)

    def reward(self, data):
        speed = data.sensor("velocimeter").data[0]
        moving = tolerance(speed, (self.speed, np.inf), self.speed, LINEAR, 0.5)
        return self.upright(data) * moving

    def observation(self, data, obs):
        obs["joint_angles"] = pick(data.qpos, self.hinge_qpos)
        obs["joint_velocities"] = pick(data.qvel, self.hinge_qvel)
        obs["activation"] = data.act
        obs["torso_velocity"] = data.sensor("velocimeter").data
        obs["torso_upright"] = data.xmat[self.torso, 8]
        obs["imu"] = pick(data.sensordata, self.imu)
        obs["force_torque"] = np.arcsinh(pick(data.sensordata, self.force_torque))


class QuadrupedRun(QuadrupedWalk):
    model = SuiteModel("quadruped", lambda quadruped: quadruped.make_model(floor_size=20 * 5))
    speed = 5.0


class QuadrupedEscape(QuadrupedWalk):
    model = SuiteModel(
        "quadruped",
        lambda quadruped: quadruped.make_model(floor_size=40, terrain=True, rangefinders=True),
    )
    model_fields = ("hfield_data",)
    deviation = np.cos(np.deg2rad(20))

    def setup(self):
        super().setup()
        from scipy import ndimage

        self.rangefinders = self.readings(mujoco.mjtSensor.mjSENS_RANGEFINDER)
        size, self.radius = self.model.hfield_nrow[0], self.model.hfield_size[0, 0]
        rows, columns = np.ogrid[-1 : 1 : size * 1j, -1 : 1 : size * 1j]
        distance = np.clip(np.sqrt(columns**2 + rows**2), 0.04, 1)
        self.bowl = 0.5 - np.cos(2 * np.pi * distance) / 2
        self.bumps = int(2 * self.radius / 2)  # one every two meters, in each direction
        # splines are linear in what they smooth, and in each direction for itself
        unit = np.eye(self.bumps)
        self.smooth = np.array([ndimage.zoom(row, size / self.bumps) for row in unit]).T

    def reset(self, data, rng):
        bumps = rng.uniform(0.15, 1.0, self.bumps * self.bumps).reshape(self.bumps, self.bumps)
        terrain = self.bowl * (self.smooth @ bumps @ np.ascontiguousarray(self.smooth.T))
        self.model.hfield_data[:] = terrain.ravel()
        super().reset(data, rng)

    def reward(self, data):
        distance = np.linalg.norm(data.site("workspace").xpos)
        bounds = (self.radius, np.inf)
        return self.upright(data) * tolerance(distance, bounds, self.radius, LINEAR, 0.0)

    def observation(self, data, obs):
        super().observation(data, obs)
        obs["origin"] = -seen_from(data, self.torso, data.xpos[self.torso])
        readings = pick(data.sensordata, self.rangefinders)
        obs["rangefinder"] = np.where(readings == -1.0, 1.0, np.tanh(readings))


class QuadrupedFetch(QuadrupedWalk):
    model = SuiteModel("quadruped", lambda quadruped: quadruped.make_model(walls_and_ball=True))

    def reset(self, data, rng):
        azimuth = rng.uniform(0.0, 2 * np.pi)
        orientation = np.array([np.cos(azimuth / 2), 0.0, 0.0, np.sin(azimuth / 2)])
        radius = 0.9 * self.model.geom("floor").size[0]
        x, y = rng.uniform(-radius, radius, 2)
        self.put_down(data, orientation, x, y)
        ball = data.joint("ball_root")
        ball.qpos[:2] = rng.uniform(-radius, radius, 2)
        ball.qpos[2] = 2.0
        ball.qvel[:2] = 5 * rng.standard_normal(2)

    def reward(self, data):
        arena = self.model.geom("floor").size[0] * np.sqrt(2)
        near = self.model.site("workspace").size[0] + self.model.geom("ball").size[0]
        to_ball = data.site("workspace").xpos - data.body("ball").xpos
        reach = tolerance(np.linalg.norm(to_ball[:2]), (0.0, near), arena, LINEAR, 0.0)
        to_target = data.site("target").xpos - data.body("ball").xpos
        radius = self.model.site("target").size[0]
        fetch = tolerance(np.linalg.norm(to_target[:2]), (0.0, radius), arena, LINEAR, 0.0)
        return self.upright(data) * (reach * (0.5 + 0.5 * fetch))

    def observation(self, data, obs):
        super().observation(data, obs)
        torso, ball = data.xpos[self.torso], data.joint("ball_root").qvel
        state = np.empty((3, 3))
        state[0] = data.body("ball").xpos - torso
        state[1] = ball[:3] - data.joint("root").qvel[:3]
        state[2] = ball[3:]
        obs["ball_state"] = state @ data.xmat[self.torso].reshape(3, 3)
        obs["target_position"] = seen_from(data, self.torso, data.site("target").xpos - torso)
