"""A pole on a cart with named reward terms and endings, in short episodes."""

import numpy as np

import pyfastenv
from pyfastenv.tasks.language.noise import normal

XML = """<mujoco><option timestep="0.01"/><worldbody>
<body pos="0 0 1"><joint name="slide" type="slide" axis="1 0 0"/>
<geom type="box" size=".1 .1 .1" mass="5"/>
<body><joint name="hinge" axis="0 1 0" damping=".1" stiffness="3"/>
<geom type="capsule" fromto="0 0 .1 0 0 .6" size=".03" mass=".3"/></body></body></worldbody>
<actuator><motor joint="slide" ctrlrange="-1 1" ctrllimited="true" gear="25"/></actuator>
</mujoco>"""


class Pole(pyfastenv.Task):
    """``broken`` makes a term NaN once the cart has moved so far."""

    model = XML
    frame_skip = 2
    max_episode_steps = 30
    broken = 1e9

    def reset(self, data, rng):
        data.qpos[:] = rng.uniform(-0.05, 0.05, 2)

    @pyfastenv.reward_terms(upright=1.0, effort=-0.1, middle=0.5)
    def step(self, data, action, info):
        self.simulate(data)
        ended = {"fallen": abs(data.qpos[1]) > 0.2}
        ended["away"] = abs(data.qpos[0]) > 0.4
        if abs(data.qpos[0]) > 0.3:
            return {"upright": 0.0, "middle": False}, ended
        middle = 1.0 - abs(data.qpos[0])
        if abs(data.qpos[0]) > self.broken:
            middle = np.nan
        effort = np.sum(np.square(action))
        return {"upright": np.cos(data.qpos[1]), "effort": effort, "middle": middle}, ended

    def observation(self, data, obs):
        obs["state"] = np.concatenate((data.qpos, data.qvel))


class Judged(Pole):
    """The same, whose rewards a function of the whole batch has."""

    def batch_step(self, obs, reward):
        return 2.0 * reward, np.abs(obs["state"][:, 1]) > 0.1


class Longer(Pole):
    """A step around the step, with terms and endings of its own."""

    @pyfastenv.reward_terms(short=1.0, straight=-0.5)
    def step(self, data, action, info):
        reward, terminated = super().step(data, action, info)
        straight = abs(data.qpos[1])
        return {"short": reward, "straight": straight}, {"short": terminated, "tilted": False}


class Seen(Pole):
    """A zero is observed, with noise."""

    observation_noise = {"nothing": normal(0.5)}

    def observation(self, data, obs):
        obs["nothing"] = 0.0
        super().observation(data, obs)


class Told(Pole):
    """With a command, of which an episode's error is its first number."""

    speed = pyfastenv.command(low=(-1.0, 0.5), high=(2.0, 0.5), every=0.1)

    @pyfastenv.reward_terms(told=1.0)
    def step(self, data, action, info):
        self.simulate(data)
        info["episode_speed_error"] = np.abs(self.speed[0])
        late = data.time > 0.59 and self.speed[0] == 2.0
        return {"told": self.speed[1]}, {"late": late, "bent": False}
