"""gymnasium's Hopper-v5 as a task, equal to it bit for bit."""

import numpy as np

import pyfastenv


class Hopper(pyfastenv.Task):
    model = "hopper.xml"  # gymnasium's
    frame_skip = 4
    action_dtype = "float32"
    forward_reward_weight = 1.0
    ctrl_cost_weight = 1e-3
    healthy_reward = 1.0
    healthy_state_range = (-100.0, 100.0)
    healthy_z_range = (0.7, np.inf)
    healthy_angle_range = (-0.2, 0.2)
    reset_noise_scale = 5e-3

    def reset(self, data, rng, info):
        noise = self.reset_noise_scale
        data.qpos[:] = self.init_qpos + rng.uniform(-noise, noise, self.model.nq)
        data.qvel[:] = self.init_qvel + rng.uniform(-noise, noise, self.model.nv)
        self.report(data, info)

    def report(self, data, info):
        info["x_position"] = data.qpos[0]
        info["z_distance_from_origin"] = data.qpos[1] - self.init_qpos[1]

    def is_healthy(self, data):
        low, high = self.healthy_state_range
        for i in range(2, self.model.nq):
            if not low < data.qpos[i] < high:
                return False
        for velocity in data.qvel:
            if not low < velocity < high:
                return False
        min_z, max_z = self.healthy_z_range
        min_angle, max_angle = self.healthy_angle_range
        return min_z < data.qpos[1] < max_z and min_angle < data.qpos[2] < max_angle

    def step(self, data, action, info):
        x_before = data.qpos[0]
        self.simulate(data)
        x_velocity = (data.qpos[0] - x_before) / self.dt
        healthy = self.is_healthy(data)
        forward_reward = self.forward_reward_weight * x_velocity
        healthy_reward = healthy * self.healthy_reward
        ctrl_cost = np.float32(self.ctrl_cost_weight) * np.sum(np.square(action))
        self.report(data, info)
        info["x_velocity"] = x_velocity
        info["reward_forward"] = forward_reward
        info["reward_ctrl"] = -ctrl_cost
        info["reward_survive"] = healthy_reward
        return forward_reward + healthy_reward - np.float64(ctrl_cost), not healthy

    def observation(self, data, obs):
        obs["position"] = data.qpos[1:]
        obs["velocity"] = np.clip(data.qvel, -10.0, 10.0)
