"""Two legs of 80 muscles stand, and walk over plain and uneven ground.

Formulas: MyoSuite 2.11.6, envs/myo/myobase/walk_v0.py.
"""

import mujoco
import numpy as np

from pyfastenv.suites.myosuite.base import Muscles, length
from pyfastenv.tasks.language.fields import memory
from pyfastenv.tasks.language.rewards import reward_terms


class Legs(Muscles, actuators=80):
    """Legs under a pelvis that is free to move, and a torso.

    Attributes:
        ground_height: Of the height field [m].
    """

    file = "simhive/myo_sim/leg/myolegs.xml"
    ground_height = -10.0  # out of the way

    def setup(self):
        super().setup()
        self.model.geom("terrain").pos[:] = 0.0, 0.0, self.ground_height
        self.start = self.model.key_qpos[0].copy()


class LegStandRandom(Legs):
    """Stand, from any pose near by, with the pelvis at a place."""

    max_episode_steps = 150
    target_low, target_high = (-0.05, -0.05, 0.0), (0.05, 0.05, 0.0)
    joint_range = 0.2
    near, far = 0.05, 0.44
    target = memory(3)

    def setup(self):
        super().setup()
        self.start_velocity = self.model.key_qvel[0].copy()
        self.joints = self.model.jnt_qposadr.copy()
        self.least, self.most = self.model.jnt_range.T.copy()

    def put(self, data, rng):
        """Turns all joints a little."""
        turns = rng.uniform(-self.joint_range, self.joint_range, len(self.start))
        data.qpos[:] = self.start
        for i in range(len(self.joints)):
            k = self.joints[i]
            data.qpos[k] = min(max(data.qpos[k] + turns[k], self.least[i]), self.most[i])

    def reset(self, data, rng):
        self.rest()
        self.put(data, rng)
        mujoco.mj_forward(self.model, data)
        self.target[:] = data.site("pelvis").xpos + rng.uniform(self.target_low, self.target_high)
        self.put(data, rng)
        data.qvel[:] = self.start_velocity

    @reward_terms(reach=1.0, bonus=4.0, penalty=50.0, act_reg=1.0)
    def step(self, data, action, info):
        self.advance(data, action)
        gap = length(self.target - data.site("pelvis").xpos)
        is_far = data.time > 2 * self.dt and gap > self.far
        info["solved"] = gap < self.near
        terms = {
            "reach": 10.0 - 1.0 * gap - 10.0 * length(data.qvel * self.dt),
            "bonus": 1.0 * (gap < 2 * self.near) + 1.0 * (gap < self.near),
            "penalty": -1.0 * is_far,
            "act_reg": -100.0 * self.effort(data),
        }
        return terms, {"far": is_far}

    def observation(self, data, obs):
        obs["qpos"] = data.qpos
        obs["qvel"] = data.qvel * self.dt
        obs["tip_pos"] = data.site("pelvis").xpos
        obs["reach_err"] = self.target - data.site("pelvis").xpos
        self.observe_muscles(data, obs)


class LegWalk(Legs):
    """Walk, upright and in step with a clock.

    Attributes:
        hip_period: The clock's, in steps.
        target_x_vel: The wanted velocity to the side [m/s].
        target_y_vel: Forward [m/s].
        min_height: Of the centre of mass, below which an episode ends [m].
        max_rot: How far it turns before an episode ends.
        min_stance: Of the centre of mass above the feet, likewise [m].
    """

    max_episode_steps = 1000
    hip_period = 100
    target_x_vel, target_y_vel = 0.0, 1.2
    min_height, max_rot, min_stance = 0.8, 0.8, -np.inf
    steps, phase = memory(), memory()

    def setup(self):
        super().setup()
        model = self.model
        self.walk_qpos, self.walk_qvel = model.key_qpos[2].copy(), model.key_qvel[2].copy()
        self.upright = self.start[3:7].copy()
        self.mass = model.body_mass.copy()
        self.total_mass = np.sum(self.mass)

    def reset(self, data, rng):
        self.rest()
        self.draw_ground(rng)
        data.qpos[:] = self.walk_qpos
        data.qvel[:] = self.walk_qvel

    def draw_ground(self, rng):
        """Writes an episode's ground into the model."""

    def weigh(self, values, i):
        """The mean over all bodies, by their masses, of the i-th of some numbers that each has."""
        total = self.mass[0] * values[0, i]
        for k in range(1, len(self.mass)):
            total += self.mass[k] * values[k, i]
        return total / self.total_mass

    def velocity(self, data):
        """The velocity of the centre of mass, to the side and forward [m/s]."""
        return np.array((-self.weigh(data.cvel, 3), -self.weigh(data.cvel, 4)))

    def sway(self, data):
        """How far the hips are from where the clock wants them [rad]."""
        turn = self.phase * 2 * np.pi
        left, right = 0.8 * np.cos(turn + np.pi), 0.8 * np.cos(turn)
        gaps = np.array((
            np.float64(np.float32(left)) - data.joint("hip_flexion_l").qpos[0],
            np.float64(np.float32(right)) - data.joint("hip_flexion_r").qpos[0],
        ))  # fmt: skip
        return np.linalg.norm(gaps)

    def spread(self, data):
        """How far the legs are turned outward, in the mean [rad]."""
        total = abs(data.joint("hip_adduction_l").qpos[0])
        total += abs(data.joint("hip_adduction_r").qpos[0])
        total += abs(data.joint("hip_rotation_l").qpos[0])
        return (total + abs(data.joint("hip_rotation_r").qpos[0])) / 4.0

    def has_fallen(self, data):
        height = self.weigh(data.xipos, 2)
        feet = (data.body("talus_l").xpos[2] + data.body("talus_r").xpos[2]) / 2.0
        return (
            height < self.min_height
            or np.abs(sideways(data.qpos[3:7])) > self.max_rot
            or height - feet < self.min_stance
        )

    @reward_terms(vel_reward=5.0, done=-100.0, cyclic_hip=-10.0, ref_rot=10.0, joint_angle_rew=5.0)
    def step(self, data, action, info):
        self.advance(data, action)
        mujoco.mj_forward(self.model, data)  # for the muscles' forces
        self.phase = (self.steps / self.hip_period) % 1
        self.steps += 1.0
        speed = self.velocity(data)
        pace = np.exp(-np.square(self.target_y_vel - speed[1])) + np.exp(
            -np.square(self.target_x_vel - speed[0])
        )
        has_fallen = self.has_fallen(data)
        info["solved"] = pace >= 1.0
        terms = {
            "vel_reward": pace,
            "done": 1.0 * has_fallen,
            "cyclic_hip": self.sway(data),
            "ref_rot": np.exp(-np.linalg.norm(5.0 * (data.qpos[3:7] - self.upright))),
            "joint_angle_rew": np.exp(-5 * self.spread(data)),
        }
        return terms, {"fallen": has_fallen}

    def observation(self, data, obs):
        left, right = data.body("talus_l").xpos, data.body("talus_r").xpos
        pelvis = data.body("pelvis").xpos
        obs["qpos_without_xy"] = data.qpos[2:]
        obs["qvel"] = data.qvel * self.dt
        obs["com_vel"] = self.velocity(data)
        obs["torso_angle"] = data.body("torso").xquat
        obs["feet_heights"] = (left[2], right[2])
        obs["height"] = self.weigh(data.xipos, 2)
        obs["feet_rel_positions"] = np.concatenate((left - pelvis, right - pelvis))
        obs["phase_var"] = self.phase
        obs["muscle_length"] = data.actuator_length
        obs["muscle_velocity"] = np.clip(data.actuator_velocity, -100.0, 100.0)
        obs["muscle_force"] = np.clip(data.actuator_force / 1000, -100.0, 100.0)
        self.observe_muscles(data, obs)


class LegTerrain(LegWalk):
    """Walk on a height field; it ends when they kneel, too."""

    ground_height, min_stance = 0.0, 0.61

    def setup(self):
        super().setup()
        ground = self.model.geom("terrain").id
        self.model.geom_contype[ground] = self.model.geom_conaffinity[ground] = 1
        self.model.hfield_data[:] = np.flip(self.heights()).ravel()

    def heights(self):
        """The ground's ``(100, 100)``, first what is behind the legs."""
        return np.zeros((100, 100))


class LegHillyTerrainWalk(LegTerrain):
    """Over hills."""

    def heights(self):
        waves = np.sin(np.linspace(0, 3 * np.pi, 7000) + np.pi / 2) - 1
        ground = np.concatenate((-2 * np.ones(3000), -2 + 0.5 * waves))
        ground = (ground - ground.min()) / (ground.max() - ground.min())
        return ground.reshape(100, 100) * 0.63


class LegStairTerrainWalk(LegTerrain):
    """Up twelve stairs."""

    def heights(self):
        ground = np.full((100, 100), -2.0)
        for j in range(12):
            ground[52 + 4 * j : 56 + 4 * j] = -2 + 0.1 * j
        return (ground + 2) / (2 + 0.1 * 12) * 2.5


class LegRoughTerrainWalk(LegTerrain):
    """On ground that every episode draws."""

    model_fields = ("hfield_data",)

    def draw_ground(self, rng):
        rough = rng.uniform(-0.5, 0.5, 10_000)
        least = np.min(rough)
        self.model.hfield_data[:] = (rough - least) / (np.max(rough) - least) * 0.08 - 0.02


def sideways(quat):
    """How much of the x axis is left along it after a rotation."""
    y, z = quat[2], quat[3]
    scale = 2.0 / np.sum(quat * quat)
    return 1.0 - (y * (y * scale) + z * (z * scale))
