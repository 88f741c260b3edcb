"""Cart-poles that show policies positions alone (the studies recurrent_ppo and seen)."""

import pyfastenv

_MODEL = """
<mujoco>
  <option timestep="0.01"/>
  <worldbody>
    <body>
      <joint name="cart" type="slide" axis="1 0 0"/>
      <geom type="box" size="0.2 0.1 0.1" mass="1"/>
      <body>
        <joint name="pole" axis="0 1 0"/>
        <geom type="capsule" fromto="0 0 0 0 0 1" size="0.03" mass="0.1"/>
      </body>
    </body>
  </worldbody>
  <actuator><motor joint="cart" gear="10" ctrlrange="-1 1" ctrllimited="true"/></actuator>
</mujoco>
"""
_LATEST = 4


class HiddenVelocities(pyfastenv.Task):
    """CartPole-v1's masses, lengths, limits and rewards, without friction; the force is between
    -10 and 10 N, and of the state only the two positions are seen."""

    model = _MODEL
    frame_skip = 2
    max_episode_steps = 500

    def reset(self, data, rng):
        data.qpos[:] = rng.uniform(-0.05, 0.05, 2)
        data.qvel[:] = rng.uniform(-0.05, 0.05, 2)

    def step(self, data, action):
        self.simulate(data)
        return 1.0, abs(data.qpos[0]) > 2.4 or abs(data.qpos[1]) > 0.2095

    def observation(self, data, obs):
        obs["positions"] = data.qpos


class LatestPositions(HiddenVelocities):
    """The same with the latest four observations side by side, the newest first."""

    latest = pyfastenv.memory(2 * _LATEST)

    def reset(self, data, rng):
        super().reset(data, rng)
        for i in range(_LATEST):
            self.latest[2 * i : 2 * i + 2] = data.qpos

    def step(self, data, action):
        reward, terminated = super().step(data, action)
        for i in range(2 * _LATEST - 1, 1, -1):
            self.latest[i] = self.latest[i - 2]
        self.latest[:2] = data.qpos
        return reward, terminated

    def observation(self, data, obs):
        obs["positions"] = self.latest


class ToldCritic(LatestPositions):
    """The same, whose critic sees the velocities, too."""

    observation_dict = {"policy": "positions", "critic": ("positions", "velocities")}

    def observation(self, data, obs):
        super().observation(data, obs)
        obs["velocities"] = data.qvel
