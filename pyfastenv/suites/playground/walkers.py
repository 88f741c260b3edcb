"""Humanoids that step to a clock: what G1, T1, the Berkeley Humanoid and Apollo share.

Formulas: MuJoCo Playground 0.2, joystick.py of _src/locomotion/{g1,t1,berkeley_humanoid,apollo}.
"""

import numpy as np

from pyfastenv.suites.playground import terms as t
from pyfastenv.suites.playground.legged import Legged
from pyfastenv.tasks.language.fields import memory
from pyfastenv.tasks.language.noise import uniform

STATE = (
    "linvel", "gyro", "gravity", "command", "joints", "joint_velocities", "last_action", "phase",
)  # fmt: skip


class Walker(Legged):
    """A humanoid that steps to a clock's phase as a joystick tells it.

    Attributes:
        velocity: The command, in the robot's frame: forward, sideways [m/s], turning [rad/s].
        gait: The least and the most of the strides per second; an episode has its own.
        clock_stops: Whether the clock stops, both feet down, where the robot is to stand.
        tracking_sigma: Squared error at which a reward for tracking is 1/e.
        max_foot_height: How high a foot is to be lifted [m].
    """

    frame_skip, timestep = 10, 0.002
    place, heading, speed, bend, holds = 0.5, 3.14, 0.5, (0.5, 1.5), True
    observation_noise = {
        "linvel": uniform(-0.1, 0.1),
        "gyro": uniform(-0.2, 0.2),
        "gravity": uniform(-0.05, 0.05),
        "joints": uniform(-0.03, 0.03),
        "joint_velocities": uniform(-1.5, 1.5),
    }
    tracking_sigma, max_foot_height = 0.25, 0.12
    push_speed, gait, clock_stops = (0.1, 2.0), (1.25, 1.5), False

    phase, next_phase, phase_dt = memory(2), memory(2), memory()

    def reset(self, data, rng):
        super().reset(data, rng)
        self.phase_dt = 2.0 * np.pi * self.dt * rng.uniform(self.gait[0], self.gait[1])
        self.phase[1], self.next_phase[1] = np.pi, np.pi

    def begin(self, data, action, rng):
        """Before the physics."""
        self.suffer_pushes(data, rng)
        self.remember(action)
        self.phase[:] = self.next_phase

    def walk_on(self):
        """Ends a step: the next one's phase."""
        for i in range(len(self.phase)):
            ahead = self.phase[i] + self.phase_dt + np.pi
            self.next_phase[i] = np.fmod(ahead, 2.0 * np.pi) - np.pi
        if self.clock_stops and t.length(self.velocity) <= 0.01:
            self.next_phase[:] = np.pi

    def observation(self, data, obs):
        obs["linvel"] = data.sensor("local_linvel").data
        obs["gyro"] = data.sensor("gyro").data
        obs["gravity"] = -data.site_xmat[self.imu_id, 6:]
        obs["command"] = self.velocity
        obs["joints"] = data.qpos[7:] - self.pose
        obs["joint_velocities"] = data.qvel[6:]
        obs["last_action"] = self.last_action
        obs["phase"] = np.concatenate((np.cos(self.phase), np.sin(self.phase)))
