"""Point mass: reach the middle; in the hard task by two directions that every episode draws."""

import numpy as np

from pyfastenv.suites.dm_control.base import SuiteModel, SuiteTask, small_control
from pyfastenv.suites.dm_control.rewards import tolerance


class PointMassEasy(SuiteTask):
    model = SuiteModel("point_mass")

    def reward(self, data):
        size = self.model.geom("target").size[0]
        distance = np.linalg.norm(data.geom("target").xpos - data.geom("pointmass").xpos)
        return tolerance(distance, (0.0, size), size) * small_control(data)


class PointMassHard(PointMassEasy):
    model_fields = ("wrap_prm",)  # how much of each joint is in each tendon

    def reset(self, data, rng):
        super().reset(data, rng)
        first = direction(rng)
        second = direction(rng)
        while abs(np.dot(first, second)) > 0.9:
            second = direction(rng)
        self.model.wrap_prm[:2] = first
        self.model.wrap_prm[2:] = second


def direction(rng):
    vector = rng.standard_normal(2)
    return vector / np.linalg.norm(vector)
