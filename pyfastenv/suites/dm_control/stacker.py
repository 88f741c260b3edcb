"""Stacker: stack two or four boxes."""

import mujoco
import numpy as np

from pyfastenv.suites.dm_control.arm import ArmTask
from pyfastenv.suites.dm_control.base import SuiteModel, pick
from pyfastenv.suites.dm_control.rewards import tolerance
from pyfastenv.suites.starts import MOST_DRAWS


class StackerStack2(ArmTask):
    model = SuiteModel("stacker", lambda stacker: stacker.make_model(2))
    model_fields = ("body_pos",)
    boxes = 2

    def setup(self):
        super().setup()
        self.hand, self.target = self.model.body("hand").id, self.model.body("target").id
        names = [f"box{i}" for i in range(self.boxes)]
        self.box_bodies = [self.model.body(name).id for name in names]
        self.box_sites = [self.model.site(name).id for name in names]
        joints = [f"{name}_{axis}" for name in names for axis in "xyz"]
        self.box_qpos, self.box_qvel = self.addresses(joints)
        self.size = self.model.geom("target").size[0]

    def reset(self, data, rng):
        for _ in range(MOST_DRAWS):
            self.draw_arm(data, rng)
            self.model.body_pos[self.target, 2] = self.size * (2 * rng.integers(self.boxes) + 1)
            self.model.body_pos[self.target, 0] = rng.uniform(-0.37, 0.37)
            for box in range(self.boxes):
                data.qpos[self.box_qpos[3 * box]] = rng.uniform(0.1, 0.3)
                data.qpos[self.box_qpos[3 * box + 2]] = rng.uniform(0.0, 0.7)
                data.qpos[self.box_qpos[3 * box + 1]] = rng.uniform(0.0, 2 * np.pi)
            mujoco.mj_forward(self.model, data)
            if data.ncon == 0:
                return
        raise ValueError("every start that was drawn has contacts")

    def reward(self, data):
        target = self.model.site("target").id
        nearest = np.inf
        for box in self.box_sites:
            nearest = min(nearest, self.distance(data, box, target))
        hand = self.distance(data, self.model.site("grasp").id, target)
        return tolerance(nearest, (0.0, 0.0), 2 * self.size) * tolerance(hand, (0.1, np.inf), 0.01)

    def observation(self, data, obs):
        super().observation(data, obs)
        boxes = np.empty((self.box_bodies.size, 4))
        for box in range(self.box_bodies.size):
            boxes[box] = np.array(self.pose(data, self.box_bodies[box]))
        obs["box_pos"] = boxes
        obs["box_vel"] = pick(data.qvel, self.box_qvel)
        obs["target_pos"] = (data.xpos[self.target, 0], data.xpos[self.target, 2])


class StackerStack4(StackerStack2):
    model = SuiteModel("stacker", lambda stacker: stacker.make_model(4))
    boxes = 4
