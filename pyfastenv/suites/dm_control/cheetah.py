"""Cheetah: run."""

import mujoco
import numpy as np

from pyfastenv.suites.dm_control.base import SuiteModel, SuiteTask
from pyfastenv.suites.dm_control.rewards import LINEAR, tolerance


class CheetahRun(SuiteTask):
    model = SuiteModel("cheetah")
    speed = 10.0

    def reset(self, data, rng):
        mujoco.mj_forward(self.model, data)
        for joint in range(self.model.njnt):
            if self.model.jnt_limited[joint]:
                low, high = self.model.jnt_range[joint]
                data.qpos[joint] = rng.uniform(low, high)
        # fall to the floor and lie still; the first half of the first step was before the draw
        mujoco.mj_step2(self.model, data)
        mujoco.mj_step(self.model, data, 199)
        data.time = 0.0

    def reward(self, data):
        speed = data.sensor("torso_subtreelinvel").data[0]
        return tolerance(speed, (self.speed, np.inf), self.speed, LINEAR, 0.0)

    def observation(self, data, obs):
        obs["position"] = data.qpos[1:]
        obs["velocity"] = data.qvel
