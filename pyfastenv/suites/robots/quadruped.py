"""A quadruped of twelve joints that follows commanded velocities over rough ground."""

import numpy as np

from pyfastenv.tasks.language.fields import memory
from pyfastenv.tasks.language.randomise import scale
from pyfastenv.tasks.language.rewards import reward_terms
from pyfastenv.tasks.language.task import Task

LEG = """<body name="{n}" pos="{x} {y} 0"><geom type="sphere" size=".045" mass=".6"/>
  <joint name="{n}_roll" axis="1 0 0" range="-45 45"/>
  <body pos="0 {out} 0"><joint name="{n}_hip" axis="0 1 0" range="-70 120"/>
    <geom type="capsule" fromto="0 0 0 0 0 -.2" size=".022" mass=".9"/>
    <body pos="0 0 -.2"><joint name="{n}_knee" axis="0 1 0" range="-150 -20"/>
      <geom type="capsule" fromto="0 0 0 0 0 -.19" size=".015" mass=".15"/>
      <geom type="sphere" pos="0 0 -.2" size=".022" mass=".05" conaffinity="1"/>
      <site name="{n}_foot" pos="0 0 -.2" size=".03"/></body></body></body>"""
LEGS = {"fl": (0.19, 0.07), "fr": (0.19, -0.07), "hl": (-0.19, 0.07), "hr": (-0.19, -0.07)}
JOINTS = [f"{leg}_{joint}" for leg in LEGS for joint in ("roll", "hip", "knee")]
BODIES = [LEG.format(n=n, x=x, y=y, out=0.09 * np.sign(y)) for n, (x, y) in LEGS.items()]
MOTORS = [f'<position joint="{joint}" kp="45" kv="1" forcerange="-30 30"/>' for joint in JOINTS]
TOUCH = [f'<touch name="{leg}_touch" site="{leg}_foot"/>' for leg in LEGS]
SIDE = 241  # points of the ground along each side, 20 cm apart
XML = f"""<mujoco><option timestep=".004" integrator="implicitfast" iterations="10"/>
  <default><joint damping=".2" armature=".01"/>
  <geom contype="0" conaffinity="0" rgba=".25 .4 .6 1"/></default>
  <asset><texture name="grid" type="2d" builtin="checker" rgb1=".5 .5 .45" rgb2=".6 .6 .55"
    width="64" height="64"/><material name="grid" texture="grid" texrepeat="48 48"/>
  <hfield name="ground" nrow="{SIDE}" ncol="{SIDE}" size="24 24 .2 .1"/></asset>
  <worldbody><light pos="0 0 8" dir=".3 .4 -1" directional="true"/>
  <geom name="ground" type="hfield" hfield="ground" contype="1" material="grid"/>
  <body name="trunk"><freejoint/><camera mode="trackcom" pos="0 -1.6 .8" xyaxes="1 0 0 0 .45 .9"/>
  <geom type="box" size=".22 .09 .055" mass="6" conaffinity="1" rgba=".9 .6 .2 1"/>
  <site name="imu"/>{"".join(BODIES)}</body></worldbody><actuator>{"".join(MOTORS)}</actuator>
  <sensor><gyro name="gyro" site="imu"/><velocimeter name="velocity" site="imu"/>
  {"".join(TOUCH)}</sensor></mujoco>"""
SENSED = ("gravity", "gyro", "joints", "joint_velocities", "last_action", "command", "clock")


class RoughQuadruped(Task):
    model = XML
    frame_skip, max_episode_steps = 5, 750
    observation_dict = {"policy": SENSED, "critic": (*SENSED, "velocity", "feet", "ground")}
    randomise = {
        "body_mass": scale(0.8, 1.2),
        "geom_friction": scale(0.5, 1.2, together=True),
        "dof_damping": scale(0.5, 1.5),
        "actuator_gainprm": scale(0.9, 1.1),
    }
    stance = (0.0, 0.8, -1.5) * 4  # joint angles [rad]
    action_scale = 0.6  # [rad]
    lowest, highest = (-0.5, -0.3, -0.8), (1.0, 0.3, 0.8)  # commands [m/s, m/s, rad/s]
    redraw, push = (
        0.004,
        0.3,
    )  # probability of a new command and a shove, each step; the shove [m/s]
    pace, pairs = 4.0 * np.pi, (1.0, -1.0, -1.0, 1.0)  # of a trot [rad/s]; the feet
    roughness = 0.6  # of the last patch: bumps of 4 cm, blocks of 5, hills and stairs of 12
    command = memory(3)
    last_action = memory(12)

    def setup(self):
        rng = np.random.default_rng(0)
        y, x = np.indices((SIDE, SIDE))
        bumps, blocks = rng.uniform(0, 0.3, x.shape), rng.uniform(0, 0.4, x.shape)[y // 2, x // 2]
        hills, stairs = 0.5 + 0.5 * np.sin(x / 2) * np.sin(y / 2), abs(x // 2 % 12 - 6) / 6
        heights = np.choose(y // 20 % 4, (bumps, blocks, hills, stairs)) * (x // 20 % 6) / 5
        self.model.hfield_data[:] = (self.roughness * heights).ravel()

    def ground(self, x, y):
        row = min(max(int(5 * y + SIDE / 2), 0), SIDE - 1)
        column = min(max(int(5 * x + SIDE / 2), 0), SIDE - 1)
        return 0.2 * np.float64(self.model.hfield_data[SIDE * row + column])

    def clearance(self, data, ahead):
        """The trunk's height over the ground so far ahead of it [m]."""
        frame = data.body("trunk").xmat
        x, y = data.qpos[0] + ahead * frame[0], data.qpos[1] + ahead * frame[3]
        return data.qpos[2] - self.ground(x, y)

    def draw_command(self, rng):
        for i in range(3):
            self.command[i] = rng.uniform(self.lowest[i], self.highest[i])

    def reset(self, data, rng):
        x, y, heading = rng.uniform(-12, 12), rng.uniform(-16, 16), rng.uniform(-np.pi, np.pi)
        data.qpos[0], data.qpos[1], data.qpos[2] = x, y, self.ground(x, y) + 0.34
        data.qpos[3], data.qpos[6] = np.cos(heading / 2), np.sin(heading / 2)
        data.qpos[7:] = self.stance + rng.uniform(-0.1, 0.1, 12)
        self.draw_command(rng)

    def control(self, action, ctrl):
        ctrl[:] = self.stance + self.action_scale * np.clip(action, -1.0, 1.0)

    @reward_terms(
        speed=0.1,
        turn=0.05,
        upright=0.02,
        trot=0.05,
        bounce=-0.05,
        roll=-0.0025,
        effort=-5e-6,
        jerk=-3e-4,
    )
    def step(self, data, action, info, rng):
        if rng.random() < self.redraw:
            self.draw_command(rng)
            data.qvel[:2] += rng.uniform(-self.push, self.push, 2)
        self.simulate(data)
        velocity, spin = data.sensor("velocity").data, data.sensor("gyro").data
        upright = data.body("trunk").xmat[8]
        miss = np.sum(np.square(velocity[:2] - self.command[:2]))
        turn_error = abs(spin[2] - self.command[2])
        info["speed_error"], info["turn_error"] = np.sqrt(miss), turn_error
        # a trot: two feet across carry in one half of a stride, the others in the other
        feet = np.where(data.sensordata[6:] > 0, 1.0, -1.0)
        jerk = np.sum(np.square(action - self.last_action))
        self.last_action[:] = action
        terms = {
            "speed": np.exp(-4.0 * miss),
            "turn": np.exp(-4.0 * np.square(turn_error)),
            "upright": upright,
            "trot": 0.25 * np.sin(self.pace * data.time) * np.sum(self.pairs * feet),
            "bounce": np.square(velocity[2]),
            "roll": np.sum(np.square(spin[:2])),
            "effort": np.sum(np.square(data.actuator_force)),
            "jerk": jerk,
        }
        return terms, {"tipped": upright < 0.5, "low": self.clearance(data, 0.0) < 0.12}

    def observation(self, data, obs):
        obs["gravity"] = data.body("trunk").xmat[6:]
        obs["gyro"] = data.sensor("gyro").data
        obs["joints"] = data.qpos[7:] - self.stance
        obs["joint_velocities"] = 0.1 * data.qvel[6:]
        obs["last_action"] = self.last_action
        obs["command"] = self.command
        obs["clock"] = (np.sin(self.pace * data.time), np.cos(self.pace * data.time))
        obs["velocity"] = data.sensor("velocity").data
        obs["feet"] = np.log1p(data.sensordata[6:])
        obs["ground"] = (self.clearance(data, 0.0), self.clearance(data, 0.3))
