"""The meta-RL environments in plain NumPy on gymnasium's MujocoEnv."""

from typing import Any

import gymnasium
import numpy as np
from gymnasium.envs.mujoco import MujocoEnv


class MetaEnv(MujocoEnv):
    """Finn et al. (2017), section 5.3, on gymnasium's v5 robots; ``task`` is (task_size,)."""

    metadata = {"render_modes": ["human", "rgb_array", "depth_array", "rgbd_tuple"]}
    xml_file: str
    ctrl_cost_weight: float

    def __init__(self) -> None:
        super().__init__(self.xml_file, 5, observation_space=None)
        obs = self._obs()
        self.observation_space = gymnasium.spaces.Box(-np.inf, np.inf, obs.shape, np.float64)
        self.task = np.ones(1)

    def reset_model(self) -> np.ndarray:
        qpos = self.init_qpos + self.np_random.uniform(-0.1, 0.1, self.model.nq)
        qvel = self.init_qvel + 0.1 * self.np_random.standard_normal(self.model.nv)
        self.set_state(qpos, qvel)
        return self._obs()

    def _get_reset_info(self) -> dict[str, Any]:
        return self._position()

    def _ctrl_cost(self, action: np.ndarray) -> Any:
        return self.ctrl_cost_weight * np.sum(np.square(action))

    def _torso(self) -> np.ndarray:
        return self.data.body("torso").xpos.copy()

    def _obs(self) -> np.ndarray:
        raise NotImplementedError

    def _position(self) -> dict[str, Any]:
        raise NotImplementedError


class HalfCheetahMeta(MetaEnv):
    xml_file = "half_cheetah.xml"
    ctrl_cost_weight = 0.05

    def forward_reward(self, v: float) -> float:
        raise NotImplementedError

    def step(self, action: np.ndarray) -> Any:
        before = self.data.qpos[0]
        self.do_simulation(action, self.frame_skip)
        velocity = (self.data.qpos[0] - before) / self.dt
        forward = self.forward_reward(velocity)
        ctrl_cost = self._ctrl_cost(action)
        info = {
            **self._position(),
            "x_velocity": velocity,
            "reward_forward": forward,
            "reward_ctrl": -ctrl_cost,
        }
        return self._obs(), forward - ctrl_cost, False, False, info

    def _obs(self) -> np.ndarray:
        return np.concatenate([self.data.qpos[1:], self.data.qvel, self._torso()])

    def _position(self) -> dict[str, Any]:
        return {"x_position": self.data.qpos[0]}


class HalfCheetahDir(HalfCheetahMeta):
    def forward_reward(self, v: float) -> float:
        return self.task[0] * v


class HalfCheetahVel(HalfCheetahMeta):
    def forward_reward(self, v: float) -> float:
        return -np.abs(v - self.task[0])


class AntMeta(MetaEnv):
    xml_file = "ant.xml"
    ctrl_cost_weight = 0.005

    def goal_reward(self, v: float, xy: np.ndarray) -> float:
        raise NotImplementedError

    def step(self, action: np.ndarray) -> Any:
        before = self._torso()[0]
        self.do_simulation(action, self.frame_skip)
        xy = self._torso()[:2]
        velocity = (xy[0] - before) / self.dt
        goal = self.goal_reward(velocity, xy)
        ctrl_cost = self._ctrl_cost(action)
        contact_cost = 0.0005 * np.sum(np.square(self._contact_forces()))
        survive = 0.05
        state = self.state_vector()
        terminated = not (np.isfinite(state).all() and 0.2 <= state[2] <= 1.0)
        info = {
            **self._position(),
            "x_velocity": velocity,
            "reward_forward": goal,
            "reward_ctrl": -ctrl_cost,
            "reward_contact": -contact_cost,
            "reward_survive": survive,
        }
        return self._obs(), goal - ctrl_cost - contact_cost + survive, terminated, False, info

    def _contact_forces(self) -> np.ndarray:
        return np.clip(self.data.cfrc_ext, -1.0, 1.0)

    def _obs(self) -> np.ndarray:
        rotation = self.data.body("torso").xmat
        parts = (self.data.qpos, self.data.qvel, self._contact_forces().ravel())
        return np.concatenate([*parts, rotation, self._torso()])

    def _position(self) -> dict[str, Any]:
        x, y, _ = self._torso()
        return {"x_position": x, "y_position": y}


class AntDir(AntMeta):
    def goal_reward(self, v: float, xy: np.ndarray) -> float:
        return self.task[0] * v


class AntVel(AntMeta):
    def goal_reward(self, v: float, xy: np.ndarray) -> float:
        return 1.0 - np.abs(v - self.task[0])


class AntGoal(AntMeta):
    def goal_reward(self, v: float, xy: np.ndarray) -> float:
        return 4.0 - np.sum(np.abs(xy - self.task))


REFERENCES: dict[str, type[MetaEnv]] = {
    "HalfCheetahDir-v5": HalfCheetahDir,
    "HalfCheetahVel-v5": HalfCheetahVel,
    "AntDir-v5": AntDir,
    "AntVel-v5": AntVel,
    "AntGoal-v5": AntGoal,
}
