"""Reacher: bring the tip of two links to a target."""

import numpy as np

from pyfastenv.suites.dm_control.base import SuiteModel, SuiteTask, draw_joints
from pyfastenv.suites.dm_control.rewards import tolerance


class ReacherEasy(SuiteTask):
    model = SuiteModel("reacher")
    model_fields = ("geom_pos",)
    target_size = 0.05

    def setup(self):
        self.model.geom("target").size[0] = self.target_size
        self.radii = self.target_size + self.model.geom("finger").size[0]

    def reset(self, data, rng):
        draw_joints(self.model, data, rng)
        angle = rng.uniform(0.0, 2 * np.pi)
        radius = rng.uniform(0.05, 0.2)
        self.model.geom("target").pos[0] = radius * np.sin(angle)
        self.model.geom("target").pos[1] = radius * np.cos(angle)

    def to_target(self, data):
        return data.geom("target").xpos[:2] - data.geom("finger").xpos[:2]

    def reward(self, data):
        return tolerance(np.linalg.norm(self.to_target(data)), (0.0, self.radii))

    def observation(self, data, obs):
        obs["position"] = data.qpos
        obs["to_target"] = self.to_target(data)
        obs["velocity"] = data.qvel


class ReacherHard(ReacherEasy):
    target_size = 0.015
