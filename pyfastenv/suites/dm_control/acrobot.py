"""Acrobot: swing up two links by the torque between them."""

import numpy as np

from pyfastenv.suites.dm_control.base import SuiteModel, SuiteTask
from pyfastenv.suites.dm_control.rewards import tolerance


class AcrobotSwingup(SuiteTask):
    model = SuiteModel("acrobot")
    margin = 1.0

    def reset(self, data, rng):
        data.qpos[:] = rng.uniform(-np.pi, np.pi, 2)

    def reward(self, data):
        distance = np.linalg.norm(data.site("target").xpos - data.site("tip").xpos)
        return tolerance(distance, (0.0, self.model.site("target").size[0]), self.margin)

    def observation(self, data, obs):
        upper, lower = data.body("upper_arm").xmat, data.body("lower_arm").xmat
        obs["orientations"] = (upper[2], lower[2], upper[8], lower[8])
        obs["velocity"] = data.qvel


class AcrobotSwingupSparse(AcrobotSwingup):
    margin = 0.0
