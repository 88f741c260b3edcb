"""A quadruped of primitives that follows a commanded velocity, is pushed, and feels the floor."""

import numpy as np

import pyfastenv

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
    stiffness, damping, action_scale = 1.5, 0.05, 0.5
    tracking_weight, rate_weight, push = 1.0, 0.01, 0.5
    velocity = pyfastenv.command(2, low=-1.0, high=1.0)  # forward, sideways [m/s]
    last_action = pyfastenv.memory(8)
    phase = pyfastenv.memory()

    def setup(self):
        self.floor = self.model.geom("floor").id

    def reset(self, data, rng):
        data.qpos[:] = self.init_qpos
        data.qpos[7:] += rng.uniform(-0.1, 0.1, 8)
        data.joint("root").qvel[:3] = 0.1 * rng.standard_normal(3)

    def control(self, data, action, ctrl):
        target = self.action_scale * action
        ctrl[:] = self.stiffness * (target - data.qpos[7:]) - self.damping * data.qvel[6:]

    def step(self, data, action, info, rng):
        if rng.random() < 0.02:
            data.qvel[rng.integers(0, 2)] += self.push * rng.standard_normal()
        self.simulate(data)
        self.phase += self.dt
        feet = 0
        for i in range(data.ncon):
            if data.contact[i].geom1 == self.floor and data.contact[i].dist < 0:
                feet += 1
        error = data.sensor("velocity").data[:2] - self.velocity
        tracking = np.exp(-4.0 * np.sum(np.square(error)))
        rate = np.sum(np.square(action - self.last_action))
        self.last_action[:] = action
        info["tracking"] = tracking
        info["feet_on_ground"] = feet
        fallen = data.body("trunk").xpos[2] < 0.2
        return self.tracking_weight * tracking - self.rate_weight * rate, fallen

    def observation(self, data, obs):
        obs["trunk"] = data.body("trunk").xquat
        obs["gyro"] = data.sensor("gyro").data
        obs["joints"] = data.qpos[7:]
        obs["joint_velocities"] = data.qvel[6:]
        obs["clock"] = (np.sin(6.0 * self.phase), np.cos(6.0 * self.phase))
        obs["command"] = self.velocity
        obs["last_action"] = self.last_action
