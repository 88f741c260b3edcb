"""G1, T1 and the Berkeley Humanoid follow a joystick, on flat and on rough ground.

Formulas: MuJoCo Playground 0.2, joystick.py and base.py in _src/locomotion's folders of g1, t1
and berkeley_humanoid.
"""

import math

import numpy as np

from pyfastenv.suites.playground import terms as t
from pyfastenv.suites.playground.legged import TORSO
from pyfastenv.suites.playground.walkers import STATE, Walker
from pyfastenv.tasks.language.commands import MOTION
from pyfastenv.tasks.language.fields import command
from pyfastenv.tasks.language.noise import uniform
from pyfastenv.tasks.language.rewards import reward_terms

PRIVILEGED = (
    "true_gyro", "accelerometer", "true_gravity", "true_linvel", "angvel", "true_joints",
    "true_joint_velocities", "root_height", "torques", "contacts", "feet_velocities", "air_time",
)  # fmt: skip
# of most of them; a term that a robot has not in Playground: 0
WEIGHTS = {
    "tracking_lin_vel": 1.0, "tracking_ang_vel": 0.5, "lin_vel_z": 0.0, "ang_vel_xy": -0.15,
    "orientation": -1.0, "base_height": 0.0, "torques": 0.0, "action_rate": 0.0, "energy": 0.0,
    "dof_acc": 0.0, "dof_vel": 0.0, "feet_slip": -0.25, "feet_clearance": 0.0, "feet_height": 0.0,
    "feet_air_time": 2.0, "feet_phase": 1.0, "stand_still": 0.0, "alive": 0.0, "termination": 0.0,
    "collision": 0.0, "contact_force": 0.0, "joint_deviation_hip": -0.25,
    "joint_deviation_knee": -0.1, "dof_pos_limits": -1.0, "pose": -1.0, "feet_distance": 0.0,
}  # fmt: skip


def step(self, data, action, info, rng):
    """A step of every biped's, under reward_terms with the weights of each."""
    self.begin(data, action, rng)
    self.remember_feet()
    self.simulate(data)
    self.feel(data)
    self.walk_on()
    told, dt = self.velocity, self.dt
    linvel, angvel = data.sensor("local_linvel").data, data.sensor("gyro").data
    angles, forces = data.qpos[7:], data.actuator_force
    command_size = t.length(told)
    over_ground = t.length(data.sensor("global_linvel").data[:2])
    heights = self.heights(data)
    path_error = t.off_path(heights, self.phase, self.max_foot_height)
    flight = t.flight(self.air_time, self.landed, 0.2, 0.3)
    fallen, tangled = self.upright(data) < 0.0, self.is_tangled(data)
    terms = {
        "tracking_lin_vel": dt * t.closeness(t.distance(told[:2], linvel), self.tracking_sigma),
        "tracking_ang_vel": dt * t.closeness(np.square(told[2] - angvel[2]), self.tracking_sigma),
        "lin_vel_z": dt * self.rising(data),
        "ang_vel_xy": dt * self.rolling(data),
        "orientation": dt * self.tilt(data),
        "base_height": dt * np.square(data.qpos[2] - self.base_height_target),
        "torques": dt * t.sizes(forces),
        "action_rate": dt * t.distance(action, self.last_action),
        "energy": dt * t.power(data.qvel[6:], forces),
        "dof_acc": dt * t.squares(data.qacc[6:]),
        "dof_vel": dt * t.squares(data.qvel[6:]),
        "feet_slip": dt * over_ground * t.sizes(self.contact),
        "feet_clearance": dt * t.clearance(self.ground_speeds(data), heights, self.max_foot_height),
        "feet_height": dt * t.swing_error(self.swing_peak, self.landed, self.max_foot_height),
        "feet_air_time": dt * (command_size > self.least_walk) * flight,
        "feet_phase": dt * self.is_walking(data, command_size) * t.closeness(path_error, 0.01),
        "stand_still": dt * (command_size < self.most_stand) * t.apart(angles, self.pose),
        "alive": dt * 1.0,
        "termination": dt * (fallen or tangled),
        "collision": dt * self.collides(data),
        "contact_force": dt * self.overload(data),
        "joint_deviation_hip": dt * self.hips_off(t.deviation(angles, self.pose, self.is_hip)),
        "joint_deviation_knee": dt * t.deviation(angles, self.pose, self.is_knee),
        "dof_pos_limits": dt * t.beyond(angles, self.lowest, self.highest),
        "pose": dt * t.weighted(angles, self.pose, self.pose_weights),
        "feet_distance": dt * self.feet_too_near(data),
    }
    return terms, {"fallen": fallen, "tangled": tangled}


def walks(least=-math.inf, **weights):
    """The step, rewarded with WEIGHTS but for these."""
    return reward_terms(least, **{**WEIGHTS, **weights})(step)


class Biped(Walker):
    """G1, T1 and the Berkeley Humanoid: their rewards.

    Attributes:
        base_height_target: Of the root [m].
        max_contact_force: Of a foot, beyond which it costs [N].
        least_walk: Size of a command from which on strides are rewarded.
        most_stand: Size of a command below which the robot is to stand.
        hips, knees: Joints that are to stay at the default pose.
    """

    observation_dict = {"policy": STATE, "critic": (*STATE, *PRIVILEGED)}
    base_height_target, max_contact_force, least_walk, most_stand = 0.5, 500.0, 0.1, 0.1
    hips: tuple[str, ...] = ()
    knees: tuple[str, ...] = ()

    def setup(self):
        super().setup()
        names = [self.model.joint(i).name for i in range(1, self.model.njnt)]
        self.is_hip = np.array([float(name in self.hips) for name in names])
        self.is_knee = np.array([float(name in self.knees) for name in names])

    def observation(self, data, obs):
        super().observation(data, obs)
        self.show_truth(data, obs)
        obs["root_height"] = data.qpos[2]
        obs["torques"] = data.actuator_force
        obs["contacts"] = self.standing(data)
        obs["feet_velocities"] = self.feet_velocities(data)
        obs["air_time"] = self.air_time

    # ---- where robots differ -----------------------------------------------------------------

    def upright(self, data):
        """The height of the trunk's upright axis; the robot falls below 0."""
        return data.sensor("upvector").data[2]

    def tilt(self, data):
        """Squared error of the trunk's upright axis."""
        return t.squares(data.sensor("upvector").data[:2])

    def rising(self, data):
        """Squared vertical speed [m²/s²]."""
        return np.square(data.sensor("global_linvel").data[2])

    def rolling(self, data):
        """Squared speed of turning about level axes [rad²/s²]."""
        return t.squares(data.sensor("global_angvel").data[:2])

    def is_tangled(self, data):
        """Whether limbs touch so that the episode ends."""
        return False

    def collides(self, data):
        """1 where limbs touch that cost, else 0."""
        return 0.0

    def overload(self, data):
        """The feet's forces beyond ``max_contact_force`` [N]."""
        return 0.0

    def feet_too_near(self, data):
        """How much nearer than wanted the feet are to each other [m]."""
        return 0.0

    def is_walking(self, data, command_size):
        """1 where feet are rewarded for following the clock, else 0."""
        return 1.0

    def hips_off(self, off):
        """Cost of the hips' deviation, ``off`` [rad]."""
        return off * (abs(self.velocity[1]) > 0.1)


class BerkeleyHumanoidJoystickFlatTerrain(Biped, joints=12, feet=2):
    """The Berkeley Humanoid walks as it is told."""

    scene = "locomotion/berkeley_humanoid/xmls/scene_mjx_feetonly_flat_terrain.xml"
    trunk, soles = "torso", ("l_foot", "r_foot")
    stands = (("l_foot1",), ("r_foot1",))
    hips = ("LL_HR", "LL_HAA", "LR_HR", "LR_HAA")
    knees = ("LL_KFE", "LR_KFE")
    pose_weights = (1.0, 1.0, 0.01, 0.01, 1.0, 1.0) * 2
    tracking_sigma, max_foot_height = 0.5, 0.1
    observation_noise = {
        **Walker.observation_noise,
        "joints": uniform(
            (-0.03, -0.03, -0.03, -0.05, -0.08, -0.03) * 2, (0.03, 0.03, 0.03, 0.05, 0.08, 0.03) * 2
        ),
    }
    velocity = command(low=-1.0, high=1.0, size=3, every=10.02, standing=0.1, names=MOTION)
    step = walks(0.0, torques=-2.5e-5, action_rate=-0.01, termination=-1.0)


class BerkeleyHumanoidJoystickRoughTerrain(BerkeleyHumanoidJoystickFlatTerrain):
    """The Berkeley Humanoid walks over a height field."""

    scene = "locomotion/berkeley_humanoid/xmls/scene_mjx_feetonly_rough_terrain.xml"


class T1JoystickFlatTerrain(Biped, joints=23, feet=2):
    """Booster's T1 walks as it is told; its clock stops where it is to stand."""

    scene = "locomotion/t1/xmls/scene_mjx_feetonly_flat_terrain.xml"
    trunk, soles = "Trunk", ("left_foot", "right_foot")
    stands = tuple(tuple(f"{side}_foot_{i}" for i in range(1, 5)) for side in ("left", "right"))
    collisions = (("left_foot", "right_foot"),)
    hips = ("Left_Hip_Roll", "Left_Hip_Yaw", "Right_Hip_Roll", "Right_Hip_Yaw")
    knees = ("Left_Knee_Pitch", "Right_Knee_Pitch")
    pose_weights = (
        *(1.0, 1.0),  # head
        *(0.1, 1.0, 1.0, 1.0) * 2,  # arms
        1.0,  # waist
        *(0.01, 1.0, 1.0, 0.01, 1.0, 1.0) * 2,  # legs
    )
    action_scale, gait, push_speed, base_height_target = 1.0, (1.25, 1.75), (0.1, 1.0), 0.665
    ccd_iterations, clock_stops = 10, True
    velocity = command(
        low=(-1.0, -0.8, -1.0), high=(1.0, 0.8, 1.0), every=10.02, standing=0.1, names=MOTION
    )
    step = walks(0.0, alive=0.25, joint_deviation_hip=-0.1, feet_distance=-1.0, collision=-1.0)

    def rising(self, data):
        return np.square(data.sensor("local_linvel").data[2])

    def rolling(self, data):
        return t.squares(data.sensor("gyro").data[:2])

    def collides(self, data):
        return self.touching(data)[0]

    def feet_too_near(self, data):
        left, right = data.site_xpos[self.sole_ids[0]], data.site_xpos[self.sole_ids[1]]
        yaw = np.arctan2(data.site_xmat[self.imu_id, 3], data.site_xmat[self.imu_id, 0])
        apart = abs(np.cos(yaw) * (left[1] - right[1]) - np.sin(yaw) * (left[0] - right[0]))
        return min(max(0.2 - apart, 0.0), 0.1)


class T1JoystickRoughTerrain(T1JoystickFlatTerrain):
    """Booster's T1 walks over a height field."""

    scene = "locomotion/t1/xmls/scene_mjx_feetonly_rough_terrain.xml"


class G1JoystickFlatTerrain(Biped, joints=29, feet=2):
    """Unitree's G1 walks as it is told; legs that touch each other end the episode, too."""

    scene = "locomotion/g1/xmls/scene_mjx_feetonly_flat_terrain.xml"
    keyframe, trunk, imu = "knees_bent", "torso_link", "imu_in_pelvis"
    soles = ("left_foot", "right_foot")
    stands = (("left_foot",), ("right_foot",))
    sensors = (
        *(*TORSO, "upvector_torso", "global_linvel_torso", "global_angvel_torso"),
        *("left_foot_force", "right_foot_force"),
    )
    collisions = (
        *(("right_foot", "left_foot"), ("left_foot", "right_shin"), ("right_foot", "left_shin")),
        *(("left_hand_collision", "left_thigh"), ("right_hand_collision", "right_thigh")),
    )
    hips = tuple(
        f"{side}_hip_{axis}_joint" for side in ("left", "right") for axis in ("roll", "yaw")
    )
    knees = ("left_knee_joint", "right_knee_joint")
    pose_weights = (1.0,) * 29
    max_foot_height, least_walk, most_stand = 0.15, -1.0, 0.01
    velocity = command(
        low=(-1.0, -0.5, -1.0), high=(1.0, 0.5, 1.0), every=10.02, standing=0.1, names=MOTION
    )
    step = walks(
        tracking_ang_vel=0.75,
        orientation=-2.0,
        stand_still=-1.0,
        termination=-100.0,
        collision=-0.1,
        contact_force=-0.01,
        pose=-0.1,
    )

    def prepare(self, spec):
        """The pelvis' sensors have the names that other robots' have."""
        for sensor in spec.sensors:
            sensor.name = sensor.name.removesuffix("_pelvis")

    def upright(self, data):
        return data.sensor("upvector_torso").data[2]

    def tilt(self, data):
        up = data.sensor("upvector_torso").data
        return np.square(up[0] - 0.073) + np.square(up[1]) + np.square(up[2] - 1.0)

    def rising(self, data):
        torso = data.sensor("global_linvel_torso").data[2]
        return np.square(torso) + np.square(data.sensor("global_linvel").data[2])

    def rolling(self, data):
        return t.squares(data.sensor("global_angvel_torso").data[:2])

    def is_tangled(self, data):
        return t.sizes(self.touching(data)[:3]) > 0.0

    def collides(self, data):
        return 1.0 * (t.sizes(self.touching(data)[3:]) > 0.0)

    def overload(self, data):
        left = abs(data.sensor("left_foot_force").data[2]) - self.max_contact_force
        right = abs(data.sensor("right_foot_force").data[2]) - self.max_contact_force
        return max(left, 0.0) + max(right, 0.0)

    def is_walking(self, data, command_size):
        speed = t.length(data.sensor("global_linvel").data[:2])
        turn = abs(data.sensor("global_angvel").data[2])
        return 1.0 * (speed > 0.1 or turn > 0.1 or command_size > 0.01)

    def hips_off(self, off):
        # Playground multiplies a column of errors by a row of weights, 1 1 1 1 or, to the left,
        # 0 1 0 1, and adds up the matrix
        return off * (2.0 if self.velocity[1] > 0.1 else 4.0)


class G1JoystickRoughTerrain(G1JoystickFlatTerrain):
    """Unitree's G1 walks over a height field."""

    scene = "locomotion/g1/xmls/scene_mjx_feetonly_rough_terrain.xml"
