"""Dog: stand, walk, trot, run, fetch a ball."""

import mujoco
import numpy as np

from pyfastenv.suites.dm_control.base import SuiteModel, SuiteTask, pick, seen_from
from pyfastenv.suites.dm_control.rewards import LINEAR, RECIPROCAL, tolerance

UPRIGHT = np.cos(np.deg2rad(30))


def floor(size):
    return SuiteModel("dog", lambda dog: dog.get_model_and_assets(size))


class DogStand(SuiteTask):
    model = floor(15)
    frame_skip = 3

    def setup(self):
        model, data = self.model, mujoco.MjData(self.model)
        mujoco.mj_forward(model, data)
        self.torso, self.pelvis = model.body("torso").id, model.body("pelvis").id
        self.skull = model.body("skull").id
        self.stand_heights = data.xpos[[self.torso, self.pelvis], 2] * 0.9
        self.weight = -model.opt.gravity[2] * model.body_subtreemass[self.torso]
        hinges = model.jnt_type == mujoco.mjtJoint.mjJNT_HINGE
        self.hinge_qpos, self.hinge_qvel = model.jnt_qposadr[hinges], model.jnt_dofadr[hinges]
        self.inertial = self.readings("accelerometer", "velocimeter", "gyro")
        self.feet = self.readings("foot_L", "foot_R", "hand_L", "hand_R")
        self.touch = self.readings("palm_L", "palm_R", "sole_L", "sole_R")

    def readings(self, *names):
        """Where in sensordata these sensors stand."""
        sensors = [self.model.sensor(name) for name in names]
        return np.concatenate([np.arange(s.adr[0], s.adr[0] + s.dim[0]) for s in sensors])

    def reset(self, data, rng):
        azimuth = rng.uniform(0.0, 2 * np.pi)
        data.qpos[3:7] = np.array([np.cos(azimuth / 2), 0.0, 0.0, np.sin(azimuth / 2)])
        data.qvel[0] = 2 * rng.standard_normal()
        data.qvel[1] = 2 * rng.standard_normal()
        data.qvel[5] = 2 * rng.standard_normal()
        for actuator in range(self.model.nu):
            low, high = self.model.actuator_ctrlrange[actuator]
            data.act[actuator] = rng.uniform(low, high)

    def standing(self, data):
        """How well it stands: a product, from left to right, as dm_control multiplies."""
        torso, pelvis = self.stand_heights
        reward = tolerance(data.xpos[self.torso, 2], (torso, np.inf), torso)
        reward *= tolerance(data.xpos[self.pelvis, 2], (pelvis, np.inf), pelvis)
        for body in (self.skull, self.torso, self.pelvis):
            cosine = data.xmat[body, 8]
            reward *= tolerance(cosine, (UPRIGHT, np.inf), UPRIGHT + 1, LINEAR, 0.0)
        touch = np.sum(pick(data.sensordata, self.touch))
        return reward * tolerance(touch, (self.weight, np.inf), self.weight, LINEAR, 0.9)

    def reward(self, data):
        return self.standing(data)

    def velocity(self, data):
        return seen_from(data, self.torso, data.sensor("torso_linvel").data)

    def observation(self, data, obs):
        obs["joint_angles"] = pick(data.qpos, self.hinge_qpos)
        obs["joint_velocities"] = pick(data.qvel, self.hinge_qvel)
        obs["torso_pelvis_height"] = (data.xpos[self.torso, 2], data.xpos[self.pelvis, 2])
        obs["skull_vertical"] = data.xmat[self.skull, 6:]
        obs["torso_vertical"] = data.xmat[self.torso, 6:]
        obs["pelvis_vertical"] = data.xmat[self.pelvis, 6:]
        obs["torso_com_velocity"] = self.velocity(data)
        obs["inertial_sensors"] = pick(data.sensordata, self.inertial)
        obs["foot_forces"] = pick(data.sensordata, self.feet)
        obs["touch_sensors"] = pick(data.sensordata, self.touch)
        obs["actuator_state"] = data.act


class DogWalk(DogStand):
    speed = 1.0

    def reward(self, data):
        bounds, margin = (self.speed, 2 * self.speed), max(1.0, self.speed)
        forward = tolerance(self.velocity(data)[0], bounds, margin, LINEAR, 0.0)
        return self.standing(data) * ((4 * forward + 1) / 5)


class DogTrot(DogWalk):
    model = floor(45)
    speed = 3.0


class DogRun(DogWalk):
    model = floor(135)
    speed = 9.0


class DogFetch(DogStand):
    model = SuiteModel("dog", lambda dog: dog.get_model_and_assets(remove_ball=False))

    def reset(self, data, rng):
        super().reset(data, rng)
        radius = 0.75 * self.model.geom("floor").size[0]
        azimuth = rng.uniform(0.0, 2 * np.pi)
        x, y = np.sin(azimuth), np.cos(azimuth)
        ball = data.joint("ball_root")
        ball.qpos[0], ball.qpos[1], ball.qpos[2] = radius * x, radius * y, 0.05
        gravity = -self.model.opt.gravity[2]
        ball.qvel[2] = np.sqrt(2 * gravity * rng.uniform(0.0, 3.0))
        speed = rng.uniform(0.0, 5.0)
        ball.qvel[0] = speed * (-x + 0.05 * rng.standard_normal())
        ball.qvel[1] = speed * (-y + 0.05 * rng.standard_normal())

    def reward(self, data):
        ball, target = data.geom("ball").xpos, data.geom("target").xpos
        to_mouth = 0.5 * (
            np.linalg.norm(ball - data.site("upper_bite").xpos)
            + np.linalg.norm(ball - data.site("lower_bite").xpos)
        )
        bite = self.model.site("upper_bite").size[0]
        reach = (6 * tolerance(to_mouth, (0.0, bite), 2.0, RECIPROCAL) + 1) / 7
        distance, radius = np.linalg.norm(ball - target), self.model.geom("target").size[0]
        margin = self.model.geom("floor").size[0]
        fetch = (tolerance(distance, (0.0, radius), margin, RECIPROCAL) + 1) / 2
        if distance < 2 * radius:
            reach = 1.0
        return self.standing(data) * reach * fetch

    def observation(self, data, obs):
        super().observation(data, obs)
        head = data.site("head")
        frame = head.xmat.reshape(3, 3)
        head_velocity, ball_velocity = np.zeros(6), np.zeros(6)
        site, geom = mujoco.mjtObj.mjOBJ_SITE, mujoco.mjtObj.mjOBJ_GEOM
        mujoco.mj_objectVelocity(self.model, data, site, head.id, head_velocity, 0)
        ball = self.model.geom("ball").id
        mujoco.mj_objectVelocity(self.model, data, geom, ball, ball_velocity, 0)
        obs["ball_position"] = (data.geom("ball").xpos - head.xpos) @ frame
        obs["ball_velocity"] = (ball_velocity[3:] - head_velocity[3:]) @ frame
        obs["target_position"] = (data.geom("target").xpos - head.xpos) @ frame
