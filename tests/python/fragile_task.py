"""A task that breaks in the way that its action names (test_task_failures.py)."""

import mujoco
import numpy as np

import pyfastenv

XML = """<mujoco><worldbody><body><joint name="slide" type="slide" axis="1 0 0"/>
  <geom name="box" type="box" size=".1 .1 .1"/></body></worldbody>
  <actuator><motor joint="slide" ctrlrange="-1 1"/></actuator></mujoco>"""


class Fragile(pyfastenv.Task):
    """An action chooses what goes wrong."""

    model = XML
    steps = pyfastenv.memory()

    def reset(self, data, rng):
        data.qpos[0] = rng.uniform(-0.1, 0.1)

    def step(self, data, action):
        self.simulate(data)
        self.steps += 1
        if action[0] == 2.0:
            raise ValueError(f"two is too much after {data.time:.3f} s")
        if action[0] == 3.0:
            return data.qpos[int(action[0])], False
        if action[0] == 4.0:
            return np.log(-1.0), False
        if action[0] == 5.0:
            zero, hit = np.zeros(3), np.zeros(1, np.int32)
            return mujoco.mj_ray(self.model, data, zero, zero, None, 1, -1, hit), False
        if action[0] == 6.0:
            data.qvel[0] = np.nan
        return self.steps, False

    def observation(self, data, obs):
        obs["state"] = data.qpos
        obs["steps"] = self.steps


class Blind(Fragile):
    """Its second observation is no number after five steps."""

    def observation(self, data, obs):
        obs["state"] = data.qpos
        obs["steps"] = self.steps if self.steps < 5 else np.nan
