"""Finger: spin a body on a hinge, or turn it to an angle."""

import mujoco
import numpy as np

from pyfastenv.suites.dm_control.base import SuiteModel, SuiteTask, draw_joints_without_contacts


class FingerSpin(SuiteTask):
    model = SuiteModel("finger")
    frame_skip = 2

    def setup(self):
        self.model.joint("hinge").damping[:] = 0.03
        for site in ("target", "tip"):
            self.model.site(site).rgba[3] = 0.0

    def reset(self, data, rng):
        draw_joints_without_contacts(self.model, data, rng)

    def reward(self, data):
        return 1.0 if data.sensor("hinge_velocity").data[0] <= -15.0 else 0.0

    def tip(self, data):
        return data.sensor("tip").data[::2] - data.sensor("spinner").data[::2]

    def observation(self, data, obs):
        proximal, distal = data.sensor("proximal").data[0], data.sensor("distal").data[0]
        obs["joints"] = (proximal, distal)
        obs["tip"] = self.tip(data)
        obs["velocity"] = (
            data.sensor("proximal_velocity").data[0],
            data.sensor("distal_velocity").data[0],
            data.sensor("hinge_velocity").data[0],
        )
        top, bottom = data.sensor("touchtop").data[0], data.sensor("touchbottom").data[0]
        obs["touch"] = (np.log1p(top), np.log1p(bottom))


class FingerTurnEasy(FingerSpin):
    model_fields = ("site_pos",)
    target_radius = 0.07

    def setup(self):
        self.model.site("target").size[0] = self.target_radius
        data = mujoco.MjData(self.model)
        mujoco.mj_forward(self.model, data)
        self.hinge = data.joint("hinge").xanchor.copy()
        self.radius = np.sum(self.model.geom("cap1").size)

    def reset(self, data, rng):
        angle = rng.uniform(-np.pi, np.pi)
        target = self.model.site("target").pos
        target[0] = self.hinge[0] + self.radius * np.sin(angle)
        target[2] = self.hinge[2] + self.radius * np.cos(angle)
        draw_joints_without_contacts(self.model, data, rng)

    def target(self, data):
        return data.sensor("target").data[::2] - data.sensor("spinner").data[::2]

    def distance(self, data):
        to_target = self.target(data) - self.tip(data)
        return np.linalg.norm(to_target) - self.model.site("target").size[0]

    def reward(self, data):
        return 1.0 if self.distance(data) <= 0 else 0.0

    def observation(self, data, obs):
        super().observation(data, obs)
        obs["target_position"] = self.target(data)
        obs["dist_to_target"] = self.distance(data)


class FingerTurnHard(FingerTurnEasy):
    target_radius = 0.03
