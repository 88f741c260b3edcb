"""gymnasium's HalfCheetah-v5 as a task, equal to it bit for bit."""

import numpy as np

import pyfastenv


class HalfCheetah(pyfastenv.Task):
    model = "half_cheetah.xml"  # gymnasium's
    frame_skip = 5
    action_dtype = "float32"
    forward_reward_weight = 1.0
    ctrl_cost_weight = 0.1
    reset_noise_scale = 0.1

    def reset(self, data, rng, info):
        noise = self.reset_noise_scale
        data.qpos[:] = self.init_qpos + rng.uniform(-noise, noise, self.model.nq)
        data.qvel[:] = self.init_qvel + noise * rng.standard_normal(self.model.nv)
        info["x_position"] = data.qpos[0]

    def step(self, data, action, info):
        x_before = data.qpos[0]
        self.simulate(data)
        x_velocity = (data.qpos[0] - x_before) / self.dt
        forward_reward = self.forward_reward_weight * x_velocity
        ctrl_cost = np.float32(self.ctrl_cost_weight) * np.sum(np.square(action))
        info["x_position"] = data.qpos[0]
        info["x_velocity"] = x_velocity
        info["reward_forward"] = forward_reward
        info["reward_ctrl"] = -ctrl_cost
        return forward_reward - np.float64(ctrl_cost), False

    def observation(self, data, obs):
        obs["position"] = data.qpos[1:]
        obs["velocity"] = data.qvel
