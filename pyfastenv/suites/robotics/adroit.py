"""The Adroit hand: open a door, drive a nail in, turn a pen, carry a ball."""

import gymnasium
import mujoco
import numpy as np

from pyfastenv.suites.robotics.base import euler_to_quaternion, quaternion_to_euler, robotics_file
from pyfastenv.tasks.language.fields import memory
from pyfastenv.tasks.language.task import Task


class AdroitHand(Task):
    """The base of the four tasks: servos whose ranges the actions cover.

    ``dense``: rewards on the way; False: 10 where the task is done, -0.1 elsewhere.
    """

    file = ""
    frame_skip = 5
    max_episode_steps = 200
    action_dtype = "float32"
    dense = True

    def model(self):
        return str(robotics_file(f"assets/adroit_hand/adroit_{self.file}.xml"))

    def setup(self):
        model = self.model
        for first, last, gain in (("A_WRJ1", "A_WRJ0", 10), ("A_FFJ3", "A_THJ0", 1)):
            servos = slice(model.actuator(first).id, model.actuator(last).id + 1)
            model.actuator_gainprm[servos, :3] = (gain, 0, 0)
            model.actuator_biasprm[servos, :3] = (0, -gain, 0)
        low, high = model.actuator_ctrlrange.T
        self.middle = np.mean(model.actuator_ctrlrange, axis=1)
        self.reach = 0.5 * (high - low)
        self.action_space = gymnasium.spaces.Box(-1.0, 1.0, (model.nu,), np.float32)

    def control(self, data, action, ctrl):
        ctrl[:] = self.middle + np.clip(action.astype(np.float64), -1.0, 1.0) * self.reach

    def step(self, data, info):
        self.simulate(data)
        done = self.is_done(data)
        info["success"] = done
        if self.dense:
            return self.shaped_reward(data), False
        return 10.0 if done else -0.1, False


class AdroitHandDoor(AdroitHand):
    file = "door"
    model_fields = ("body_pos",)

    def reset(self, data, rng):
        frame = self.model.body("frame").pos
        frame[0] = rng.uniform(-0.3, -0.2)
        frame[1] = rng.uniform(0.25, 0.35)
        frame[2] = rng.uniform(0.252, 0.35)

    def opening(self, data):
        """The hinge's angle, found by its degree of freedom as in the package [rad]."""
        return data.qpos[self.model.joint("door_hinge").dofadr[0]]

    def is_done(self, data):
        return self.opening(data) >= 1.35

    def shaped_reward(self, data):
        opening = self.opening(data)
        reward = 0.1 * np.linalg.norm(data.site("S_grasp").xpos - data.site("S_handle").xpos)
        reward += -0.1 * (opening - 1.57) * (opening - 1.57)
        reward += -1e-5 * np.sum(data.qvel**2)
        if opening > 0.2:
            reward += 2
        if opening > 1.0:
            reward += 8
        if opening > 1.35:
            reward += 10
        return reward

    def observation(self, data, obs):
        palm, handle = data.site("S_grasp").xpos, data.site("S_handle").xpos
        opening = self.opening(data)
        obs["hand"] = data.qpos[1:-2]
        obs["latch"] = data.qpos[-1]
        obs["opening"] = opening
        obs["palm"] = palm
        obs["handle"] = handle
        obs["to_palm"] = palm - handle
        obs["open"] = 1.0 if opening > 1.0 else -1.0


class AdroitHandHammer(AdroitHand):
    file = "hammer"
    model_fields = ("body_pos",)

    def setup(self):
        super().setup()
        self.sensor = self.model.sensor("S_nail").id  # where the package looks in sensordata

    def reset(self, data, rng):
        self.model.body("nail_board").pos[2] = rng.uniform(0.1, 0.25)

    def depth(self, data):
        """How far the nail is from where it shall be [m]."""
        return np.linalg.norm(data.site("S_target").xpos - data.site("nail_goal").xpos)

    def is_done(self, data):
        return self.depth(data) < 0.01

    def shaped_reward(self, data):
        hammer, head = data.body("Object").xpos, data.site("tool").xpos
        depth = self.depth(data)
        reward = 0.1 * np.linalg.norm(data.site("S_grasp").xpos - hammer)
        reward -= np.linalg.norm(head - data.site("S_target").xpos)
        reward -= 10 * depth
        reward -= 1e-2 * np.linalg.norm(data.qvel)
        if hammer[2] > 0.04 and head[2] > 0.04:
            reward += 2
        if depth < 0.020:
            reward += 25
        if depth < 0.010:
            reward += 75
        return reward

    def observation(self, data, obs):
        obs["hand"] = data.qpos[:-6]
        obs["hammer_velocity"] = np.clip(data.qvel[-6:], -1.0, 1.0)
        obs["palm"] = data.site("S_grasp").xpos
        obs["hammer"] = data.body("Object").xpos
        obs["hammer_angles"] = quaternion_to_euler(data.body("Object").xquat)
        obs["nail"] = data.site("S_target").xpos
        obs["impact"] = np.clip(data.sensordata[self.sensor], -1.0, 1.0)


class AdroitHandPen(AdroitHand):
    file = "pen"
    model_fields = ("body_quat",)
    pen_length, target_length = memory(), memory()

    def reset(self, data, rng):
        angles = np.zeros(3)
        angles[0] = rng.uniform(-1, 1)
        angles[1] = rng.uniform(-1, 1)
        self.model.body("target").quat[:] = euler_to_quaternion(angles)
        mujoco.mj_forward(self.model, data)
        top, bottom = data.site("object_top").xpos, data.site("object_bottom").xpos
        self.pen_length = np.linalg.norm(top - bottom)
        top, bottom = data.site("target_top").xpos, data.site("target_bottom").xpos
        self.target_length = np.linalg.norm(top - bottom)

    def pen(self, data):
        """Its direction."""
        top, bottom = data.site("object_top").xpos, data.site("object_bottom").xpos
        return (top - bottom) / self.pen_length

    def target(self, data):
        """The direction that is wanted."""
        top, bottom = data.site("target_top").xpos, data.site("target_bottom").xpos
        return (top - bottom) / self.target_length

    def gap(self, data):
        """How far the pen is from its place [m]."""
        return np.linalg.norm(data.body("Object").xpos - data.site("eps_ball").xpos)

    def is_done(self, data):
        return self.gap(data) < 0.075 and np.dot(self.pen(data), self.target(data)) > 0.95

    def shaped_reward(self, data):
        gap, similarity = self.gap(data), np.dot(self.pen(data), self.target(data))
        reward = -gap + similarity
        if gap < 0.075 and similarity > 0.9:
            reward += 10
        if gap < 0.075 and similarity > 0.95:
            reward += 50
        if data.body("Object").xpos[2] < 0.075:
            reward -= 5
        return reward

    def observation(self, data, obs):
        place, pen, target = data.body("Object").xpos, self.pen(data), self.target(data)
        obs["hand"] = data.qpos[:-6]
        obs["place"] = place
        obs["velocity"] = data.qvel[-6:]
        obs["pen"] = pen
        obs["target"] = target
        obs["gap"] = place - data.site("eps_ball").xpos
        obs["turn"] = pen - target


class AdroitHandRelocate(AdroitHand):
    file = "relocate"
    model_fields = ("body_pos", "site_pos")

    def reset(self, data, rng):
        ball, target = self.model.body("Object").pos, self.model.site("target").pos
        ball[0] = rng.uniform(-0.15, 0.15)
        ball[1] = rng.uniform(-0.15, 0.3)
        target[0] = rng.uniform(-0.2, 0.2)
        target[1] = rng.uniform(-0.2, 0.2)
        target[2] = rng.uniform(0.15, 0.35)

    def gap(self, data):
        """How far the ball is from its target [m]."""
        return np.linalg.norm(data.body("Object").xpos - data.site("target").xpos)

    def is_done(self, data):
        return self.gap(data) < 0.1

    def shaped_reward(self, data):
        ball, palm = data.body("Object").xpos, data.site("S_grasp").xpos
        gap = self.gap(data)
        reward = 0.1 * np.linalg.norm(palm - ball)
        if ball[2] > 0.04:
            reward += 1.0
            reward += -0.5 * np.linalg.norm(palm - data.site("target").xpos)
            reward += -0.5 * gap
        if gap < 0.1:
            reward += 10.0
        if gap < 0.05:
            reward += 20.0
        return reward

    def observation(self, data, obs):
        ball, palm = data.body("Object").xpos, data.site("S_grasp").xpos
        target = data.site("target").xpos
        obs["hand"] = data.qpos[:-6]
        obs["to_palm"] = palm - ball
        obs["palm_to_target"] = palm - target
        obs["ball_to_target"] = ball - target
