"""Planar walker: stand, walk, run."""

import numpy as np

from pyfastenv.suites.dm_control.base import SuiteModel, SuiteTask
from pyfastenv.suites.dm_control.rewards import LINEAR, tolerance


class WalkerStand(SuiteTask):
    model = SuiteModel("walker")
    frame_skip = 10

    def standing(self, data):
        torso = data.body("torso")
        high = tolerance(torso.xpos[2], (1.2, np.inf), 1.2 / 2)
        return (3 * high + (1 + torso.xmat[8]) / 2) / 4

    def reward(self, data):
        return self.standing(data)

    def observation(self, data, obs):
        obs["orientations"] = np.ascontiguousarray(data.xmat[1:, 0:3:2])  # each cosine and sine
        obs["height"] = data.body("torso").xpos[2]
        obs["velocity"] = data.qvel


class WalkerWalk(WalkerStand):
    speed = 1.0

    def reward(self, data):
        speed = data.sensor("torso_subtreelinvel").data[0]
        moving = tolerance(speed, (self.speed, np.inf), self.speed / 2, LINEAR, 0.5)
        return self.standing(data) * (5 * moving + 1) / 6


class WalkerRun(WalkerWalk):
    speed = 8.0
