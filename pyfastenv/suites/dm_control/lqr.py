"""LQR: bring a chain of masses and springs to rest.

dm_control draws the springs when it makes an environment; here every episode has its own.
"""

import numpy as np

from pyfastenv.suites.dm_control.base import SuiteModel, SuiteTask
from pyfastenv.tasks.language.randomise import uniform


class LqrLqr21(SuiteTask):
    model = SuiteModel("lqr", lambda lqr: lqr.get_model_and_assets(2, 1, np.random.RandomState(0)))
    max_episode_steps = None
    randomise = {"jnt_stiffness": uniform(15.0, 25.0)}

    def reset(self, data, rng):
        unit = rng.standard_normal(self.model.nq)
        data.qpos[:] = np.sqrt(2) * unit / np.linalg.norm(unit)

    def step(self, data):
        self.simulate(data)
        state_cost = 0.5 * np.dot(data.qpos, data.qpos)
        control_cost = 0.5 * np.dot(data.ctrl, data.ctrl)
        at_rest = np.linalg.norm(np.concatenate((data.qpos, data.qvel))) < 1e-6
        return 1 - (state_cost + control_cost * 0.1), at_rest


class LqrLqr62(LqrLqr21):
    model = SuiteModel("lqr", lambda lqr: lqr.get_model_and_assets(6, 2, np.random.RandomState(0)))
