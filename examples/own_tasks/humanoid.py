"""gymnasium's Humanoid-v5 as a task, equal to it bit for bit."""

import mujoco
import numpy as np

import pyfastenv


class Humanoid(pyfastenv.Task):
    model = "humanoid.xml"  # gymnasium's
    frame_skip = 5
    external_forces = True
    forward_reward_weight = 1.25
    ctrl_cost_weight = 0.1
    contact_cost_weight = 5e-7
    contact_cost_range = (-np.inf, 10.0)
    healthy_reward = 5.0
    healthy_z_range = (1.0, 2.0)
    reset_noise_scale = 1e-2
    center = pyfastenv.memory(2)  # positions of bodies lag behind the state, so it is kept

    def reset(self, data, rng, info):
        noise = self.reset_noise_scale
        data.qpos[:] = self.init_qpos + rng.uniform(-noise, noise, self.model.nq)
        data.qvel[:] = self.init_qvel + rng.uniform(-noise, noise, self.model.nv)
        mujoco.mj_forward(self.model, data)
        self.find_center(data)
        self.report(data, info)

    def find_center(self, data):
        mass = np.sum(self.model.body_mass)
        for axis in range(2):
            total = 0.0
            for body in range(self.model.nbody):
                total += self.model.body_mass[body] * data.xipos[body, axis]
            self.center[axis] = total / mass

    def report(self, data, info):
        info["x_position"] = data.qpos[0]
        info["y_position"] = data.qpos[1]
        info["tendon_length"] = data.ten_length
        info["tendon_velocity"] = data.ten_velocity
        info["distance_from_origin"] = np.linalg.norm(data.qpos[0:2])

    def step(self, data, info):
        x, y = self.center[0], self.center[1]
        self.simulate(data)
        self.find_center(data)
        x_velocity = (self.center[0] - x) / self.dt
        y_velocity = (self.center[1] - y) / self.dt
        healthy = self.healthy_z_range[0] < data.qpos[2] < self.healthy_z_range[1]
        forward_reward = self.forward_reward_weight * x_velocity
        healthy_reward = healthy * self.healthy_reward
        ctrl_cost = self.ctrl_cost_weight * np.sum(np.square(data.ctrl))
        contact_cost = self.contact_cost_weight * np.sum(np.square(data.cfrc_ext))
        contact_cost = min(
            max(contact_cost, self.contact_cost_range[0]), self.contact_cost_range[1]
        )
        self.report(data, info)
        info["x_velocity"] = x_velocity
        info["y_velocity"] = y_velocity
        info["reward_survive"] = healthy_reward
        info["reward_forward"] = forward_reward
        info["reward_ctrl"] = -ctrl_cost
        info["reward_contact"] = -contact_cost
        return forward_reward + healthy_reward - (ctrl_cost + contact_cost), not healthy

    def observation(self, data, obs):
        obs["position"] = data.qpos[2:]
        obs["velocity"] = data.qvel
        obs["inertia"] = data.cinert[1:]
        obs["com_velocity"] = data.cvel[1:]
        obs["actuator_forces"] = data.qfrc_actuator[6:]
        obs["contact_forces"] = data.cfrc_ext[1:]
