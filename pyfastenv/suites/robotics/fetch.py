"""Fetch: an arm on wheels reaches, pushes, slides, or picks and places."""

import gymnasium
import mujoco
import numpy as np

from pyfastenv.suites.robotics.base import GoalTask, distance, matrix_to_euler, robotics_file
from pyfastenv.suites.starts import MOST_DRAWS
from pyfastenv.tasks.language.fields import memory


class Fetch(GoalTask):
    """The base of the four tasks: a mocap body leads the gripper, to which it is welded.

    Attributes:
        dense: The reward is the negative distance to the goal; False: 0 there, -1 elsewhere.
        distance_threshold: What counts as there [m].
        obj_range: How far from the gripper the object may lie, in x and y [m].
        target_range: How far from the gripper the goal may be, before ``target_offset`` [m].
    """

    file = ""
    frame_skip = 20
    max_episode_steps = 50
    action_space = gymnasium.spaces.Box(-1.0, 1.0, (4,), np.float32)
    distance_threshold, obj_range, target_range = 0.05, 0.15, 0.15
    target_offset = (0.0, 0.0, 0.0)
    target_in_the_air = has_object = block_gripper = True
    extra_height = 0.0  # of the gripper, before an episode [m]
    slide = 0.405  # the robot's place [m]
    object_start = (1.25, 0.53, 0.4)
    goal, gripper = memory(3), memory(7)

    def model(self):
        return str(robotics_file(f"assets/fetch/{self.file}.xml"))

    def setup(self):
        """Lets the gripper move to where episodes begin."""
        model = self.model
        for weld in np.flatnonzero(model.eq_type == int(mujoco.mjtEq.mjEQ_WELD)):
            model.eq_data[weld, :7] = (0, 0, 0, 0, 0, 0, 1)
        data = mujoco.MjData(model)
        data.joint("robot0:slide0").qpos = self.slide
        data.joint("robot0:slide1").qpos = 0.48
        data.joint("robot0:slide2").qpos = 0.0
        if self.has_object:
            data.joint("object0:joint").qpos = (*self.object_start, 1, 0, 0, 0)
        mujoco.mj_forward(model, data)
        offset = np.array([-0.498, 0.005, -0.431 + self.extra_height])
        data.mocap_pos[0] = offset + data.site("robot0:grip").xpos
        data.mocap_quat[0] = (1, 0, 1, 0)
        for _ in range(10):
            mujoco.mj_step(model, data, nstep=self.frame_skip)
        self.start_time = data.time
        self.start_qpos, self.start_qvel = data.qpos.copy(), data.qvel.copy()
        self.start_grip = data.site("robot0:grip").xpos.copy()
        self.start_height = data.site("object0").xpos[2] if self.has_object else 0.0

    def reset(self, data, rng):
        data.time = self.start_time
        data.qpos[:], data.qvel[:] = self.start_qpos, self.start_qvel
        if self.has_object:
            self.place_object(data, rng)
        mujoco.mj_forward(self.model, data)
        self.keep_gripper(data)
        self.draw_goal(rng)

    def place_object(self, data, rng):
        r, grip = self.obj_range, self.start_grip[:2]
        for _ in range(MOST_DRAWS):
            place = grip + rng.uniform(-r, r, 2)
            if np.linalg.norm(place - grip) >= 0.1:
                data.joint("object0:joint").qpos[:2] = place
                return
        raise ValueError("obj_range: no place is 0.1 m away from the gripper")

    def draw_goal(self, rng):
        r = self.target_range
        self.goal[:] = self.start_grip + rng.uniform(-r, r, 3)
        if self.has_object:
            for i in range(3):
                self.goal[i] += self.target_offset[i]
            self.goal[2] = self.start_height
            if self.target_in_the_air and rng.uniform(0.0, 1.0) < 0.5:
                self.goal[2] += rng.uniform(0.0, 0.45)

    def keep_gripper(self, data):
        """Where the next step finds it."""
        link = data.body("robot0:gripper_link")
        self.gripper[:3], self.gripper[3:] = link.xpos, link.xquat

    def step(self, data, action, info):
        moves = np.float32(0.05) * np.clip(action.astype(np.float64), -1.0, 1.0).astype(np.float32)
        data.mocap_pos[0] = self.gripper[:3] + moves[:3].astype(np.float64)
        data.mocap_quat[0] = self.gripper[3:] + np.array((1.0, 0.0, 1.0, 0.0))
        self.simulate(data)
        if self.block_gripper:
            data.joint("robot0:l_gripper_finger_joint").qpos[0] = 0.0
            data.joint("robot0:r_gripper_finger_joint").qpos[0] = 0.0
            mujoco.mj_forward(self.model, data)
        self.keep_gripper(data)
        gap = distance(self.achieved(data), self.goal)
        info["is_success"] = np.float32(gap < self.distance_threshold)
        return -gap if self.dense else -np.float64(gap > self.distance_threshold), False

    def compute_reward(self, achieved_goal, desired_goal, info):
        """A step's reward for any goal, of whole batches: gymnasium-robotics' method."""
        gap = np.linalg.norm(achieved_goal - desired_goal, axis=-1)
        return -gap if self.dense else -(gap > self.distance_threshold).astype(np.float64)

    # ---- what is seen ----------------------------------------------------------------------------

    def achieved(self, data):
        return data.site("object0").xpos

    def velocities(self, data, site):
        """A site's linear and angular velocity, times a step's length."""
        linear, angular = np.zeros((3, self.model.nv)), np.zeros((3, self.model.nv))
        mujoco.mj_jacSite(self.model, data, linear, angular, site)
        return (linear @ data.qvel) * self.dt, (angular @ data.qvel) * self.dt

    def fingers(self, data):
        """Their positions, and velocities times a step's length."""
        right = data.joint("robot0:r_gripper_finger_joint")
        left = data.joint("robot0:l_gripper_finger_joint")
        positions = np.array((right.qpos[0], left.qpos[0]))
        return positions, np.array((right.qvel[0], left.qvel[0])) * self.dt

    def observation(self, data, obs):
        grip = data.site("robot0:grip").xpos
        grip_velocity, _ = self.velocities(data, self.model.site("robot0:grip").id)
        fingers, finger_velocities = self.fingers(data)
        thing = data.site("object0")
        velocity, turning = self.velocities(data, self.model.site("object0").id)
        obs["observation"] = np.concatenate(
            (
                grip,
                thing.xpos,
                thing.xpos - grip,
                fingers,
                matrix_to_euler(thing.xmat),
                velocity - grip_velocity,
                turning,
                grip_velocity,
                finger_velocities,
            )
        )
        obs["achieved_goal"] = self.achieved(data)
        obs["desired_goal"] = self.goal


class FetchPush(Fetch):
    """Push a box to the goal, the gripper shut."""

    file = "push"
    target_in_the_air = False


class FetchSlide(Fetch):
    """Hit a puck so that it slides to a goal out of reach."""

    file = "slide"
    slide, object_start, extra_height = 0.05, (1.7, 1.1, 0.41), -0.02
    obj_range, target_range, target_offset = 0.1, 0.3, (0.4, 0.0, 0.0)
    target_in_the_air = False


class FetchPickAndPlace(Fetch):
    """Take a box to the goal, which may be in the air."""

    file = "pick_and_place"
    extra_height = 0.2
    block_gripper = False

    def setup(self):
        super().setup()
        # both actuators are servos: the action is relative to where their joints are
        self.driven = self.model.jnt_qposadr[self.model.actuator_trnid[:, 0]]

    def control(self, data, action, ctrl):
        move = np.float32(np.clip(np.float64(action[3]), -1.0, 1.0))
        for i in range(2):
            ctrl[i] = data.qpos[self.driven[i]] + np.float64(move)


class FetchReach(Fetch):
    """Bring the gripper to the goal."""

    file = "reach"
    slide, extra_height = 0.4049, 0.2
    has_object = False

    def achieved(self, data):
        return data.site("robot0:grip").xpos

    def place_object(self, data, rng):
        pass

    def observation(self, data, obs):
        grip = data.site("robot0:grip").xpos
        grip_velocity, _ = self.velocities(data, self.model.site("robot0:grip").id)
        fingers, finger_velocities = self.fingers(data)
        obs["observation"] = np.concatenate((grip, fingers, grip_velocity, finger_velocities))
        obs["achieved_goal"] = self.achieved(data)
        obs["desired_goal"] = self.goal
