"""PointMaze and AntMaze: reach a place in a maze."""

import runpy
import xml.etree.ElementTree as ET
from functools import cache

import mujoco
import numpy as np

from pyfastenv.suites.robotics.base import GoalTask, distance, robotics_file
from pyfastenv.suites.starts import MOST_DRAWS
from pyfastenv.tasks.language.fields import memory
from pyfastenv.vector.specs import resolve_xml_file

WALL, RESET, GOAL, BOTH = 1, "r", "g", "c"  # gymnasium_robotics/envs/maze/maps.py


@cache
def cells(maze):
    """A map of the package's, ``"Medium_Diverse_G"``: rows of cells."""
    name = {"UMaze": "U_MAZE", "Open": "OPEN"}.get(maze, maze.upper())
    for size in ("MEDIUM", "LARGE"):
        name = name.replace(size, f"{size}_MAZE")
    maps = runpy.run_path(str(robotics_file("maze/maps.py")))
    if name not in maps:
        raise ValueError(f"maze: expected a map of gymnasium_robotics, got {maze!r}")
    return maps[name]


class MazeTask(GoalTask):
    """Both robots' mazes.

    Attributes:
        maze: ``"UMaze"``, ``"Open"``, ``"Medium"`` or ``"Large"``; the latter three may end in
            ``"_Diverse_G"`` (many goals) or ``"_Diverse_GR"`` (and many starts).
        dense: The reward is exp(-distance), and not whether the goal is reached.
        continuing_task: Who reaches the goal goes on; False: the episode ends.
        reset_target: In a continuing task, who reaches the goal gets another.
        position_noise_range: Of goals and starts around the middle of their cells [cells].
    """

    maze = "UMaze"
    continuing_task, reset_target = True, False
    position_noise_range = 0.25
    goal, next_goal = memory(2), memory(2)
    model_fields = ("site_pos",)  # the target's: for pictures

    def place(self, row, column):
        """The middle of a cell [m]."""
        rows, columns = len(cells(self.maze)), len(cells(self.maze)[0])
        return (
            (column + 0.5) * self.scale - columns / 2 * self.scale,
            rows / 2 * self.scale - (row + 0.5) * self.scale,
        )

    def places(self, *kinds):
        found = [(i, j) for i, row in enumerate(cells(self.maze)) for j, c in enumerate(row)
                 if c in kinds]  # fmt: skip
        return [self.place(i, j) for i, j in found]

    def model(self):
        """The robot's, and walls of boxes."""
        if not isinstance(self.maze, str):
            raise TypeError(f"maze: expected a name such as 'UMaze', got {self.maze!r}")
        xml = ET.parse(self.robot_file())
        world = xml.find("worldbody")
        half, height = 0.5 * self.scale, self.height / 2 * self.scale
        for x, y in self.places(WALL):
            wall = {"pos": f"{x} {y} {height}", "size": f"{half} {half} {height}"}
            ET.SubElement(
                world, "geom", wall, type="box", contype="1", conaffinity="1",
                rgba="0.7 0.5 0.3 1",
            )  # fmt: skip
        target = {"pos": f"0 0 {height}", "size": f"{0.2 * self.scale}", "rgba": "1 0 0 0.7"}
        ET.SubElement(world, "site", target, name="target", type="sphere")
        return mujoco.MjModel.from_xml_string(ET.tostring(xml.getroot(), "unicode"))

    def setup(self):
        goals, starts, both = self.places(GOAL), self.places(RESET), self.places(BOTH)
        empty = self.places(0)
        if not goals and not starts and not both:
            both = empty
        elif not starts and not both:
            starts = empty
        elif not goals and not both:
            goals = empty
        self.goals, self.starts = np.array(goals + both), np.array(starts + both)

    # ---- goals -----------------------------------------------------------------------------------

    def with_noise(self, place, rng):
        """A place in a cell, of the cell's middle."""
        r = self.position_noise_range
        x = rng.uniform(-r, r) * self.scale
        y = rng.uniform(-r, r) * self.scale
        return np.array((place[0] + x, place[1] + y))

    def draw_goal(self, rng):
        self.next_goal[:] = self.with_noise(self.goals[rng.integers(0, len(self.goals))], rng)

    def show_goal(self):
        self.goal[:] = self.next_goal
        self.model.site("target").pos[:2] = self.goal

    def draw_start(self, rng):
        """A goal, and a place that is not near it."""
        self.draw_goal(rng)
        self.show_goal()
        for _ in range(MOST_DRAWS):
            start = self.starts[rng.integers(0, len(self.starts))]
            if np.linalg.norm(start - self.goal) > 0.5 * self.scale:
                return self.with_noise(start, rng)
        raise ValueError("position_noise_range: no start is away from the goal")

    def is_there(self, data):
        return np.linalg.norm(data.qpos[:2] - self.goal) <= 0.45

    def judge(self, data, info, rng):
        """Reward and terminated, and the goal of the next step."""
        there = self.is_there(data)
        info["success"] = there
        gap = distance(data.qpos[:2], self.goal)
        reward = np.exp(-gap) if self.dense else np.float64(gap <= 0.45)
        if self.continuing_task and self.reset_target and there and len(self.goals) > 1:
            for _ in range(MOST_DRAWS):
                self.draw_goal(rng)
                if np.linalg.norm(data.qpos[:2] - self.next_goal) > 0.45:
                    break
        return reward, there and not self.continuing_task

    def compute_reward(self, achieved_goal, desired_goal, info):
        """A step's reward for any goal, of whole batches: gymnasium-robotics' method."""
        gap = np.linalg.norm(achieved_goal - desired_goal, axis=-1)
        return np.exp(-gap) if self.dense else (gap <= 0.45).astype(np.float64)

    def observe_goals(self, data, obs):
        obs["achieved_goal"] = data.qpos[:2]
        obs["desired_goal"] = self.goal


class PointMaze(MazeTask):
    """A ball that is pushed."""

    scale, height = 1.0, 0.4
    max_episode_steps = 300

    def robot_file(self):
        return robotics_file("assets/point/point.xml")

    def reset(self, data, rng, info):
        data.qpos[:] = self.draw_start(rng)
        info["success"] = self.is_there(data)

    def step(self, data, info, rng):
        self.show_goal()
        data.qvel[:] = np.clip(data.qvel, -5.0, 5.0)
        self.simulate(data)
        return self.judge(data, info, rng)

    def observation(self, data, obs):
        obs["observation"] = np.concatenate((data.qpos, data.qvel))
        self.observe_goals(data, obs)


class AntMaze(MazeTask):
    """gymnasium's Ant-v5, whose reward is information here."""

    scale, height = 4.0, 0.5
    max_episode_steps = 700
    frame_skip = 5
    external_forces = True
    forward_reward_weight, ctrl_cost_weight, contact_cost_weight = 1.0, 0.5, 5e-4
    healthy_reward, healthy_z_range = 1.0, (0.2, 1.0)
    torso = memory(2)  # before the step

    def robot_file(self):
        return resolve_xml_file("ant.xml")

    def reset(self, data, rng, info):
        data.qpos[:2] = self.draw_start(rng)
        mujoco.mj_forward(self.model, data)
        self.torso[:] = data.body("torso").xpos[:2]
        self.report(data, info)
        info["success"] = self.is_there(data)

    def report(self, data, info):
        info["x_position"] = data.qpos[0]
        info["y_position"] = data.qpos[1]
        info["distance_from_origin"] = np.linalg.norm(data.qpos[0:2])

    def is_healthy(self, data):
        low, high = self.healthy_z_range
        finite = np.isfinite(data.qpos).all() and np.isfinite(data.qvel).all()
        return finite and low <= data.qpos[2] <= high

    def contact_forces(self, data):
        return np.clip(data.cfrc_ext, -1.0, 1.0)

    def step(self, data, action, info, rng):
        self.show_goal()
        self.simulate(data)
        velocity = (data.body("torso").xpos[:2] - self.torso) / self.dt
        self.torso[:] = data.body("torso").xpos[:2]
        forces = np.sum(np.square(self.contact_forces(data)))
        self.report(data, info)
        info["x_velocity"] = velocity[0]
        info["y_velocity"] = velocity[1]
        info["reward_forward"] = velocity[0] * self.forward_reward_weight
        info["reward_ctrl"] = -np.float32(self.ctrl_cost_weight) * np.sum(np.square(action))
        info["reward_contact"] = -(self.contact_cost_weight * forces)
        info["reward_survive"] = self.is_healthy(data) * self.healthy_reward
        return self.judge(data, info, rng)

    def observation(self, data, obs):
        forces = self.contact_forces(data)[1:].ravel()
        obs["observation"] = np.concatenate((data.qpos[2:], data.qvel, forces))
        self.observe_goals(data, obs)
