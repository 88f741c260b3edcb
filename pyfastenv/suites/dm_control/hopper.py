"""Hopper: stand, or hop."""

import numpy as np

from pyfastenv.suites.dm_control.base import SuiteModel, SuiteTask, small_control
from pyfastenv.suites.dm_control.rewards import LINEAR, tolerance


class HopperStand(SuiteTask):
    model = SuiteModel("hopper")
    frame_skip = 4

    def standing(self, data):
        height = data.body("torso").xipos[2] - data.body("foot").xipos[2]
        return tolerance(height, (0.6, 2.0))

    def reward(self, data):
        return self.standing(data) * small_control(data)

    def observation(self, data, obs):
        obs["position"] = data.qpos[1:]
        obs["velocity"] = data.qvel
        toe, heel = data.sensor("touch_toe").data[0], data.sensor("touch_heel").data[0]
        obs["touch"] = (np.log1p(toe), np.log1p(heel))


class HopperHop(HopperStand):
    speed = 2.0

    def reward(self, data):
        speed = data.sensor("torso_subtreelinvel").data[0]
        hopping = tolerance(speed, (self.speed, np.inf), self.speed / 2, LINEAR, 0.5)
        return self.standing(data) * hopping
