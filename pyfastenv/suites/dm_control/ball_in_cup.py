"""Ball in cup: swing a ball on a string into the cup."""

import mujoco
import numpy as np

from pyfastenv.suites.dm_control.base import SuiteModel, SuiteTask
from pyfastenv.suites.starts import MOST_DRAWS


class BallInCupCatch(SuiteTask):
    model = SuiteModel("ball_in_cup")
    frame_skip = 10

    def reset(self, data, rng):
        for _ in range(MOST_DRAWS):
            data.joint("ball_x").qpos[0] = rng.uniform(-0.2, 0.2)
            data.joint("ball_z").qpos[0] = rng.uniform(0.2, 0.5)
            mujoco.mj_forward(self.model, data)
            if data.ncon == 0:
                return
        raise ValueError("every start that was drawn has contacts")

    def reward(self, data):
        room = self.model.site("target").size - self.model.geom("ball").size[0]
        offset = np.abs(data.site("target").xpos - data.body("ball").xpos)
        return 1.0 if offset[0] < room[0] and offset[2] < room[2] else 0.0
