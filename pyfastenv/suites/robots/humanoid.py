"""A small humanoid, 60 cm tall, of sixteen joints with position servos: it learns to walk."""

import numpy as np

from pyfastenv.tasks.language.fields import memory
from pyfastenv.tasks.language.randomise import scale
from pyfastenv.tasks.language.symmetry import (
    AXIAL_VECTOR,
    VECTOR,
    Symmetry,
    joint_mirror,
    mirror,
)
from pyfastenv.tasks.language.task import Task

LEG = """<body name="{n}_hip" pos="0 {y} -.09">
  <joint name="{n}_roll" axis="1 0 0" range="-30 30"/>
  <joint name="{n}_yaw" axis="0 0 1" range="-35 35"/>
  <joint name="{n}_pitch" axis="0 1 0" range="-90 45"/>
  <geom type="capsule" fromto="0 0 0 0 0 -.12" size=".032" mass=".45"/>
  <body pos="0 0 -.12"><joint name="{n}_knee" axis="0 1 0" range="0 120"/>
    <geom type="capsule" fromto="0 0 0 0 0 -.12" size=".026" mass=".3"/>
    <body name="{n}_foot" pos="0 0 -.13"><joint name="{n}_ankle" axis="0 1 0" range="-45 45"/>
      <joint name="{n}_tilt" axis="1 0 0" range="-25 25"/>
      <geom type="box" pos=".015 0 -.015" size=".06 .032 .012" mass=".12"
        contype="1" conaffinity="1"/>
      <site name="{n}_sole" pos=".015 0 -.015" size=".065 .035 .02" type="box"/>
    </body></body></body>"""
ARM = """<body pos="0 {y} .13"><joint name="{n}_shoulder" axis="0 1 0" range="-120 60"/>
  <geom type="capsule" fromto="0 0 0 0 0 -.11" size=".022" mass=".15"/>
  <body pos="0 0 -.11"><joint name="{n}_elbow" axis="0 1 0" range="-110 0"/>
    <geom type="capsule" fromto="0 0 0 0 0 -.1" size=".02" mass=".12" contype="1"/></body></body>"""
SIDES = {"left": 1, "right": -1}
LEGS = [LEG.format(n=n, y=0.05 * side) for n, side in SIDES.items()]
ARMS = [ARM.format(n=n, y=0.115 * side) for n, side in SIDES.items()]
LEG_JOINTS = ("roll", "yaw", "pitch", "knee", "ankle", "tilt")
JOINTS = [f"{n}_{joint}" for n in SIDES for joint in LEG_JOINTS]
JOINTS += [f"{n}_{joint}" for n in SIDES for joint in ("shoulder", "elbow")]
SERVOS = [f'<position joint="{joint}" kp="18" kv=".5" forcerange="-9 9"/>' for joint in JOINTS]
XML = f"""<mujoco><option timestep=".004" integrator="implicitfast" iterations="10"/>
  <default><joint damping=".1" armature=".005"/>
    <geom contype="0" conaffinity="0" rgba=".25 .4 .6 1"/></default>
  <asset><texture name="grid" type="2d" builtin="checker" rgb1=".5 .5 .45" rgb2=".6 .6 .55"
      width="64" height="64"/><material name="grid" texture="grid" texrepeat="80 80"/></asset>
  <worldbody><light pos="0 0 5" dir=".3 .4 -1" directional="true"/>
  <geom name="floor" type="plane" size="40 40 1" conaffinity="1" material="grid"/>
  <body name="torso"><freejoint/><camera mode="trackcom" pos="0 -1.1 .25" xyaxes="1 0 0 0 .2 1"/>
  <geom type="box" pos="0 0 .05" size=".05 .08 .1" mass="1.6" contype="1"/>
  <geom type="sphere" pos="0 0 .23" size=".06" mass=".3" contype="1" rgba=".9 .6 .2 1"/>
  <site name="imu"/>
  {"".join(LEGS)}{"".join(ARMS)}</body></worldbody>
  <actuator>{"".join(SERVOS)}</actuator>
  <sensor><gyro name="gyro" site="imu"/><velocimeter name="velocity" site="imu"/>
  <touch name="left_touch" site="left_sole"/><touch name="right_touch" site="right_sole"/></sensor>
  </mujoco>"""


class SmallHumanoid(Task):
    model = XML
    frame_skip = 5
    randomise = {"body_mass": scale(0.9, 1.1), "geom_friction": scale(0.6, 1.2, together=True)}
    bent = (0.0, 0.0, -0.35, 0.7, -0.35, 0.0)  # a leg's angles [rad]
    stance = bent + bent + (0.0, -0.4, 0.0, -0.4)
    action_scale = 0.5  # [rad]
    speed = 0.4  # [m/s]
    period = 0.64  # of a stride [s]
    last_action = memory(16)

    def symmetry(self):
        joints = joint_mirror(self.model)
        vectors = dict.fromkeys(("gravity", "velocity"), VECTOR)
        angles = dict.fromkeys(("joints", "joint_velocities", "last_action"), joints)
        half_a_stride_later, feet = mirror((0,), (-1, -1)), mirror((1, 0))
        others = {"gyro": AXIAL_VECTOR, "clock": half_a_stride_later, "feet": feet}
        return Symmetry(joints, {**vectors, **angles, **others})

    def reset(self, data, rng):
        data.qpos[2] = 0.34
        data.qpos[3] = 1.0
        data.qpos[7:] = self.stance + rng.uniform(-0.05, 0.05, 16)
        data.qvel[:] = rng.uniform(-0.05, 0.05, self.model.nv)

    def control(self, action, ctrl):
        ctrl[:] = self.stance + self.action_scale * np.clip(action, -1.0, 1.0)

    def step(self, data, action, info):
        self.simulate(data)
        velocity, spin = data.sensor("velocity").data, data.sensor("gyro").data
        upright = data.body("torso").xmat[8]
        miss = np.square(velocity[0] - self.speed) + np.square(velocity[1])
        tracking = np.exp(-8.0 * miss)
        # the left foot carries in one half of a stride, the right one in the other
        left, right = data.sensor("left_touch").data[0] > 0, data.sensor("right_touch").data[0] > 0
        left_turn = np.sin(2 * np.pi * data.time / self.period) > 0
        in_step = 0.5 * (left == left_turn) + 0.5 * (right != left_turn)
        effort = np.sum(np.square(data.actuator_force))
        jerk = np.sum(np.square(action - self.last_action))
        self.last_action[:] = action
        info["tracking"], info["in_step"] = tracking, in_step
        reward = 0.5 + tracking + 0.5 * in_step + 0.3 * upright
        reward -= 0.02 * np.sum(np.square(spin)) + 1e-3 * effort + 0.01 * jerk
        return 0.1 * reward, upright < 0.6 or data.qpos[2] < 0.2

    def observation(self, data, obs):
        obs["gravity"] = data.body("torso").xmat[6:]
        obs["gyro"] = 0.3 * data.sensor("gyro").data
        obs["joints"] = data.qpos[7:] - self.stance
        obs["joint_velocities"] = 0.1 * data.qvel[6:]
        obs["last_action"] = self.last_action
        phase = 2 * np.pi * data.time / self.period
        obs["clock"] = (np.sin(phase), np.cos(phase))
        obs["velocity"] = data.sensor("velocity").data
        obs["feet"] = np.log1p(data.sensordata[6:])
