"""Manipulator: bring a ball or peg to a target, or insert it into a cup or slot."""

import mujoco
import numpy as np

from pyfastenv.suites.dm_control.arm import ArmTask
from pyfastenv.suites.dm_control.base import SuiteModel, pick
from pyfastenv.suites.dm_control.rewards import tolerance
from pyfastenv.suites.starts import MOST_DRAWS


class ManipulatorBringBall(ArmTask):
    model = SuiteModel("manipulator", lambda manipulator: manipulator.make_model(False, False))
    model_fields = ("body_pos", "body_quat")
    prop, receptacle = "ball", ""

    def setup(self):
        super().setup()
        model = self.model
        self.hand, self.target = model.body("hand").id, model.body(f"target_{self.prop}").id
        self.body = model.body(self.prop).id
        # bodies at the target, and how far it may be turned
        self.moved = [self.target, *([model.body(self.receptacle).id] if self.receptacle else [])]
        self.turn = np.pi / 3 if self.receptacle else np.pi
        self.prop_qpos, self.prop_qvel = self.addresses([f"{self.prop}_{axis}" for axis in "xzy"])

    def reset(self, data, rng):
        for _ in range(MOST_DRAWS):
            self.draw_arm(data, rng)
            x, z = rng.uniform(-0.4, 0.4), rng.uniform(0.1, 0.4)
            angle = rng.uniform(-self.turn, self.turn)
            for body in self.moved:
                self.model.body_pos[body, 0], self.model.body_pos[body, 2] = x, z
                self.model.body_quat[body, 0] = np.cos(angle / 2)
                self.model.body_quat[body, 2] = np.sin(angle / 2)
            start = rng.random()
            if start < 0.1:  # in the hand
                mujoco.mj_forward(self.model, data)
                grasp = data.site("grasp")
                x, z = grasp.xpos[0], grasp.xpos[2]
                angle = np.pi - np.arctan2(grasp.xmat[6], grasp.xmat[0])
            elif start >= 0.2:  # neither there nor in the target
                x, z = rng.uniform(-0.5, 0.5), rng.uniform(0.0, 0.7)
                angle = rng.uniform(0.0, 2 * np.pi)
                data.qvel[self.prop_qvel[0]] = rng.uniform(-5.0, 5.0)
            data.qpos[self.prop_qpos[0]] = x
            data.qpos[self.prop_qpos[1]] = z
            data.qpos[self.prop_qpos[2]] = angle
            mujoco.mj_forward(self.model, data)
            if data.ncon == 0:
                return
        raise ValueError("every start that was drawn has contacts")

    def close(self, data, first, second):
        return tolerance(self.distance(data, first, second), (0.0, 0.01), 0.02)

    def reward(self, data):
        ball, target = self.model.site("ball").id, self.model.site("target_ball").id
        return self.close(data, ball, target)

    def observation(self, data, obs):
        super().observation(data, obs)
        obs["object_pos"] = self.pose(data, self.body)
        obs["object_vel"] = pick(data.qvel, self.prop_qvel)
        obs["target_pos"] = self.pose(data, self.target)


class ManipulatorInsertBall(ManipulatorBringBall):
    model = SuiteModel("manipulator", lambda manipulator: manipulator.make_model(False, True))
    receptacle = "cup"


class ManipulatorBringPeg(ManipulatorBringBall):
    model = SuiteModel("manipulator", lambda manipulator: manipulator.make_model(True, False))
    prop = "peg"

    def reward(self, data):
        grasp = self.close(data, self.model.site("peg_grasp").id, self.model.site("grasp").id)
        pinch = self.close(data, self.model.site("peg_pinch").id, self.model.site("pinch").id)
        bring = self.close(data, self.model.site("peg").id, self.model.site("target_peg").id)
        tip = self.close(data, self.model.site("target_peg_tip").id, self.model.site("peg_tip").id)
        return max((bring + tip) / 2, (grasp + pinch) / 2 / 3)


class ManipulatorInsertPeg(ManipulatorBringPeg):
    model = SuiteModel("manipulator", lambda manipulator: manipulator.make_model(True, True))
    receptacle = "slot"
