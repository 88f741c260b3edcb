"""A hand turns a key, holds a thing, twirls a pen.

Formulas: MyoSuite 2.11.6, envs/myo/myobase/key_turn_v0.py, obj_hold_v0.py and pen_v0.py.
"""

import mujoco
import numpy as np

from pyfastenv.suites.myosuite.base import Muscles, cosine, length
from pyfastenv.tasks.language.fields import memory
from pyfastenv.tasks.language.rewards import reward_terms


class HandKeyTurnFixed(Muscles, actuators=39):
    """Turn a key between thumb and index finger.

    Attributes:
        turned: The angle at which it is done [rad].
        least: The least angle at which it stands at first [rad].
        most: The greatest.
    """

    file = "envs/myo/assets/hand/myohand_keyturn.xml"
    max_episode_steps = 200
    turned, far = 3.14, 0.1
    least = most = 0.0

    def setup(self):
        super().setup()
        self.start[:-1] = 0.0

    def reset(self, data, rng):
        self.rest()
        data.qpos[:] = self.start
        data.qpos[-1] = rng.uniform(self.least, self.most)

    def index_gap(self, data):
        return data.site("keyhead").xpos - data.site("IFtip").xpos

    def thumb_gap(self, data):
        return data.site("keyhead").xpos - data.site("THtip").xpos

    @reward_terms(
        key_turn=1.0, IFtip_approach=10.0, THtip_approach=10.0, act_reg=1.0, bonus=4.0, penalty=25.0
    )
    def step(self, data, action, info):
        self.advance(data, action)
        index = abs(length(self.index_gap(data)) - 0.03)
        thumb = abs(length(self.thumb_gap(data)) - 0.03)
        angle = data.qpos[-1]
        info["solved"] = angle > self.turned
        terms = {
            "key_turn": angle,
            "IFtip_approach": -1.0 * index,
            "THtip_approach": -1.0 * thumb,
            "act_reg": -1.0 * self.effort(data),
            "bonus": 1.0 * (angle > np.pi / 2) + 1.0 * (angle > np.pi),
            "penalty": -1.0 * (index > self.far / 2) - 1.0 * (thumb > self.far / 2),
        }
        return terms, {"far": index > self.far or thumb > self.far}

    def observation(self, data, obs):
        obs["hand_qpos"] = data.qpos[:-1]
        obs["hand_qvel"] = data.qvel[:-1] * self.dt
        obs["key_qpos"] = data.qpos[-1]
        obs["key_qvel"] = data.qvel[-1] * self.dt
        obs["IFtip_approach"] = self.index_gap(data)
        obs["THtip_approach"] = self.thumb_gap(data)
        self.observe_muscles(data, obs)


class HandKeyTurnRandom(HandKeyTurnFixed):
    """The same, twice as far, with the key at any angle and about its place."""

    turned, least, most = 2 * np.pi, -np.pi / 2, np.pi / 2
    model_fields = ("body_pos",)

    def setup(self):
        super().setup()
        data = mujoco.MjData(self.model)
        mujoco.mj_kinematics(self.model, data)
        self.place = data.site("keyhead").xpos.copy()

    def reset(self, data, rng):
        super().reset(data, rng)
        self.model.body_pos[-1] = self.place + rng.uniform(-0.01, 0.01, 3)


class PalmUp(Muscles, actuators=39):
    """A hand with its palm up, under a thing that is free to move.

    Attributes:
        thing_size: How many of ``qpos`` are the thing's.
    """

    thing_size = 6

    def setup(self):
        super().setup()
        self.start[: -self.thing_size] = 0.0
        self.start[0] = -1.5

    def reset(self, data, rng):
        self.rest()
        self.draw_goal(rng)
        data.qpos[:] = self.start

    def draw_goal(self, rng):
        """Draws what an episode begins with, beside the start."""


class HandObjHoldFixed(PalmUp):
    """Hold a thing at a place above the palm."""

    file = "envs/myo/assets/hand/myohand_hold.xml"
    max_episode_steps, thing_size = 75, 7
    near, far = 0.01, 0.3
    goal = memory(3)

    def setup(self):
        super().setup()
        data = mujoco.MjData(self.model)
        mujoco.mj_kinematics(self.model, data)
        self.first_goal = data.site("goal").xpos.copy()
        self.place = data.site("object").xpos.copy()

    def draw_goal(self, rng):
        self.goal[:] = self.first_goal

    @reward_terms(goal_dist=100.0, bonus=4.0, penalty=10.0)
    def step(self, data, action, info):
        self.advance(data, action)
        gap = length(self.goal - data.site("object").xpos)
        info["solved"] = gap < self.near
        terms = {
            "goal_dist": -1.0 * gap,
            "bonus": 1.0 * (gap < 2 * self.near) + 1.0 * (gap < self.near),
            "penalty": -1.0 * (gap > self.far),
        }
        return terms, {"dropped": gap > self.far}

    def observation(self, data, obs):
        obs["hand_qpos"] = data.qpos[:-7]
        obs["hand_qvel"] = data.qvel[:-6] * self.dt
        obs["obj_pos"] = data.site("object").xpos
        obs["obj_err"] = self.goal - data.site("object").xpos
        self.observe_muscles(data, obs)


class HandObjHoldRandom(HandObjHoldFixed):
    """The same, of any size, at any place near by."""

    model_fields = ("geom_size",)

    def draw_goal(self, rng):
        self.goal[:] = self.place + rng.uniform(-0.03, 0.03, 3)
        self.model.geom_size[-1] = rng.uniform(0.02, 0.03, 3)


class HandPenTwirlFixed(PalmUp):
    """Twirl a pen until it points as another one does."""

    file = "envs/myo/assets/hand/myohand_pen.xml"
    frame_skip, max_episode_steps = 5, 50
    far = 0.075

    def setup(self):
        super().setup()
        places = self.model.site
        self.pen_length, self.target_length = (
            np.linalg.norm(places(f"{pen}_top").pos - places(f"{pen}_bottom").pos)
            for pen in ("object", "target")
        )

    def gap(self, data):
        return data.body("Object").xpos - data.site("eps_ball").xpos

    def pen(self, data):
        """Which way it points."""
        along = data.site("object_top").xpos - data.site("object_bottom").xpos
        return along / self.pen_length

    def goal(self, data):
        along = data.site("target_top").xpos - data.site("target_bottom").xpos
        return along / self.target_length

    @reward_terms(pos_align=1.0, rot_align=1.0, act_reg=5.0, drop=5.0, bonus=10.0)
    def step(self, data, action, info):
        self.advance(data, action)
        gap, align = length(self.gap(data)), cosine(self.pen(data), self.goal(data))
        is_dropped, is_held = gap > self.far, gap < self.far
        info["solved"] = align > 0.95 and not is_dropped
        terms = {
            "pos_align": -1.0 * gap,
            "rot_align": align,
            "act_reg": -1.0 * self.effort(data),
            "drop": -1.0 * is_dropped,
            "bonus": 1.0 * (align > 0.9) * is_held + 5.0 * (align > 0.95) * is_held,
        }
        return terms, {"dropped": is_dropped}

    def observation(self, data, obs):
        pen, goal = self.pen(data), self.goal(data)
        obs["hand_jnt"] = data.qpos[:-6]
        obs["obj_pos"] = data.body("Object").xpos
        obs["obj_vel"] = data.qvel[-6:] * self.dt
        obs["obj_rot"] = pen
        obs["obj_des_rot"] = goal
        obs["obj_err_pos"] = self.gap(data)
        obs["obj_err_rot"] = pen - goal
        self.observe_muscles(data, obs)


class HandPenTwirlRandom(HandPenTwirlFixed):
    """The same, any way.

    Attributes:
        tilt_low: The least of what is drawn for the way, about x and y [rad].
        tilt_high: The greatest.
    """

    model_fields: tuple[str, ...] = ("body_quat",)
    tilt_low, tilt_high = (-1.0, -1.0), (1.0, 1.0)

    def draw_goal(self, rng):
        x, y = rng.uniform(self.tilt_low, self.tilt_high)
        turn = self.model.body("target").quat
        sin_y, cos_y = np.sin(-y / 2), np.cos(-y / 2)
        sin_x, cos_x = np.sin(x / 2), np.cos(x / 2)
        turn[0], turn[1] = cos_y * cos_x, cos_y * sin_x
        turn[2], turn[3] = -(sin_y * cos_x), -(sin_y * sin_x)
