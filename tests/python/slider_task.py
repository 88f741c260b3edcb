"""A box that is to slide to the middle, which a picture shows."""

import pyfastenv

XML = """<mujoco><option timestep="0.02"/><worldbody><light pos="0 0 3"/>
<body><joint name="slide" type="slide" axis="1 0 0"/>
<geom type="box" size=".2 .2 .2" mass="1" rgba="1 1 1 1"/></body></worldbody>
<actuator><velocity joint="slide" kv="40" ctrlrange="-1 1" ctrllimited="true"/></actuator>
</mujoco>"""


class Slider(pyfastenv.Task):
    model = XML
    frame_skip = 10
    max_episode_steps = 12

    def reset(self, data, rng):
        data.qpos[0] = rng.uniform(-1.0, 1.0)

    def step(self, data):
        self.simulate(data)
        return 1.0 - abs(data.qpos[0]), False

    def observation(self, data, obs):
        obs["state"] = data.qpos
