"""H1 and Spot follow a gait that each episode draws: its pattern, its pace, how high feet swing.

Formulas: MuJoCo Playground 0.2, _src/locomotion/h1/inplace_gait_tracking.py,
joystick_gait_tracking.py and base.py, _src/locomotion/spot/joystick_gait_tracking.py.
"""

import numpy as np

from pyfastenv.suites.playground import terms as t
from pyfastenv.suites.playground.legged import Legged
from pyfastenv.suites.playground.spot import Spot
from pyfastenv.tasks.language.commands import MOTION
from pyfastenv.tasks.language.fields import command, memory
from pyfastenv.tasks.language.noise import uniform
from pyfastenv.tasks.language.rewards import reward_terms


class Gaited(Legged):
    """A robot whose feet are to follow a drawn gait.

    Attributes:
        phases: Of each gait, where its feet begin; as many as there are feet.
        gait_frequency: The least and the most strides per second.
        swing: The least and the most that feet are to be lifted [m].
        path_width: Squared error of the feet's heights at which their reward is 1/e [m²].
        tracking_sigma: Squared error at which a reward for tracking is 1/e.
    """

    phases: tuple[tuple[float, ...], ...] = ()
    gait_frequency, swing, path_width, tracking_sigma = (0.5, 4.0), (0.08, 0.4), 0.1, 0.25

    phase_dt, gait, gait_freq, foot_height = memory(), memory(), memory(), memory()

    def reset(self, data, rng):
        super().reset(data, rng)
        self.gait_freq = rng.uniform(self.gait_frequency[0], self.gait_frequency[1])
        self.phase_dt = 2.0 * np.pi * self.dt * self.gait_freq
        self.gait = 1.0 * rng.integers(len(self.phases))
        self.foot_height = rng.uniform(self.swing[0], self.swing[1])
        for i in range(len(self.phase)):
            self.phase[i] = self.phases[int(self.gait), i]
        self.next_phase[:] = self.phase
        self.errors[: len(self.pose)] = data.qpos[7:]

    def begin(self, action):
        """Before the physics."""
        self.remember(action)
        self.phase[:] = self.next_phase

    def stride(self, data):
        """After the physics: the next step's phases; the servos' errors."""
        for i in range(len(self.phase)):
            ahead = self.phase[i] + self.phase_dt + np.pi
            self.next_phase[i] = np.fmod(ahead, 2.0 * np.pi) - np.pi
        t.push_front(self.errors, data.qpos[7:] - data.ctrl)

    def feet_phase(self, data):
        """Reward for feet where the gait has them."""
        error = t.off_path(self.heights(data), self.phase, self.foot_height)
        return t.closeness(error, self.path_width)

    def show_gait(self, obs):
        """Writes the gait into an observation."""
        obs["phase"] = np.concatenate((np.cos(self.phase), np.sin(self.phase)))
        obs["gait_freq"] = self.gait_freq
        obs["gait"] = self.gait
        obs["foot_height"] = self.foot_height


class H1(Gaited, joints=19, feet=2):
    """Unitree's H1, in an observation of its own.

    Playground's steps read its feet's contact sensors at other sensors' places: the torso's height
    and axes. So after the start both feet stand, for as long as the robot does.
    """

    scene, trunk = "locomotion/h1/xmls/scene_mjx_feetonly.xml", "torso_link"
    sensors = (
        *("gyro", "local_linvel", "upvector", "forwardvector", "global_linvel", "global_angvel"),
        "position",
    )
    soles = ("left_foot", "right_foot")
    stands = tuple(tuple(f"{side}_foot{i}" for i in (1, 2, 3)) for side in ("left", "right"))
    phases: tuple[tuple[float, ...], ...] = ((0.0, np.pi), (0.0, 0.0))  # walk, jump
    # legs' hips and ankles, waist, arms; what bends a leg forward is free
    pose_weights = (*(5.0, 5.0, 0.0, 0.0, 5.0) * 2, 2.0, *(1.0,) * 8)
    observation_noise = {
        "gyro": uniform(-0.2, 0.2),
        "upvector": uniform(-0.05, 0.05),
        "joints": uniform(-0.01, 0.01),
        "joint_velocities": uniform(-1.5, 1.5),
    }

    phase, next_phase, seen = memory(2), memory(2), memory(2)

    def pose_cost(self, data):
        """Squared distance from the default pose."""
        return t.weighted(data.qpos[7:], self.pose, self.pose_weights)

    def has_fallen(self, data):
        """Whether the torso leans or a joint is beyond its servo's range."""
        return data.sensor("upvector").data[2] < 0.85 or self.is_bent_too_far(data)

    def look(self, data):
        """After the physics: contacts, as Playground's steps take them."""
        up, ahead = data.sensor("upvector").data, data.sensor("forwardvector").data
        height = data.sensor("position").data[2]
        self.seen[0] = 1.0 * (height > 0.0 or up[0] > 0.0 or up[1] > 0.0)
        self.seen[1] = 1.0 * (up[2] > 0.0 or ahead[0] > 0.0 or ahead[1] > 0.0)

    def show_robot(self, data, obs):
        """Writes the robot into an observation."""
        obs["gyro"] = data.sensor("gyro").data
        obs["upvector"] = data.sensor("upvector").data
        obs["joints"] = data.qpos[7:] - self.pose
        obs["joint_velocities"] = data.qvel[6:]
        obs["last_action"] = self.last_action

    def show_past(self, data, obs):
        """Writes earlier steps and the feet into an observation."""
        obs["velocities"] = self.velocities
        obs["errors"] = self.errors
        contacts = self.standing(data)
        if data.time > 0.0:
            contacts[:] = self.seen
        obs["contacts"] = contacts


class H1InplaceGaitTracking(H1):
    """Unitree's H1 walks or jumps in place, in a drawn gait."""

    action_scale = 0.6
    feet_phase_weight, pose_weight, ang_vel_weight, lin_vel_weight = 2.0, -0.5, -0.5, -0.5

    errors, velocities = memory(57), memory(57)

    def control(self, action, ctrl):
        self.aim(ctrl, self.pose, action)

    def step(self, data, action, info):
        self.begin(action)
        self.simulate(data)
        self.stride(data)
        self.look(data)
        t.push_front(self.velocities, data.qvel[6:])
        good = self.feet_phase_weight * self.feet_phase(data)
        pose = self.pose_weight * self.pose_cost(data)
        turning = self.ang_vel_weight * t.squares(data.sensor("global_angvel").data)
        moving = self.lin_vel_weight * t.squares(data.sensor("global_linvel").data[:2])
        info["reward_feet_phase"] = self.dt * good
        info["reward_pose"] = self.dt * pose
        info["reward_ang_vel"] = self.dt * turning
        info["reward_lin_vel"] = self.dt * moving
        return self.dt * good * np.exp(0.2 * (turning + moving + pose)), self.has_fallen(data)

    def observation(self, data, obs):
        self.show_robot(data, obs)
        self.show_past(data, obs)
        self.show_gait(obs)


class H1JoystickGaitTracking(H1):
    """Unitree's H1 walks as it is told; an action moves the servos' targets on.

    Attributes:
        velocity: The command, in the robot's frame: forward, sideways [m/s], turning [rad/s].
        least_command: What of a command is smaller counts as 0.
    """

    action_scale, gait_frequency, path_width, tracking_sigma = 0.3, (0.5, 2.0), 0.01, 0.5
    phases = ((0.0, np.pi),)
    observation_noise = {
        "gyro": uniform(-0.12, 0.12),
        "upvector": uniform(-0.03, 0.03),
        "joints": uniform(-0.006, 0.006),
        "joint_velocities": uniform(-0.9, 0.9),
    }
    velocity = command(low=(-1.5, -0.5, -1.0), high=(1.5, 0.5, 1.0), every=10.02, names=MOTION)
    least_command = 0.1

    errors, velocities, target = memory(19), memory(19), memory(19)

    def control(self, action, ctrl):
        self.aim(ctrl, self.target, action)

    @reward_terms(
        0.0,
        tracking_lin_vel=3.5,
        tracking_ang_vel=0.75,
        feet_phase=5.0,
        feet_air_time=0.0,
        ang_vel_xy=0.0,
        lin_vel_z=0.0,
        pose=-2.5,
        foot_slip=0.0,
        action_rate=-0.01,
    )
    def step(self, data, action, info):
        self.begin(action)
        self.simulate(data)
        self.stride(data)
        self.look(data)
        self.target[:] = data.ctrl
        t.push_front(self.velocities, data.qvel[6:])
        dt, told, linvel = self.dt, self.heard(), data.sensor("local_linvel").data
        turn_miss = np.square(told[2] - data.sensor("gyro").data[2])
        terms = {
            "tracking_lin_vel": dt * t.closeness(t.distance(told[:2], linvel), self.tracking_sigma),
            "tracking_ang_vel": dt * t.closeness(turn_miss, self.tracking_sigma),
            "feet_phase": dt * self.feet_phase(data),
            "feet_air_time": dt * 0.0,  # by Playground's contacts no foot is ever in the air
            "ang_vel_xy": dt * t.squares(data.sensor("global_angvel").data[:2]),
            "lin_vel_z": dt * (self.gait > 0.0) * np.square(data.sensor("global_linvel").data[2]),
            "pose": dt * self.pose_cost(data),
            "foot_slip": dt * t.slip(self.ground_speeds(data), self.seen),
            # Playground's arguments are turned: the newest action stands for the oldest
            "action_rate": dt * t.jerk(self.last_action, self.action_before, action),
        }
        return terms, {"fallen": self.has_fallen(data)}

    def heard(self):
        """The command without what is too small."""
        told = self.velocity.copy()
        for i in range(3):
            if abs(told[i]) < self.least_command:
                told[i] = 0.0
        return told

    def observation(self, data, obs):
        self.show_robot(data, obs)
        obs["command"] = self.heard()
        self.show_past(data, obs)
        self.show_gait(obs)


class SpotJoystickGaitTracking(Gaited, Spot, joints=12, feet=4):
    """Boston Dynamics' Spot walks as it is told, in a drawn gait; it does not see the command.

    Attributes:
        velocity: The command, in the robot's frame: forward, sideways [m/s], turning [rad/s].
    """

    scene = "locomotion/spot/xmls/scene_mjx_feetonly_flat_terrain.xml"
    stiffness, damping, action_scale = 400.0, 10.0, 0.6
    phases = (
        (0.0, np.pi, np.pi, 0.0),  # trot
        (0.0, 0.5 * np.pi, np.pi, 1.5 * np.pi),  # walk
        (0.0, np.pi, 0.0, np.pi),  # pace
        (0.0, 0.0, np.pi, np.pi),  # bound
        (0.0, 0.0, 0.0, 0.0),  # pronk
    )
    observation_noise = {
        "gyro": uniform(-0.1, 0.1),
        "upvector": uniform(-0.03, 0.03),
        "angles": uniform(-0.05, 0.05),
        "errors": uniform(-0.05, 0.05),
    }
    velocity = command(
        low=(-1.0, -0.5, -1.0), high=(1.0, 0.5, 1.0), every=4.02, standing=0.1, names=MOTION
    )
    feet_phase_weight, tracking_lin_vel_weight, tracking_ang_vel_weight = 2.0, 0.5, 0.5
    ang_vel_xy_weight, lin_vel_z_weight, hip_splay_weight = -0.5, -0.5, -0.5

    phase, next_phase, errors = memory(4), memory(4), memory(36)

    def control(self, action, ctrl):
        self.aim(ctrl, self.pose, action)

    def step(self, data, action, info):
        self.begin(action)
        self.simulate(data)
        self.stride(data)
        told, dt, linvel = self.velocity, self.dt, data.sensor("local_linvel").data
        miss = t.distance(told[:2], linvel)
        turn_miss = np.square(told[2] - data.sensor("gyro").data[2])
        splay, rises = 0.0, np.square(data.sensor("global_linvel").data[2])
        for i in range(4):
            splay += np.square(data.qpos[7 + 3 * i] - self.pose[3 * i])
        steps_well = self.feet_phase_weight * self.feet_phase(data)
        follows = self.tracking_lin_vel_weight * t.closeness(miss, self.tracking_sigma)
        turns = self.tracking_ang_vel_weight * t.closeness(turn_miss, self.tracking_sigma)
        rolls = self.ang_vel_xy_weight * t.squares(data.sensor("global_angvel").data[:2])
        hops = self.lin_vel_z_weight * (self.gait > 2.0) * rises
        splays = self.hip_splay_weight * splay
        info["reward_feet_phase"] = dt * steps_well
        info["reward_tracking_lin_vel"] = dt * follows
        info["reward_tracking_ang_vel"] = dt * turns
        info["reward_ang_vel_xy"] = dt * rolls
        info["reward_lin_vel_z"] = dt * hops
        info["reward_hip_splay"] = dt * splays
        good = follows + turns + steps_well
        fallen = data.sensor("upvector").data[2] < 0.85
        return dt * good * np.exp(0.2 * (rolls + hops + splays)), fallen

    def observation(self, data, obs):
        obs["gyro"] = data.sensor("gyro").data
        obs["upvector"] = data.sensor("upvector").data
        obs["angles"] = data.qpos[7:]
        obs["errors"] = self.errors
        obs["contacts"] = self.standing(data)
        self.show_gait(obs)
