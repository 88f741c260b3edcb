"""Go1 and G1 follow a velocity, by mjlab's terms; here on flat ground.

Formulas: mjlab 1.6, tasks/velocity (velocity_env_cfg.py, config, mdp) and envs/mdp.
"""

import mujoco
import numpy as np

from pyfastenv.suites.mjlab.base import (
    FEET,
    G1,
    G1_SOLE_FRICTION,
    TOLERANCE,
    Go1,
    Robot,
    by_name,
    yaw_of,
)
from pyfastenv.suites.playground import terms as t
from pyfastenv.tasks.language.commands import MOTION
from pyfastenv.tasks.language.fields import command, curriculum, memory
from pyfastenv.tasks.language.helpers import projected_gravity
from pyfastenv.tasks.language.noise import uniform
from pyfastenv.tasks.language.randomise import log_uniform, shift
from pyfastenv.tasks.language.randomise import uniform as between
from pyfastenv.tasks.language.rewards import reward_terms

SEEN = ("base_lin_vel", "base_ang_vel", "projected_gravity", "joint_pos", "joint_vel")
SHARED = ("actions", "command")  # the last that policies see, the critic's first
OF_FEET = ("foot_height", "foot_air_time", "foot_contact", "foot_contact_forces")
TRUE = tuple(f"true_{name}" for name in SEEN)
_OF_SITE, _OF_BODY = mujoco.mjtObj.mjOBJ_SITE, mujoco.mjtObj.mjOBJ_XBODY
_FORWARD_LEAST, _STIFFNESS = 0.3, 0.5  # mjlab's least speed, gain


class Velocity(Robot):
    """A robot follows a velocity, and is pushed; on flat ground, but for what subclasses change.

    What a subclass says: ``feet_count``. As in mjlab, a reward is of what the last substep was
    computed from, and of heights of feet as the last observation had them; an observation is of the
    new state, but for contacts.

    Attributes:
        stage: Of mjlab's curriculum of commands, by steps of the environment.
        velocity: The command, in the robot's frame: forward, sideways [m/s], turning [rad/s]. What
            is drawn is changed in these shares of cases; what is held is not.
        forward_share: How often it is straight ahead.
        heading_share: How often the turning is towards a heading, by the angle that is left.
        upright_body: The body that is to be upright.
        most_tilt: Of the root, before an episode ends [rad].
        widths: Of joints, by patterns, the distance from the default pose at which ``pose`` is 1/e
            where the robot is to stand, to walk and to run [rad].
        walking_speed, running_speed: From which commands on it is to, both speeds' sum.
        target_height: How high a foot is to be lifted [m].
    """

    observation_noise = {
        "base_lin_vel": uniform(-0.5, 0.5),
        "base_ang_vel": uniform(-0.2, 0.2),
        "projected_gravity": uniform(-0.05, 0.05),
        "joint_pos": uniform(-0.01, 0.01),
        "joint_vel": uniform(-1.5, 1.5),
    }
    observation_dict = {"policy": (*SEEN, *SHARED), "critic": (*SHARED, *TRUE, *OF_FEET)}
    stage = curriculum(0, 2, over=(0, 10_000 * 24))
    velocity = command(
        low=((-1.0, -1.0, -0.5), (-1.5, -1.0, -0.7), (-2.0, -1.0, -0.7)),
        high=((1.0, 1.0, 0.5), (2.0, 1.0, 0.7), (3.0, 1.0, 0.7)),
        every=(3.0, 8.0),
        standing=0.1,
        names=MOTION,
        curriculum="stage",
    )
    forward_share, heading_share = 0.2, 0.3
    upright_body, most_tilt = "", np.radians(70.0)
    widths: tuple[dict[str, float], ...] = ({}, {}, {})
    walking_speed, running_speed, target_height = 0.05, 1.5, 0.1

    # of the command in force and of the next one: heading [rad], shares for it and for forward
    drawn, coming, drawn_until = memory(3), memory(3), memory()
    misses = memory(3)

    def __init_subclass__(cls, feet_count=0, **arguments):
        for name in ("air_time", "contact_time", "foot_height") if feet_count else ():
            setattr(cls, name, memory(feet_count))
        if feet_count:
            cls.peak_height = memory(feet_count, lasting=True)  # as in mjlab
        super().__init_subclass__(**arguments)

    def measure(self, spec):
        super().measure(spec)
        kind = mujoco.mjtSensor.mjSENS_SUBTREEANGMOM
        sensor = spec.add_sensor(name="root_angmom", type=kind, objname=f"robot/{self.root}")
        sensor.objtype = mujoco.mjtObj.mjOBJ_BODY

    def setup(self):
        super().setup()
        self.standing, self.walking, self.running = (
            by_name(self.joint_names(), width, np.nan) for width in self.widths
        )
        self.upright_id = self.model.body(f"robot/{self.upright_body}").id

    def reset(self, data, rng):
        data.qpos[:] = self.home
        data.qpos[:2] = rng.uniform(-0.5, 0.5, 2)
        data.qpos[2] += rng.uniform(0.01, 0.05)
        data.qpos[:3] += self.origin(rng)
        self.bias[:] = rng.uniform(-self.encoder_bias, self.encoder_bias, len(self.bias))
        turn = rng.uniform(-3.14, 3.14)
        data.qpos[3], data.qpos[6] = np.cos(0.5 * turn), np.sin(0.5 * turn)
        self.push_in = rng.uniform(self.push_every[0], self.push_every[1])
        self.draw_kind(rng)
        self.take_kind(rng)
        self.measure_heights(data)

    def origin(self, rng):
        """Where an episode starts, ``(3,)`` [m]."""
        return np.zeros(3)

    # ---- the command ---------------------------------------------------------------------------

    def draw_kind(self, rng):
        """Draws of what kind the next command will be."""
        self.coming[0] = rng.uniform(-np.pi, np.pi)
        self.coming[1], self.coming[2] = rng.uniform(0.0, 1.0), rng.uniform(0.0, 1.0)

    def take_kind(self, rng):
        """Gives a command that has been drawn since the last step its kind."""
        if self.drawn_until != self._velocity_until:
            self.drawn_until = self._velocity_until
            self.drawn[:] = self.coming
            self.draw_kind(rng)

    def told(self, data):
        """The command in force, ``(3,)``."""
        found = self.velocity.copy()
        if self._velocity_held > 0.0 or t.sizes(found) == 0.0:
            return found
        is_new = self.drawn_until != self._velocity_until
        kind = self.coming if is_new else self.drawn
        if kind[2] <= self.forward_share:
            found[0], found[1], found[2] = max(abs(found[0]), _FORWARD_LEAST), 0.0, 0.0
        if kind[1] <= self.heading_share:
            left = kind[0] - yaw_of(data.qpos[3:7])
            turning = _STIFFNESS * np.arctan2(np.sin(left), np.cos(left))
            stage = int(self.stage)
            found[2] = min(max(turning, self.velocity_low[stage, 2]), self.velocity_high[stage, 2])
        return found

    # ---- what touches --------------------------------------------------------------------------

    def measure_heights(self, data):
        """The feet's in the new state, of which mjData knows no places yet [m]."""
        for i in range(len(self.foot_sites)):
            place, _ = site_pose(self.model, data.qpos, self.foot_sites[i])
            self.foot_height[i] = min(max(place[2], 0.0), 1.0)  # as far as mjlab's rays go

    def feel(self, data, dt):
        """Counts for how long feet have stood, and been in the air, after some substeps."""
        for i in range(len(self.foot_at)):
            stands = data.sensordata[self.foot_at[i]] > 0.0
            self.air_time[i] = 0.0 if stands else self.air_time[i] + dt
            self.contact_time[i] = self.contact_time[i] + dt if stands else 0.0

    def tilt(self, data):
        """The square of the sine of the upright body's angle from upright."""
        return t.squares(data.xmat[self.upright_id, 6:8])

    def is_out(self, data):
        """Whether the robot leaves the ground."""
        return False

    # ---- a step --------------------------------------------------------------------------------

    @reward_terms(
        track_linear_velocity=2.0,
        track_angular_velocity=2.0,
        upright=1.0,
        pose=1.0,
        body_ang_vel=0.0,
        angular_momentum=0.0,
        dof_pos_limits=-1.0,
        action_rate_l2=-0.1,
        air_time=0.0,
        foot_clearance=-2.0,
        foot_swing_height=-0.25,
        foot_slip=-0.1,
        soft_landing=-1e-5,
        self_collisions=0.0,
        shank_collision=0.0,
        trunk_head_collision=0.0,
    )
    def step(self, data, action, info, rng):
        self.take_kind(rng)
        told, dt = self.told(data), self.dt
        self_hits, shank_hits, trunk_hits, thigh_hits = self.advance(data, action)
        speed = t.length(told[:2]) + abs(told[2])
        moves, own = 1.0 * (speed > self.walking_speed), np.zeros(6)
        mujoco.mj_objectVelocity(self.model, data, _OF_BODY, self.root_id, own, 1)
        miss = t.distance(told[:2], own[3:5]) + own[5] * own[5]
        turn_miss = np.square(told[2] - own[2]) + t.squares(own[:2])
        flies, clearance, swing, slip, landing = 0.0, 0.0, 0.0, 0.0, 0.0
        for i in range(len(self.foot_sites)):
            at, velocity = self.foot_at[i], np.zeros(6)
            mujoco.mj_objectVelocity(self.model, data, _OF_SITE, self.foot_sites[i], velocity, 0)
            squared, stands = t.squares(velocity[3:5]), data.sensordata[at] > 0.0
            clearance += abs(self.foot_height[i] - self.target_height) * np.sqrt(squared)
            slip += squared * stands
            flies += 0.05 < self.air_time[i] < 0.5
            if not stands:
                self.peak_height[i] = max(self.peak_height[i], self.foot_height[i])
            if 0.0 < self.contact_time[i] < dt + TOLERANCE:
                swing += np.square(self.peak_height[i] / self.target_height - 1.0)
                landing += t.length(data.sensordata[at + 1 : at + 4])
                self.peak_height[i] = 0.0
        width = self.standing if speed < self.walking_speed else self.walking
        width = self.running if speed >= self.running_speed else width
        strays = 0.0
        for i in range(len(self.pose)):
            strays += np.square((data.qpos[7 + i] - self.pose[i]) / width[i])
        terms = {
            "track_linear_velocity": dt * np.exp(-miss / 0.25),
            "track_angular_velocity": dt * np.exp(-turn_miss / 0.5),
            "upright": dt * np.exp(-self.tilt(data) / 0.2),
            "pose": dt * np.exp(-strays / len(self.pose)),
            "body_ang_vel": dt * t.squares(data.cvel[self.upright_id, :2]),
            "angular_momentum": dt * t.squares(data.sensor("root_angmom").data),
            "dof_pos_limits": dt * t.beyond(data.qpos[7:], self.lowest, self.highest),
            "action_rate_l2": dt * t.distance(action, self.last_action),
            "air_time": dt * flies * (speed > 0.5),
            "foot_clearance": dt * moves * clearance,
            "foot_swing_height": dt * moves * swing,
            "foot_slip": dt * moves * slip,
            "soft_landing": dt * moves * landing,
            "self_collisions": dt * self_hits,
            "shank_collision": dt * shank_hits,
            "trunk_head_collision": dt * trunk_hits,
        }
        fell = np.arccos(min(max(data.xmat[self.root_id, 8], -1.0), 1.0)) > self.most_tilt
        t.note_misses(self.misses, told, own[3:5], own[2], info)
        info["command"] = told
        self.last_action[:] = action
        self.suffer_pushes(data, rng)
        self.measure_heights(data)
        return terms, {
            "fell_over": fell,
            "illegal_contact": thigh_hits > 0.0,
            "out_of_terrain_bounds": self.is_out(data),
        }

    def observation(self, data, obs):
        quat, turning = data.qpos[3:7], data.qvel[3:6]
        imu_velocity = self.imu_velocity(data)
        gravity, joints = projected_gravity(quat), data.qpos[7:] - self.pose
        obs["base_lin_vel"] = imu_velocity
        obs["base_ang_vel"] = turning
        obs["projected_gravity"] = gravity
        obs["joint_pos"] = joints + self.bias
        obs["joint_vel"] = data.qvel[6:]
        obs["actions"] = self.last_action
        obs["command"] = self.told(data)
        obs["true_base_lin_vel"] = imu_velocity
        obs["true_base_ang_vel"] = turning
        obs["true_projected_gravity"] = gravity
        obs["true_joint_pos"] = joints
        obs["true_joint_vel"] = data.qvel[6:]
        count = len(self.foot_at)
        contact, forces = np.zeros(count), np.zeros(3 * count)
        for i in range(count):
            at = self.foot_at[i]
            contact[i] = data.sensordata[at] > 0.0
            for k in range(3):
                force = data.sensordata[at + 1 + k]
                forces[3 * i + k] = np.sign(force) * np.log1p(abs(force))
        obs["foot_height"] = self.foot_height
        obs["foot_air_time"] = self.air_time
        obs["foot_contact"] = contact
        obs["foot_contact_forces"] = forces


def site_pose(model, qpos, site):
    """Finds a site of a robot with a free root and hinges in the world, by the robot's state.

    Returns:
        Its place ``(3,)`` [m] and orientation ``(4,)``.
    """
    place, pose, turned = model.site_pos[site].copy(), model.site_quat[site].copy(), np.zeros(3)
    quat, product = np.zeros(4), np.zeros(4)
    body = model.site_bodyid[site]
    while model.jnt_type[model.body_jntadr[body]] != 0:  # not the free one
        joint = model.body_jntadr[body]
        anchor = model.jnt_pos[joint]
        angle = qpos[model.jnt_qposadr[joint]]
        mujoco.mju_axisAngle2Quat(quat, model.jnt_axis[joint], angle)
        mujoco.mju_rotVecQuat(turned, place - anchor, quat)
        mujoco.mju_rotVecQuat(place, turned + anchor, model.body_quat[body])
        place += model.body_pos[body]
        mujoco.mju_mulQuat(product, quat, pose)
        mujoco.mju_mulQuat(pose, model.body_quat[body], product)
        body = model.body_parentid[body]
    mujoco.mju_rotVecQuat(turned, place, qpos[3:7])
    mujoco.mju_mulQuat(product, qpos[3:7], pose)
    return turned + qpos[:3], product


_SOLES = tuple(f"robot/{foot}_foot_collision" for foot in FEET)


class VelocityFlatGo1(Go1, Velocity, feet_count=4):
    """mjlab's Mjlab-Velocity-Flat-Unitree-Go1."""

    upright_body = "trunk"
    randomise = {
        "geom_friction": [
            between(0.3, 1.5, together=True, of=_SOLES, columns=0),
            log_uniform(1e-4, 2e-2, together=True, of=_SOLES, columns=1),
            log_uniform(1e-5, 5e-3, together=True, of=_SOLES, columns=2),
        ],
        "body_ipos": [
            shift(-0.025, 0.025, of="robot/trunk", columns=(0, 1)),
            shift(-0.03, 0.03, of="robot/trunk", columns=2),
        ],
    }

    widths = ({".*_calf_joint": 0.1, ".*": 0.05}, *[{".*_calf_joint": 0.6, ".*": 0.3}] * 2)


class VelocityFlatG1(G1, Velocity, feet_count=2):
    """mjlab's Mjlab-Velocity-Flat-Unitree-G1."""

    upright_body = "torso_link"
    body_ang_vel_weight, angular_momentum_weight, self_collisions_weight = -0.05, -0.02, -1.0
    randomise = {
        "geom_friction": G1_SOLE_FRICTION,
        "body_ipos": [
            shift(-0.025, 0.025, of="robot/torso_link", columns=(0, 1)),
            shift(-0.03, 0.03, of="robot/torso_link", columns=2),
        ],
    }

    widths = (
        {".*": 0.05},
        {
            ".*hip_pitch.*": 0.3, ".*hip_(roll|yaw).*": 0.15, ".*knee.*": 0.35,
            ".*ankle_pitch.*": 0.25, ".*ankle_roll.*": 0.1, ".*waist_yaw.*": 0.2,
            ".*waist_roll.*": 0.08, ".*waist_pitch.*": 0.1, ".*shoulder_(pitch|roll).*": 0.15,
            ".*shoulder_yaw.*": 0.1, ".*elbow.*": 0.15, ".*wrist.*": 0.3,
        },
        {
            ".*hip_pitch.*": 0.5, ".*hip_(roll|yaw).*": 0.2, ".*knee.*": 0.6,
            ".*ankle_pitch.*": 0.35, ".*ankle_roll.*": 0.15, ".*waist_yaw.*": 0.3,
            ".*waist_roll.*": 0.08, ".*waist_pitch.*": 0.2, ".*shoulder_pitch.*": 0.5,
            ".*shoulder_roll.*": 0.2, ".*shoulder_yaw.*": 0.15, ".*elbow.*": 0.35, ".*wrist.*": 0.3,
        },
    )  # fmt: skip
