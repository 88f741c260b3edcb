"""Fish: keep upright, or swim to a target."""

import numpy as np

from pyfastenv.suites.dm_control.base import SuiteModel, SuiteTask, random_quaternion
from pyfastenv.suites.dm_control.rewards import tolerance


class FishUpright(SuiteTask):
    model = SuiteModel("fish")
    frame_skip = 10

    def setup(self):
        self.model.geom("target").rgba[3] = 0.0

    def reset(self, data, rng):
        data.qpos[3:7] = random_quaternion(rng)
        data.qpos[7:] = rng.uniform(-0.2, 0.2, 7)

    def upright(self, data):
        return data.body("torso").xmat[8]

    def reward(self, data):
        return tolerance(self.upright(data), (1.0, 1.0), 1.0)

    def observation(self, data, obs):
        obs["joint_angles"] = data.qpos[7:]
        obs["upright"] = self.upright(data)
        obs["velocity"] = data.qvel


class FishSwim(FishUpright):
    model_fields = ("geom_pos",)

    def setup(self):
        self.radii = np.sum(self.model.geom_size[[self.geom("mouth"), self.geom("target")], 0])

    def geom(self, name):
        return self.model.geom(name).id

    def reset(self, data, rng):
        super().reset(data, rng)
        target = self.model.geom("target").pos
        target[0], target[1] = rng.uniform(-0.4, 0.4), rng.uniform(-0.4, 0.4)
        target[2] = rng.uniform(0.1, 0.3)

    def to_target(self, data):
        mouth = data.geom("mouth")
        return (data.geom("target").xpos - mouth.xpos) @ mouth.xmat.reshape(3, 3)

    def reward(self, data):
        distance = np.linalg.norm(self.to_target(data))
        in_target = tolerance(distance, (0.0, self.radii), 2 * self.radii)
        return (7 * in_target + 0.5 * (self.upright(data) + 1)) / 8

    def observation(self, data, obs):
        obs["joint_angles"] = data.qpos[7:]
        obs["upright"] = self.upright(data)
        obs["target"] = self.to_target(data)
        obs["velocity"] = data.qvel
