"""Small tasks with Dict observations, for the tests of all that must pass them on."""

import gymnasium
import numpy as np

import pyfastenv
from pyfastenv.tasks.language.noise import uniform
from pyfastenv.tasks.language.symmetry import Symmetry, joined, joint_mirror, mirror


class Arm(pyfastenv.Task):
    """Reaches a goal; goal-conditioned, as gymnasium-robotics' environments are."""

    model = "native_tasks/arm.xml"
    frame_skip = 2
    max_episode_steps = 25
    observation_dict = True
    near = 0.05
    goal = pyfastenv.memory(2)

    def reset(self, data, rng, info):
        data.qpos[:] = rng.uniform(-1.0, 1.0, 2)
        self.goal[:] = rng.uniform(-0.4, 0.4, 2)
        info["is_success"] = 0.0

    def step(self, data, action, info):
        self.simulate(data)
        tip = data.site("tip").xpos
        distance = np.hypot(tip[0] - self.goal[0], tip[1] - self.goal[1])
        info["is_success"] = 1.0 * (distance < self.near)
        return -distance, abs(data.qpos[1]) > 1.2

    def observation(self, data, obs):
        obs["observation"] = np.concatenate((data.qpos, data.qvel))
        obs["achieved_goal"] = data.site("tip").xpos[:2]
        obs["desired_goal"] = self.goal
        obs["frame"] = data.site("tip").xmat.reshape((3, 3))


class GoalArm(Arm):
    """The arm, with the reward that hindsight asks for."""

    def compute_reward(self, achieved_goal, desired_goal, info):
        assert info == {}
        return -np.linalg.norm(achieved_goal - desired_goal, axis=-1)


class Asymmetric(Arm):
    """A critic that sees more than the policy does."""

    observation_dict = {
        "policy": ("observation", "achieved_goal"),
        "critic": ("observation", "achieved_goal", "desired_goal"),
        "tip": "frame",
    }


class Reordered(Arm):
    """The same in another order."""

    observation_dict = {
        "policy": ("achieved_goal", "observation"),
        "critic": ("desired_goal", "achieved_goal", "observation"),
        "tip": "frame",
    }

    def observation(self, data, obs):
        obs["desired_goal"] = self.goal
        obs["achieved_goal"] = data.site("tip").xpos[:2]
        obs["observation"] = np.concatenate((data.qpos, data.qvel))
        obs["frame"] = data.site("tip").xmat.reshape((3, 3))


class Renamed(Arm):
    """As many numbers, one of them by another name, the others elsewhere."""

    def observation(self, data, obs):
        obs["target"] = self.goal
        obs["achieved_goal"] = data.site("tip").xpos[:2]
        obs["observation"] = np.concatenate((data.qpos, data.qvel))
        obs["frame"] = data.site("tip").xmat.reshape((3, 3))


class Apart(Arm):
    """A critic that sees other things than the policy does."""

    observation_dict = {
        "policy": ("achieved_goal", "desired_goal"),
        "critic": ("observation", "achieved_goal"),
    }


class Choosing(Apart):
    """The same, whose actions are numbers."""

    action_space = gymnasium.spaces.Discrete(3)

    def step(self, data, action, info):
        data.ctrl[:] = action - 1.0
        return Arm.step(self, data, action, info)


class Sided(Arm):
    """The arm, which says how it mirrors; nobody sees its frame."""

    observation_dict = {
        "policy": ("observation", "achieved_goal"),
        "critic": ("achieved_goal", "desired_goal"),
    }

    def symmetry(self):
        joints = joint_mirror(self.model)
        place = mirror((0,), (1, -1))
        mirrors = {"achieved_goal": place, "desired_goal": place}
        return Symmetry(joints, {"observation": joined(joints, joints), **mirrors})


class Blurred(Arm):
    """The arm, whose goal is seen through noise; what it is like is privileged."""

    observation_dict = {"policy": ("observation", "achieved_goal", "seen_goal"), "critic": "truth"}
    observation_noise = {"seen_goal": uniform(-0.1, 0.1)}

    def observation(self, data, obs):
        obs["observation"] = np.concatenate((data.qpos, data.qvel))
        obs["achieved_goal"] = data.site("tip").xpos[:2]
        obs["seen_goal"] = self.goal
        obs["truth"] = np.concatenate((data.qpos, data.qvel, self.goal))
