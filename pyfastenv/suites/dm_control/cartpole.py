"""Cart-pole: balance one, two or three poles on a cart, or swing them up first."""

import numpy as np

from pyfastenv.suites.dm_control.base import SuiteModel, SuiteTask
from pyfastenv.suites.dm_control.rewards import QUADRATIC, tolerance, tolerances


class CartpoleSwingup(SuiteTask):
    model = SuiteModel("cartpole")

    def reset(self, data, rng):
        data.qpos[0] = 0.01 * rng.standard_normal()
        data.qpos[1] = np.pi + 0.01 * rng.standard_normal()
        data.qpos[2:] = 0.1 * rng.standard_normal(self.model.nv - 2)
        data.qvel[:] = 0.01 * rng.standard_normal(self.model.nv)

    def reward(self, data):
        upright = np.mean((data.xmat[2:, 8] + 1) / 2)
        centered = (1 + tolerance(data.qpos[0], (0.0, 0.0), 2.0)) / 2
        calm = tolerances(data.ctrl, (0.0, 0.0), 1.0, QUADRATIC, 0.0)[0]
        slow = (1 + np.min(tolerances(data.qvel[1:], (0.0, 0.0), 5.0))) / 2
        return upright * ((4 + calm) / 5) * slow * centered

    def observation(self, data, obs):
        obs["cart"] = data.qpos[0]
        obs["poles"] = np.ascontiguousarray(data.xmat[2:, 8:1:-6])  # cosine and sine of each
        obs["velocity"] = data.qvel


class CartpoleSwingupSparse(CartpoleSwingup):
    def reward(self, data):
        upright = tolerance(data.qpos[0], (-0.25, 0.25))
        for pole in range(2, self.model.nbody):
            upright *= tolerance(data.xmat[pole, 8], (0.995, 1.0))
        return upright


class CartpoleBalance(CartpoleSwingup):
    def reset(self, data, rng):
        data.qpos[0] = rng.uniform(-0.1, 0.1)
        data.qpos[1:] = rng.uniform(-0.034, 0.034, self.model.nv - 1)
        data.qvel[:] = 0.01 * rng.standard_normal(self.model.nv)


class CartpoleBalanceSparse(CartpoleBalance, CartpoleSwingupSparse):
    pass


class CartpoleTwoPoles(CartpoleSwingup):
    model = SuiteModel("cartpole", lambda cartpole: cartpole.get_model_and_assets(2))


class CartpoleThreePoles(CartpoleSwingup):
    model = SuiteModel("cartpole", lambda cartpole: cartpole.get_model_and_assets(3))
