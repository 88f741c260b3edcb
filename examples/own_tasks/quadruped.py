"""A quadruped of primitives that follows a commanded velocity, is pushed, and feels the floor."""

import numpy as np

import pyfastenv
from pyfastenv.tasks.language.helpers import land, projected_gravity, push, touching
from pyfastenv.tasks.language.noise import normal, uniform

LEG = """<body name="{n}" pos="{x} {y} 0"><joint name="{n}_hip" axis="1 0 0" range="-45 45"/>
  <geom type="capsule" fromto="0 0 0 0 0 -.2" size=".03"/>
  <body pos="0 0 -.2"><joint name="{n}_knee" axis="0 1 0" range="-80 80"/>
  <geom type="capsule" fromto="0 0 0 0 0 -.2" size=".025"/>
  <geom name="{n}_foot" type="sphere" pos="0 0 -.2" size=".035"/></body></body>"""
LEGS = {"fl": (0.2, 0.15), "fr": (0.2, -0.15), "hl": (-0.2, 0.15), "hr": (-0.2, -0.15)}
JOINTS = [f"{n}_{joint}" for n in LEGS for joint in ("hip", "knee")]
BODIES = [LEG.format(n=n, x=x, y=y) for n, (x, y) in LEGS.items()]
MOTORS = [f'<motor joint="{joint}" ctrlrange="-1 1" gear="25"/>' for joint in JOINTS]
XML = f"""<mujoco><option timestep=".004"/><default><joint damping=".5" armature=".01"/></default>
  <worldbody><geom name="floor" type="plane" size="20 20 1"/>
  <body name="trunk" pos="0 0 .45"><freejoint name="root"/>
  <geom type="box" size=".25 .12 .05" mass="6"/><site name="imu"/>
  {"".join(BODIES)}</body></worldbody>
  <actuator>{"".join(MOTORS)}</actuator>
  <sensor><gyro name="gyro" site="imu"/><velocimeter name="velocity" site="imu"/></sensor>
  </mujoco>"""


class Quadruped(pyfastenv.Task):
    model = XML
    frame_skip = 5
    control_every = 1  # a PD controller at every substep
    stiffness, damping, action_scale, shove = 1.5, 0.05, 0.5, 0.5
    velocity = pyfastenv.command(2, low=-1.0, high=1.0, every=(3, 8), standing=0.1)  # [m/s]
    observation_noise = {"gyro": uniform(-0.2, 0.2), "joints": normal(0.01)}
    last_action = pyfastenv.memory(8)
    air_time = pyfastenv.memory(4)

    def setup(self):
        self.feet = np.array([self.model.geom(f"{leg}_foot").id for leg in LEGS])

    def reset(self, data, rng):
        data.qpos[7:] += rng.uniform(-0.1, 0.1, 8)
        data.joint("root").qvel[:3] = 0.1 * rng.standard_normal(3)

    def control(self, data, action, ctrl):
        target = self.action_scale * action
        ctrl[:] = self.stiffness * (target - data.qpos[7:]) - self.damping * data.qvel[6:]

    @pyfastenv.reward_terms(tracking=1.0, stride=0.5, rate=-0.01)
    def step(self, data, action, info, rng):
        push(data.qvel[:2], rng, 0.02, self.shove)
        self.simulate(data)
        error = data.sensor("velocity").data[:2] - self.velocity
        terms = {
            "tracking": np.exp(-4.0 * np.sum(np.square(error))),
            "stride": np.sum(land(self.air_time, touching(data, self.feet), self.dt)),
            "rate": np.sum(np.square(action - self.last_action)),
        }
        self.last_action[:] = action
        return terms, {"fallen": data.body("trunk").xpos[2] < 0.2}

    def observation(self, data, obs):
        obs["gravity"] = projected_gravity(data.qpos[3:7])
        obs["gyro"] = data.sensor("gyro").data
        obs["joints"] = data.qpos[7:]
        obs["joint_velocities"] = data.qvel[6:]
        obs["command"] = self.velocity
        obs["last_action"] = self.last_action
