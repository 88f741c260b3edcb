"""Swimmer: bring the nose of six or fifteen links to a target."""

import numpy as np

from pyfastenv.suites.dm_control.base import SuiteModel, SuiteTask, draw_joints, pick, seen_from
from pyfastenv.suites.dm_control.rewards import LONG_TAIL, tolerance


class SwimmerSwimmer6(SuiteTask):
    model = SuiteModel("swimmer", lambda swimmer: swimmer.get_model_and_assets(6))
    model_fields = ("geom_pos",)
    frame_skip = 15

    def setup(self):
        # of each link's velocimeter and gyro: two in the plane, one around its normal
        first = np.arange(12, self.model.nsensordata, 6)
        self.velocities = (first[:, None] + [0, 1, 5]).ravel()
        self.head = self.model.body("head").id

    def reset(self, data, rng):
        draw_joints(self.model, data, rng)
        box = 0.3 if rng.random() < 0.2 else 2.0
        self.model.geom("target").pos[:2] = rng.uniform(-box, box, 2)

    def to_target(self, data):
        from_nose = data.geom("target").xpos - data.geom("nose").xpos
        return seen_from(data, self.head, from_nose)[:2]

    def reward(self, data):
        size = self.model.geom("target").size[0]
        distance = np.linalg.norm(self.to_target(data))
        return tolerance(distance, (0.0, size), 5 * size, LONG_TAIL)

    def observation(self, data, obs):
        obs["joints"] = data.qpos[3:]
        obs["to_target"] = self.to_target(data)
        obs["body_velocities"] = pick(data.sensordata, self.velocities)


class SwimmerSwimmer15(SwimmerSwimmer6):
    model = SuiteModel("swimmer", lambda swimmer: swimmer.get_model_and_assets(15))
