"""Unitree's Go1 trots to a clock, as a joystick says, and is pushed."""

import gymnasium
import numpy as np

from pyfastenv.suites.playground import terms as t
from pyfastenv.suites.playground.go1 import NOISE, Go1
from pyfastenv.tasks.language.commands import MOTION
from pyfastenv.tasks.language.fields import command, memory
from pyfastenv.tasks.language.rewards import reward_terms
from pyfastenv.tasks.language.symmetry import both_sides

SHARED = ("command", "clock", "last_action")  # the last that policies see, the critic's first
STATE = ("linvel", "gyro", "gravity", "joints", "joint_velocities", *SHARED)
TRUTH = (
    "true_linvel", "true_gyro", "true_gravity", "true_joints", "true_joint_velocities", "contacts",
    "height",
)  # fmt: skip


class Go1Trot(Go1):
    """Playground's Go1 follows a joystick at a trot; mjlab's pushes come every 1 to 3 s.

    The reward's idea, a trot to a clock that the policy sees, is mjbatch's (github.com/kevinzakka/
    mjbatch, examples/go1_joystick.py), as are its terms for feet.

    The second half of a stride is the first one's mirror image: in it networks are shown the robot
    in a mirror, and the robot does the mirror image of the action. So one half is learned for both.
    ``told`` and ``motion``, observations that no network sees, are not mirrored: forward, sideways
    [m/s], turning [rad/s].

    Attributes:
        velocity: Where the joystick is: forward, sideways [m/s], turning [rad/s]. What the robot is
            told goes there by ``acceleration``.
        acceleration: The most by which the command that is seen changes [m/s², m/s², rad/s²].
        tempo: Strides per second.
        phases: Where in its stride each foot begins, from 0 to 1.
        swing: The height of a foot in the middle of its swing, the least and the most [m].
        swing_width: How far from these its reward is 1/e [m].
        slip_width: Squared speed of a foot on the ground at which its reward is 1/e [m²/s²].
        lift: How much higher than Playground's the robot starts: feet touch the ground [m].
        stagger: Greatest distance of the start's joints from the default pose [rad].
        least_upright: Cosine of the lean at which an episode ends.
    """

    scene = "locomotion/go1/xmls/scene_mjx_feetonly_flat_terrain.xml"
    observation_noise = NOISE
    observation_dict = {"policy": STATE, "critic": (*SHARED, *TRUTH)}
    action_space = gymnasium.spaces.Box(-4.0, 4.0, (12,), np.float64)
    velocity = command(
        low=(-1.5, -0.8, -1.2),
        high=(1.5, 0.8, 1.2),
        every=(2.0, 8.0),
        standing=(0.2, 0.6, 0.4),
        names=MOTION,
    )
    acceleration = (2.0, 2.0, 4.0)
    push_velocity, push_every = (0.5, 0.5, 0.4, 0.52, 0.52, 0.78), (1.0, 3.0)
    tracking_sigma, tempo = 0.25, 2.0
    pose_weights: tuple[float, ...] = (1.0, 1.0, 0.1) * 4
    phases: tuple[float, ...] = (0.0, 0.5, 0.5, 0.0)
    swing, swing_width, slip_width = (0.06, 0.075), 0.035, 0.05
    speed, lift, stagger, least_upright = 0.2, 0.0175, 0.1, 0.5

    told, clock, landing = memory(3), memory(), memory(4)

    def prepare(self, spec):
        """The IMU stands in the robot's middle, so that its mirror image does too."""
        super().prepare(spec)
        spec.site("imu").pos[1] = 0.0

    def setup(self):
        super().setup()
        self.sole = self.sole_height()
        seen = super().symmetry().observations
        self.joint_order, self.joint_signs = both_sides(seen["joints"])
        self.action_order, self.action_signs = both_sides(self.action_mirror())
        self.foot_order = both_sides(seen["contacts"])[0]
        self.vector_signs, self.axial_signs, self.command_signs = (
            both_sides(seen[name])[1] for name in ("linvel", "gyro", "command")
        )

    def action_mirror(self):
        """How actions mirror."""
        return super().symmetry().actions

    def symmetry(self):
        """Raises a ValueError: nothing is to be gained from mirrored steps."""
        raise ValueError(
            f"{type(self).__name__} shows the second half of a stride in a mirror: mirrored steps "
            "would be of states that it never shows"
        )

    def sole_height(self):
        """How high the soles' sites are above the ground on which the feet stand [m]."""
        return self.model.geom(self.soles[0]).size[0]

    def reset(self, data, rng):
        super().reset(data, rng)
        data.qpos[2] += self.lift
        data.qpos[7:] += rng.uniform(-self.stagger, self.stagger, len(self.pose))
        self.clock = rng.uniform(0.0, 1.0)

    def listen(self):
        """Ends a step: what is told moves towards the joystick."""
        for i in range(3):
            most = self.dt * self.acceleration[i]
            self.told[i] += min(max(self.velocity[i] - self.told[i], -most), most)

    def is_told(self):
        """Whether the robot is to move."""
        return t.length(self.told) > 0.01

    def side(self):
        """1 where everything is shown in a mirror, in the second half of a stride; else 0."""
        return int(self.is_told() and self.clock >= 0.5)

    def by_robot(self, action):
        """The action itself, or its mirror image in the second half of a stride."""
        side = self.side()
        return self.action_signs[side] * action[self.action_order[side]]

    def control(self, action, ctrl):
        ctrl[:] = self.pose + self.action_scale * self.by_robot(action)

    def trot(self, data, speeds, moves):
        """Reward for feet that the clock has in the air, or on the ground, from 0 to 1."""
        total, heights = 0.0, self.heights(data)
        for i in range(len(self.contact)):
            wave = moves * np.sin(2.0 * np.pi * (self.clock + self.phases[i]))
            height = heights[i] - self.sole
            low, high = min(height - self.swing[0] * wave, 0.0), max(height - self.swing[1], 0.0)
            path = t.closeness(low * low + high * high, np.square(self.swing_width))
            stands = max(self.contact[i], self.last_contact[i])  # a bounce ends no stance
            share = moves * min(max(0.5 + wave, 0.0), 1.0)
            total += share * (1.0 - self.contact[i]) * path
            total += (1.0 - share) * stands * t.closeness(speeds[i], self.slip_width)
        return total / len(self.contact)

    def impact(self, data):
        """Squared speeds that feet had before they came down in this step [m²/s²]."""
        total = 0.0
        for i in range(len(self.contact)):
            total += self.landed[i] * self.landing[i]
            self.landing[i] = t.squares(data.sensordata[self.feet_at[i] : self.feet_at[i] + 3])
        return total

    @reward_terms(
        0.0,
        tracking_lin_vel=3.0,
        tracking_ang_vel=1.0,
        trot=1.5,
        pose=0.5,
        lin_vel_z=-0.5,
        ang_vel_xy=-0.05,
        orientation=-5.0,
        action_rate=-0.01,
        landing=-0.2,
        dof_pos_limits=-1.0,
    )
    def step(self, data, action, info, rng):
        if self.kick > 0.0:
            self.suffer_kicks(data, rng)
        if self.is_pushed():
            self.suffer_pushes(data, rng)
        self.remember_feet()
        self.simulate(data)
        self.feel(data)
        self.note_misses(data, self.told, info)
        dt, angles, moves, done = self.dt, data.qpos[7:], self.is_told(), self.by_robot(action)
        follows, turns, rises, rolls, leans = self.motion(data, self.told)
        terms = {
            "tracking_lin_vel": dt * follows,
            "tracking_ang_vel": dt * turns,
            "trot": dt * self.trot(data, self.ground_speeds(data), moves),
            "pose": dt * np.exp(-t.weighted(angles, self.pose, self.pose_weights)),
            "lin_vel_z": dt * rises,
            "ang_vel_xy": dt * rolls,
            "orientation": dt * leans,
            "action_rate": dt * t.distance(done, self.last_action),
            "landing": dt * self.impact(data),
            "dof_pos_limits": dt * t.beyond(angles, self.lowest, self.highest),
        }
        self.last_action[:] = done
        self.clock = (self.clock + self.tempo * dt) % 1.0
        self.listen()
        fallen = data.sensor("upvector").data[2] < self.least_upright
        return terms, {"fallen": fallen, "low": self.is_low(data)}

    def is_low(self, data):
        """Whether the trunk is so low that the episode ends: never."""
        return False

    def observation(self, data, obs):
        body = self.shown_body(data)
        self.show_state(data, obs, body)
        self.show_more(data, obs, body)
        obs["told"] = self.told
        velocity = data.sensor("local_linvel").data
        obs["motion"] = velocity[0], velocity[1], data.sensor("gyro").data[2]

    def shown_body(self, data):
        """Velocity, turning, gravity, joints and their velocities, as the side shows them."""
        side = self.side()
        order, signs, vector = (
            self.joint_order[side],
            self.joint_signs[side],
            self.vector_signs[side],
        )
        return (
            vector * data.sensor("local_linvel").data,
            self.axial_signs[side] * data.sensor("gyro").data,
            -vector * data.site("imu").xmat[6:],
            signs * (data.qpos[7:] - self.pose)[order],
            signs * data.qvel[6:][order],
        )

    def show_state(self, data, obs, body):
        """Writes what the policy sees."""
        obs["linvel"], obs["gyro"], obs["gravity"] = body[0], body[1], body[2]
        obs["joints"], obs["joint_velocities"] = body[3], body[4]
        side, moves = self.side(), self.is_told()
        obs["command"] = self.command_signs[side] * self.told
        angle = 2.0 * np.pi * (self.clock - 0.5 * side)
        obs["clock"] = moves * np.sin(angle), moves * np.cos(angle)
        obs["last_action"] = self.by_robot(self.last_action)

    def show_more(self, data, obs, body):
        """Writes what the critic alone sees."""
        obs["true_linvel"], obs["true_gyro"], obs["true_gravity"] = body[0], body[1], body[2]
        obs["true_joints"], obs["true_joint_velocities"] = body[3], body[4]
        obs["contacts"] = self.contact[self.foot_order[self.side()]]
        obs["height"] = data.qpos[2]
