"""gymnasium's Ant-v5 as a task, equal to it bit for bit."""

import mujoco
import numpy as np

import pyfastenv


class Ant(pyfastenv.Task):
    model = "ant.xml"  # gymnasium's
    frame_skip = 5
    external_forces = True
    action_dtype = "float32"
    forward_reward_weight = 1.0
    ctrl_cost_weight = 0.5
    contact_cost_weight = 5e-4
    contact_force_range = (-1.0, 1.0)
    healthy_reward = 1.0
    healthy_z_range = (0.2, 1.0)
    reset_noise_scale = 0.1
    torso = pyfastenv.memory(2)  # positions of bodies lag behind the state, so they are kept

    def reset(self, data, rng, info):
        noise = self.reset_noise_scale
        data.qpos[:] = self.init_qpos + rng.uniform(-noise, noise, self.model.nq)
        data.qvel[:] = self.init_qvel + noise * rng.standard_normal(self.model.nv)
        mujoco.mj_forward(self.model, data)
        self.torso[:] = data.body("torso").xpos[:2]
        self.report(data, info)

    def report(self, data, info):
        info["x_position"] = data.qpos[0]
        info["y_position"] = data.qpos[1]
        info["distance_from_origin"] = np.linalg.norm(data.qpos[0:2])

    def is_healthy(self, data):
        finite = np.isfinite(data.qpos).all() and np.isfinite(data.qvel).all()
        return finite and self.healthy_z_range[0] <= data.qpos[2] <= self.healthy_z_range[1]

    def contact_forces(self, data):
        return np.clip(data.cfrc_ext, self.contact_force_range[0], self.contact_force_range[1])

    def step(self, data, action, info):
        self.simulate(data)
        velocity = (data.body("torso").xpos[:2] - self.torso) / self.dt
        self.torso[:] = data.body("torso").xpos[:2]
        healthy = self.is_healthy(data)
        forward_reward = velocity[0] * self.forward_reward_weight
        healthy_reward = healthy * self.healthy_reward
        ctrl_cost = np.float32(self.ctrl_cost_weight) * np.sum(np.square(action))
        contact_cost = self.contact_cost_weight * np.sum(np.square(self.contact_forces(data)))
        self.report(data, info)
        info["x_velocity"] = velocity[0]
        info["y_velocity"] = velocity[1]
        info["reward_forward"] = forward_reward
        info["reward_ctrl"] = -ctrl_cost
        info["reward_contact"] = -contact_cost
        info["reward_survive"] = healthy_reward
        costs = np.float64(ctrl_cost) + contact_cost
        return forward_reward + healthy_reward - costs, not healthy

    def observation(self, data, obs):
        obs["position"] = data.qpos[2:]
        obs["velocity"] = data.qvel
        obs["contact_forces"] = self.contact_forces(data)[1:]
