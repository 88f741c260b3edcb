"""Humanoid: stand, walk, run."""

import numpy as np

from pyfastenv.suites.dm_control.base import (
    SuiteModel,
    SuiteTask,
    draw_joints_without_contacts,
    seen_from,
    small_control,
)
from pyfastenv.suites.dm_control.rewards import LINEAR, tolerance, tolerances


class HumanoidStand(SuiteTask):
    model = SuiteModel("humanoid")
    frame_skip = 5
    speed = 0.0
    root = "torso"
    up = 8  # of the root's xmat: how upright it is
    limbs = ("left_hand", "left_foot", "right_hand", "right_foot")

    def setup(self):
        self.torso = self.model.body(self.root).id
        self.limb_ids = [self.model.body(name).id for name in self.limbs]
        self.velocity_at = self.model.sensor(f"{self.root}_subtreelinvel").adr[0]

    def reset(self, data, rng):
        draw_joints_without_contacts(self.model, data, rng)

    def com_velocity(self, data):
        return data.sensordata[self.velocity_at : self.velocity_at + 3]

    def reward(self, data):
        standing = tolerance(data.body("head").xpos[2], (1.4, np.inf), 1.4 / 4)
        upright = tolerance(data.xmat[self.torso, self.up], (0.9, np.inf), 1.9, LINEAR, 0.0)
        horizontal = self.com_velocity(data)[:2]
        if self.speed == 0.0:
            moving = np.mean(tolerances(horizontal, (0.0, 0.0), 2.0))
        else:
            speed = np.linalg.norm(horizontal)
            moving = (5 * tolerance(speed, (self.speed, np.inf), self.speed, LINEAR, 0.0) + 1) / 6
        return small_control(data) * (standing * upright) * moving

    def observation(self, data, obs):
        obs["joint_angles"] = data.qpos[7:]
        obs["head_height"] = data.body("head").xpos[2]
        extremities = np.empty((4, 3))
        for i in range(4):
            from_torso = data.xpos[self.limb_ids[i]] - data.xpos[self.torso]
            extremities[i] = seen_from(data, self.torso, from_torso)
        obs["extremities"] = extremities
        obs["torso_vertical"] = data.xmat[self.torso, 6:]
        obs["com_velocity"] = self.com_velocity(data)
        obs["velocity"] = data.qvel


class HumanoidWalk(HumanoidStand):
    speed = 1.0


class HumanoidRun(HumanoidStand):
    speed = 10.0


class HumanoidRunPureState(HumanoidRun):
    observation = SuiteTask.observation
