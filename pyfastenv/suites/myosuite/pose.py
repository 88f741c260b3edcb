"""Joints are brought to a pose: an elbow's, a finger's, a hand's, a torso's.

Formulas: MyoSuite 2.11.6, envs/myo/myobase/pose_v0.py and torso_v0.py.
"""

import json

import numpy as np

from pyfastenv.suites.myosuite.base import Muscles, length, myosuite_file
from pyfastenv.tasks.language.fields import memory
from pyfastenv.tasks.language.rewards import reward_terms


class Pose(Muscles):
    """Bring all joints to a pose.

    Attributes:
        target_low: The least of what is drawn for each joint [rad].
        target_high: The greatest.
        near: Within which distance it is reached [rad].
        far: Beyond which distance an episode ends.
        random_start: Whether episodes start in any pose.
    """

    max_episode_steps = 100
    target_low: tuple[float, ...] = (0.0,)
    target_high: tuple[float, ...] = (0.0,)
    near, far = 0.35, 4 * np.pi / 2
    random_start = False

    def __init_subclass__(cls, joints=0, **arguments):
        if joints:
            cls.target = memory(joints)
        super().__init_subclass__(**arguments)

    def setup(self):
        super().setup()
        self.least, self.most = self.model.jnt_range.T.copy()

    def reset(self, data, rng):
        self.rest()
        self.draw_target(rng)
        data.qpos[:] = self.start
        if self.random_start:
            data.qpos[:] = rng.uniform(self.least, self.most)

    def draw_target(self, rng):
        self.target[:] = rng.uniform(self.target_low, self.target_high)

    def error(self, data):
        return self.target - data.qpos[: len(self.target)]

    @reward_terms(pose=1.0, bonus=4.0, act_reg=1.0, penalty=50.0)
    def step(self, data, action, info):
        self.advance(data, action)
        gap = length(self.error(data))
        info["solved"] = gap < self.near
        terms = {
            "pose": -1.0 * gap,
            "bonus": 1.0 * (gap < self.near) + 1.0 * (gap < 1.5 * self.near),
            "act_reg": -1.0 * self.effort(data),
            "penalty": -1.0 * (gap > self.far),
        }
        return terms, {"far": gap > self.far}

    def observation(self, data, obs):
        obs["qpos"] = data.qpos
        obs["qvel"] = data.qvel * self.dt
        obs["pose_err"] = self.error(data)
        self.observe_muscles(data, obs)


class ElbowPose1D6MFixed(Pose, actuators=6, joints=1):
    """An elbow of one joint and six muscles."""

    file = "envs/myo/assets/elbow/myoelbow_1dof6muscles.xml"
    target_low = target_high = (2.0,)
    near, random_start = 0.175, True


class ElbowPose1D6MRandom(ElbowPose1D6MFixed):
    """The same, to any pose."""

    target_low, target_high = (0.0,), (2.27,)


class ElbowPose1D6MExoFixed(ElbowPose1D6MFixed, actuators=7):
    """An elbow with an exoskeleton's motor beside its muscles."""

    file = "envs/myo/assets/elbow/myoelbow_1dof6muscles_1dofexo.xml"
    act_reg_weight = 5.0


class ElbowPose1D6MExoRandom(ElbowPose1D6MExoFixed):
    """The same, to any pose, with any weight in the hand."""

    target_low, target_high = (0.0,), (2.27,)
    model_fields = ("body_mass", "geom_size")

    def setup(self):
        super().setup()
        self.load = self.model.body("carry_weight").id
        self.load_geom = int(self.model.body_geomadr[self.load])

    def reset(self, data, rng):
        weight = rng.uniform(0.1, 2.0)
        self.model.body_mass[self.load] = weight
        self.model.geom_size[self.load_geom, 0] = 0.01 + 2.5 * weight / 100
        super().reset(data, rng)


class FingerPoseFixed(Pose, actuators=5, joints=4):
    """An index finger of four joints and five muscles."""

    file = "simhive/myo_sim/finger/myofinger_v0.xml"
    target_low = target_high = (0.0, 0.0, 0.75, 0.75)


class FingerPoseRandom(FingerPoseFixed):
    """The same, to any pose."""

    target_low, target_high = (-0.2, -0.4, 0.1, 0.1), (0.2, 1.0, 1.0, 1.0)


class MotorFingerPoseFixed(FingerPoseFixed):
    """A finger that motors pull."""

    file = "simhive/myo_sim/finger/motorfinger_v0.xml"
    frame_skip, max_episode_steps = 5, 200


class MotorFingerPoseRandom(MotorFingerPoseFixed):
    """The same, to any pose."""

    target_low, target_high = FingerPoseRandom.target_low, FingerPoseRandom.target_high


def hand_pose(numeral):
    """Joint angles ``(23,)`` [rad] of a hand that signs a digit; of -1, those of another pose."""
    file = myosuite_file("metadata/myosuite_task_metadata.json")
    name = f"myoHandPose{numeral if numeral >= 0 else ''}Fixed-v0"
    found = next(each for each in json.loads(file.read_text()) if each["id"] == name)
    return np.array([float(angle) for angle in found["target_jnt_value"].split(",")])


class HandPoseFixed(Pose, actuators=39, joints=23):
    """A hand of 23 joints and 39 muscles.

    Attributes:
        numeral: Which digit is signed; -1: another pose.
    """

    file = "envs/myo/assets/hand/myohand_pose.xml"
    near = 0.7
    numeral = -1

    def setup(self):
        super().setup()
        if self.numeral not in range(-1, 10):
            raise ValueError(f"numeral: expected -1 to 9, got {self.numeral!r}")
        self.signed = hand_pose(self.numeral)

    def draw_target(self, rng):
        self.target[:] = self.signed


class HandPoseRandom(Pose, actuators=39, joints=23):
    """A hand, from any pose to any among those that sign digits."""

    file = HandPoseFixed.file
    near, random_start = 0.7, True

    def setup(self):
        super().setup()
        poses = np.array([hand_pose(numeral) for numeral in range(10)])
        self.target_low, self.target_high = poses.min(axis=0), poses.max(axis=0)


class TorsoPoseFixed(Pose, actuators=210, joints=18):
    """A torso of 18 joints and 210 muscles stays upright."""

    file = "simhive/myo_sim/torso/myotorso.xml"
    frame_skip, max_episode_steps = 5, 200
    near, far = 0.25, np.pi

    def draw_target(self, rng):
        self.target[:] = 0.0


class TorsoExoPoseFixed(TorsoPoseFixed):
    """The same, in an exosuit."""

    file = "simhive/myo_sim/torso/myotorso_exosuit.xml"
