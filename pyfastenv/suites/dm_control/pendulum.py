"""Pendulum: swing up, and stay there."""

import numpy as np

from pyfastenv.suites.dm_control.base import SuiteModel, SuiteTask
from pyfastenv.suites.dm_control.rewards import tolerance

COSINE_BOUND = np.cos(np.deg2rad(8))


class PendulumSwingup(SuiteTask):
    model = SuiteModel("pendulum")

    def reset(self, data, rng):
        data.qpos[0] = rng.uniform(-np.pi, np.pi)

    def reward(self, data):
        return tolerance(data.body("pole").xmat[8], (COSINE_BOUND, 1.0))

    def observation(self, data, obs):
        obs["orientation"] = (data.body("pole").xmat[8], data.body("pole").xmat[2])
        obs["velocity"] = data.qvel
