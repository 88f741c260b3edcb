"""A hand brings a thing to a place, or along a motion that was recorded: MyoDex's tasks.

Formulas: MyoSuite 2.11.6, envs/myo/myodm/myodm_v0.py and logger/reference_motion.py.
"""

from typing import Any

import mujoco
import numpy as np

from pyfastenv.suites.myosuite.base import Muscles, myosuite_file
from pyfastenv.tasks.language.fields import memory
from pyfastenv.tasks.language.rewards import reward_terms

HAND = 29  # joints, that of the arm among them


class Track(Muscles, actuators=45):
    """Bring a thing along, on a moving arm's hand.

    Attributes:
        thing: Its name.
        lift: How much higher than at first it is lifted [m].
        far: How far it may be from its place, and from the wrist [m].
    """

    thing = "cup"
    lift, far = 0.02, 0.25
    joints, place, turn = memory(HAND), memory(3), memory(4)  # where all should be now

    def model(self):
        if not isinstance(self.thing, str):
            raise TypeError(f"thing: expected a name such as 'cup', got {self.thing!r}")
        return str(myosuite_file(f"myosuite/envs/myo/assets/hand/myohand_object_{self.thing}.xml"))

    def setup(self):
        super().setup()
        model = self.model
        self.body, self.wrist = model.body(self.thing).id, model.body("lunate").id
        data = mujoco.MjData(model)
        mujoco.mj_kinematics(model, data)
        self.lift_height = data.xipos[self.body, 2] + self.lift
        joints, thing = self.first()
        self.start[:HAND] = joints
        self.start[HAND:-3], self.start[-3:] = thing[:3], euler(thing[3:])

    def first(self) -> Any:
        """Where an episode begins: the hand's joints, and the thing's place and quaternion."""
        raise NotImplementedError

    def reset(self, data, rng):
        self.rest()
        data.qpos[:] = self.start
        self.draw(0.0, rng)

    def gap(self, data):
        return data.xipos[self.body] - self.place

    def reach(self, data):
        return data.xipos[self.body] - data.xipos[self.wrist]

    def joint_gaps(self, data):
        return data.qpos[:HAND] - self.joints

    def speed_gaps(self, data):
        """How far the hand's velocities are off; one zero where none are given."""
        return np.zeros(1)

    def turned(self, data):
        """How far the thing is turned from how it should be [rad]."""
        quat = np.zeros(4)
        mujoco.mju_mat2Quat(quat, data.ximat[self.body])
        if quat[0] < 0.0:
            quat[:] = -quat
        w, x, y, z = quat[0], -quat[1], -quat[2], -quat[3]
        turn = self.turn
        axis = np.array((
            turn[0] * x + turn[1] * w + turn[2] * z - turn[3] * y,
            turn[0] * y - turn[1] * z + turn[2] * w + turn[3] * x,
            turn[0] * z + turn[1] * y - turn[2] * x + turn[3] * w,
        ))  # fmt: skip
        cos = turn[0] * w - turn[1] * x - turn[2] * y - turn[3] * z
        return abs(2 * np.arctan2(np.sqrt(np.sum(np.square(axis))), cos))

    @reward_terms(pose=0.0, object=1.0, bonus=1.0, penalty=-2.0)
    def step(self, data, action, info, rng):
        self.advance(data, action)
        self.draw(data.time, rng)
        far, reach = np.sum(np.square(self.gap(data))), np.sum(np.square(self.reach(data)))
        gap = np.sqrt(np.sum(np.square(self.place - data.xipos[self.body])))
        is_lifted = (
            self.place[2] >= self.lift_height and data.xipos[self.body, 2] >= self.lift_height
        )
        is_far = far >= self.far**2 or reach >= self.far**2
        pose = np.exp(-5.0 * np.sum(np.square(self.joint_gaps(data))))
        pace = np.exp(-0.1 * np.sum(np.square(self.speed_gaps(data))))
        near = np.exp(-50 * (gap + 0.1 * (self.turned(data) / np.pi)))
        terms = {
            "pose": 0.35 * pose + 0.05 * pace,
            "object": near + np.exp(-40 * np.sqrt(reach)),
            "bonus": 1.0 * is_lifted,
            "penalty": 1.0 * is_far,
        }
        return terms, {"far": is_far}

    def observation(self, data, obs):
        obs["qp"] = data.qpos
        obs["qv"] = data.qvel
        obs["hand_qpos_err"] = self.joint_gaps(data)
        obs["hand_qvel_err"] = self.speed_gaps(data)
        obs["obj_com_err"] = self.gap(data)
        self.observe_muscles(data, obs)


class Fixed(Track):
    """Bring a thing to a place on the other side."""

    max_episode_steps = 50

    def first(self):
        return np.zeros(HAND), np.array((-0.2, -0.2, 0.1, 1.0, 0.0, 0.0, 0.0))

    def speed_gaps(self, data):
        return data.qvel[:HAND]

    def draw(self, time, rng):
        self.place[0], self.place[1], self.place[2] = 0.2, 0.2, 0.1
        self.turn[0], self.turn[3] = 1.0, 0.1


class Random(Fixed):
    """Bring a thing to places that every step draws, as MyoSuite does."""

    def first(self):
        return np.zeros(HAND), np.array((0.0, 0.0, 0.1, 1.0, 0.0, 0.0, 0.0))

    def draw(self, time, rng):
        rng.random(2 * HAND)  # joints and their velocities, of ranges that are empty
        self.place[0], self.place[1] = rng.uniform(-0.2, 0.2), rng.uniform(-0.2, 0.2)
        self.place[2] = rng.uniform(0.1, 0.1)
        self.turn[0], self.turn[1] = rng.uniform(1.0, 1.0), rng.uniform(0.0, 0.0)
        self.turn[2], self.turn[3] = rng.uniform(0.0, 0.0), rng.uniform(-1.0, 1.0)


class Motion(Track):
    """Bring a thing along as a recorded hand did.

    Attributes:
        motion: The recording's name, such as ``"cup_drink1"``.
    """

    max_episode_steps = 75
    motion = "cup_drink1"

    def recorded(self):
        name = f"myosuite/envs/myo/myodm/data/MyoHand_{self.motion}.npz"
        return np.load(myosuite_file(name))

    def first(self):
        return self.recorded()["robot_init"], self.recorded()["object_init"]

    def setup(self):
        super().setup()
        self.joint_frames, self.thing_frames = self.recorded()["robot"], self.recorded()["object"]

    def draw(self, time, rng):
        frame = min(int(np.rint(time / self.dt)), len(self.joint_frames) - 1)
        self.joints[:] = self.joint_frames[frame]
        self.place[:], self.turn[:] = self.thing_frames[frame, :3], self.thing_frames[frame, 3:]


def euler(quat):
    """Angles ``(3,)`` of a rotation about x, y and z, one after the other [rad]."""
    w, x, y, z = quat
    s = 2.0 / np.sum(quat * quat)
    xx, yy, zz, wx, wy, wz = (
        x * (x * s),
        y * (y * s),
        z * (z * s),
        w * (x * s),
        w * (y * s),
        w * (z * s),
    )
    xy, xz, yz = x * (y * s), x * (z * s), y * (z * s)
    cos = np.sqrt((1.0 - (xx + yy)) ** 2 + (yz - wx) ** 2)
    return np.array((
        -np.arctan2(yz - wx, 1.0 - (xx + yy)),
        -np.arctan2(-(xz + wy), cos),
        -np.arctan2(xy - wz, 1.0 - (yy + zz)),
    ))  # fmt: skip
