"""Go1 and Spot get up from wherever they have fallen.

Formulas: MuJoCo Playground 0.2, getup.py of _src/locomotion/{go1,spot}.
"""

import mujoco
import numpy as np

from pyfastenv.suites.playground import terms as t
from pyfastenv.suites.playground.go1 import BODY, NOISE, TRUTH, Go1
from pyfastenv.suites.playground.legged import TORSO, Legged
from pyfastenv.suites.playground.spot import Spot
from pyfastenv.tasks.language.noise import uniform
from pyfastenv.tasks.language.rewards import reward_terms

UP = (0.0, 0.0, 1.0)


class Getup(Legged):
    """A robot falls and settles, and is to get up.

    Attributes:
        drop: Probability that an episode starts with a fall; otherwise the robot stands.
        drop_height: From where it falls, turned anyhow [m].
        settle_steps: Of the physics, with servos that hold the start's joints.
    """

    drop, drop_height, settle_steps = 0.6, 0.5, 125

    def reset(self, data, rng):
        data.qpos[:] = self.home
        if rng.random() < self.drop:
            data.qpos[:2], data.qpos[2] = 0.0, self.drop_height
            data.qpos[3:7] = t.any_turn(rng)
            data.qpos[7:] = rng.uniform(self.least_start, self.most_start)
        data.qvel[:6] = rng.uniform(-self.speed, self.speed, 6)
        data.ctrl[:] = data.qpos[7:]
        for _ in range(self.settle_steps):
            mujoco.mj_step(self.model, data)
        data.time = 0.0


class Go1Getup(Getup, Go1):
    """Unitree's Go1 gets up; an action moves the servos' targets from where the joints are.

    Attributes:
        wanted_height: Of the trunk [m].
    """

    max_episode_steps, wanted_height = 300, 0.275
    scene = "locomotion/go1/xmls/scene_mjx_fullcollisions_flat_terrain.xml"
    stands, sensors = (), TORSO
    observation_dict = {"policy": BODY, "critic": (*BODY, *TRUTH)}
    observation_noise = {name: NOISE[name] for name in NOISE if name != "linvel"}

    def setup(self):
        super().setup()
        self.least_start, self.most_start = self.model.jnt_range[1:].T.copy()

    def control(self, data, action, ctrl):
        ctrl[:] = data.qpos[7:] + self.action_scale * action

    @reward_terms(
        0.0,
        orientation=1.0,
        torso_height=1.0,
        posture=1.0,
        stand_still=1.0,
        action_rate=-0.001,
        torques=-1e-5,
        dof_pos_limits=-0.1,
        dof_acc=-2.5e-7,
        dof_vel=-0.1,
    )
    def step(self, data, action, info):
        self.remember(action)
        self.simulate(data)
        dt, up, angles = self.dt, data.site("imu").xmat[6:], data.qpos[7:]
        height = min(data.site("imu").xpos[2], self.wanted_height)
        lean = t.distance(up, UP)
        is_up = lean < 0.01
        stands = is_up and self.wanted_height - height < 0.005
        terms = {
            "orientation": dt * np.exp(-2.0 * lean),
            "torso_height": dt * (np.exp(height) - 1.0),
            "posture": dt * is_up * np.exp(-0.5 * t.distance(angles, self.pose)),
            "stand_still": dt * stands * np.exp(-0.5 * t.squares(action)),
            "action_rate": dt * t.jerk(action, self.last_action, self.action_before),
            "torques": dt * t.effort(data.actuator_force),
            "dof_pos_limits": dt * t.beyond(angles, self.lowest, self.highest),
            "dof_acc": dt * t.squares(data.qacc[6:]),
            "dof_vel": dt * t.excess(data.qvel[6:], 2.0 * np.pi),
        }
        return terms, False

    def observation(self, data, obs):
        self.show_body(data, obs)
        self.show_fallen(data, obs)


class SpotGetup(Getup, Spot):
    """Boston Dynamics' Spot gets up; joints beyond their servos' ranges end the episode."""

    max_episode_steps = 300
    scene = "locomotion/spot/xmls/scene_mjx_flat_terrain.xml"
    stands, sensors = (), ("gyro", "upvector")
    stiffness, damping, action_scale, drop_height = 400.0, 20.0, 0.6, 1.0
    observation_noise = {
        "gyro": uniform(-0.2, 0.2),
        "upvector": uniform(-0.05, 0.05),
        "joints": uniform(-0.01, 0.01),
    }

    def setup(self):
        super().setup()
        self.least_start, self.most_start = self.least_target, self.most_target
        self.stand_height = self.home[2]

    def control(self, data, action, ctrl):
        self.aim(ctrl, data.qpos[7:], action)

    @reward_terms(
        0.0,
        orientation=1.0,
        torso_height=1.0,
        posture=1.0,
        stand_still=1.0,
        action_rate=0.0,
        torques=0.0,
    )
    def step(self, data, action, info):
        self.remember(action)
        self.simulate(data)
        dt, up = self.dt, data.sensor("upvector").data
        low = min(max((self.stand_height - data.qpos[2]) / self.stand_height, 0.0), 1.0)
        lean = t.distance(up, UP)
        is_up = lean < 0.01
        terms = {
            "orientation": dt * np.exp(-2.0 * lean),
            "torso_height": dt * (1.0 - low),
            "posture": dt * is_up * np.exp(-0.5 * t.distance(data.qpos[7:], self.pose)),
            "stand_still": dt * (is_up and low < 0.005) * np.exp(-0.5 * t.squares(action)),
            "action_rate": dt * t.jerk(action, self.last_action, self.action_before),
            "torques": dt * t.effort(data.actuator_force),
        }
        return terms, {"bent_too_far": self.is_bent_too_far(data)}

    def observation(self, data, obs):
        obs["gyro"] = data.sensor("gyro").data
        obs["upvector"] = data.sensor("upvector").data
        obs["joints"] = data.qpos[7:] - self.pose
        obs["last_action"] = self.last_action
