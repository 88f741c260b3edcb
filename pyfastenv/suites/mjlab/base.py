"""The base of mjlab's tasks: its robots' models, servos and starts.

Numbers: mjlab 1.6, asset_zoo/robots/unitree_{go1,g1} and tasks/velocity/velocity_env_cfg.py.
"""

import re

import gymnasium
import mujoco
import numpy as np

from pyfastenv.suites.packages import package_file
from pyfastenv.tasks.language.fields import memory
from pyfastenv.tasks.language.task import Task

_INSTALL = "--no-deps mjlab==1.6.0"  # which pins another MuJoCo, and asks for Warp and a torch
_RATE, _DAMPING_RATIO = 10 * 2.0 * 3.1415926535, 2.0  # of mjlab's servos [rad/s]
_FOUND, _FORCE = (
    1 << int(bit)
    for bit in (mujoco.mjtConDataField.mjCONDATA_FOUND, mujoco.mjtConDataField.mjCONDATA_FORCE)
)
_NO_REDUCTION, _NET_FORCE = 0, 3  # mjSpec's numbers of reduce="none" and "netforce"
_GEOM, _BODY, _TREE = mujoco.mjtObj.mjOBJ_GEOM, mujoco.mjtObj.mjOBJ_BODY, mujoco.mjtObj.mjOBJ_XBODY


def by_name(names, values, default):
    """An array with a number for each name: that of the first pattern which the whole name fits."""
    found = [
        next((value for pattern, value in values.items() if re.fullmatch(pattern, name)), default)
        for name in names
    ]
    return np.array(found, np.float64)


def planetary(rotors, gears):
    """Inertia of a motor behind a planetary gear of two stages [kg m²]."""
    return rotors[0] * (gears[0] * gears[1]) ** 2 + rotors[1] * gears[1] ** 2 + rotors[2]


class Robot(Task):
    """A robot of mjlab's on a plane, moved by servos.

    What a subclass says: ``joints``, how many; the other class attributes. A step is 20 ms.

    Attributes:
        file: The model's, in mjlab's folder asset_zoo/robots.
        root: The body that is free; the site of its sensors is ``imu``.
        feet: Sites under the feet, and what of the robot a foot is: a geom, or a body.
        soles: Geoms that may touch the ground with friction: a pattern.
        motors: For each kind, joints (a pattern), inertia [kg m²], greatest torque [Nm].
        start, pose: The root's height [m]; angles of joints by patterns [rad], 0 of the others.
        encoder_bias: Greatest error of joints' encoders, one per joint and episode [rad].
    """

    frame_skip = 4
    file, root, imu = "", "", ""
    feet: tuple[tuple[str, str], ...] = ()
    motors: tuple[tuple[str, float, float], ...] = ()
    start, encoder_bias, soft_limit = 0.0, 0.015, 0.9
    soles = ""

    def __init_subclass__(cls, joints=0, **arguments):
        for name in ("last_action", "bias") if joints else ():
            setattr(cls, name, memory(joints))
        if joints:
            cls.action_space = gymnasium.spaces.Box(-np.inf, np.inf, (joints,), np.float64)
        super().__init_subclass__(**arguments)

    def model(self):
        """mjlab's scene: the ground, the robot, its servos and what its tasks measure."""
        robot = mujoco.MjSpec.from_file(
            str(package_file("mjlab", f"asset_zoo/robots/{self.file}", _INSTALL))
        )
        for sensor in list(robot.sensors):
            robot.delete(sensor)
        self.prepare(robot)
        spec = mujoco.MjSpec()
        ground = spec.worldbody.add_body(name="terrain")
        ground.add_geom(name="terrain", type=mujoco.mjtGeom.mjGEOM_PLANE, size=(0, 0, 0.01))
        spec.attach(robot, prefix="robot/", frame=spec.worldbody.add_frame())
        for site, foot in self.feet:
            kind = _GEOM if foot.endswith("_collision") else _TREE
            self.add_contacts(spec, site, kind, foot, _FOUND | _FORCE, _NET_FORCE, "terrain")
        self.measure(spec)
        model = spec.compile()
        option = model.opt
        option.timestep, option.iterations, option.ls_iterations = 0.005, 10, 20
        option.integrator = mujoco.mjtIntegrator.mjINT_IMPLICITFAST
        option.ccd_iterations = 50
        option.disableflags |= mujoco.mjtDisableBit.mjDSBL_MIDPHASE  # which MuJoCo Warp has not
        self.choose(option)
        return model

    def add_contacts(self, spec, name, kind, of, data, reduce, other):
        """Adds a sensor of contacts between a part of the robot and another."""
        sensor = spec.add_sensor(name=name, type=mujoco.mjtSensor.mjSENS_CONTACT)
        sensor.objtype, sensor.objname, sensor.intprm[:3] = kind, f"robot/{of}", (data, reduce, 1)
        sensor.reftype, sensor.refname = _BODY if other == "terrain" else _TREE, other

    def prepare(self, robot):
        """Gives the robot what mjlab's configuration has and its file has not."""
        joints = [joint for joint in robot.joints if joint.type != mujoco.mjtJoint.mjJNT_FREE]
        for pattern, inertia, torque in self.motors:
            for joint in joints:
                if re.fullmatch(pattern, joint.name):
                    add_servo(robot, joint, inertia, torque)
        for geom in robot.geoms:
            collides = re.fullmatch(r".*_collision\d*", geom.name) is not None
            is_sole = re.fullmatch(self.soles, geom.name) is not None
            geom.contype = geom.conaffinity = int(collides)
            geom.priority = int(is_sole)
            if collides:
                self.touch(geom, is_sole)

    def touch(self, geom, is_sole):
        """Says how a geom that collides does."""

    def measure(self, spec):
        """Adds what a robot's tasks measure besides."""

    def choose(self, option):
        """Sets options of the physics."""

    def angles(self, joints):
        """The default pose by the joints' names."""
        return by_name(joints, {}, 0.0)

    def setup(self):
        model = self.model
        joints = [model.joint(i).name.removeprefix("robot/") for i in range(1, model.njnt)]
        self.home = np.concatenate(((0.0, 0.0, self.start, 1.0, 0.0, 0.0, 0.0), self.angles(joints)))
        self.pose = self.home[7:].copy()
        low, high = model.jnt_range[1:].T
        middle, reach = 0.5 * (low + high), 0.5 * self.soft_limit * (high - low)
        self.lowest, self.highest = middle - reach, middle + reach
        self.joint_of = model.actuator_trnid[:, 0] - 1  # servos stand in the order of motors
        scale = 0.25 * model.actuator_forcerange[:, 1] / model.actuator_gainprm[:, 0]
        self.action_scale = np.zeros(len(joints))
        self.action_scale[self.joint_of] = scale
        self.imu_place = model.site(f"robot/{self.imu}").pos.copy()
        self.root_id = model.body(f"robot/{self.root}").id
        self.foot_sites = np.array([model.site(f"robot/{site}").id for site, _ in self.feet])
        self.foot_at = np.array([model.sensor(site).adr[0] for site, _ in self.feet])

    def control(self, action, ctrl):
        for i in range(len(ctrl)):
            joint = self.joint_of[i]
            target = self.pose[joint] + self.action_scale[joint] * action[joint]
            ctrl[i] = target - self.bias[joint]

    def begin_biased(self, data, rng):
        """Begins an episode: the default pose, errors of the encoders."""
        data.qpos[:] = self.home
        for i in range(len(self.bias)):
            self.bias[i] = rng.uniform(-self.encoder_bias, self.encoder_bias)


def add_servo(robot, joint, inertia, torque):
    """Adds mjlab's position servo, whose gains follow from the motor's inertia [kg m²]."""
    stiffness = inertia * _RATE**2
    joint.armature = inertia
    servo = robot.add_actuator(name=joint.name, target=joint.name)
    servo.trntype = mujoco.mjtTrn.mjTRN_JOINT
    servo.gaintype, servo.biastype = mujoco.mjtGain.mjGAIN_FIXED, mujoco.mjtBias.mjBIAS_AFFINE
    servo.gainprm[0], servo.biasprm[1] = stiffness, -stiffness
    servo.biasprm[2] = -2.0 * _DAMPING_RATIO * inertia * _RATE
    servo.inheritrange, servo.ctrllimited, servo.forcelimited = 0.0, False, True
    servo.forcerange[:] = -torque, torque


FEET = ("FR", "FL", "RR", "RL")


class Go1(Robot, joints=12):
    """Unitree's Go1, all of whose parts collide."""

    file, root, imu = "unitree_go1/xmls/go1.xml", "trunk", "imu"
    feet = tuple((foot, f"{foot}_foot_collision") for foot in FEET)
    soles = ".*_foot_collision"
    motors = (
        (".*_(hip|thigh)_joint", 0.000111842 * 6.0**2, 23.7),
        (".*_calf_joint", 0.000111842 * 9.0**2, 35.55),
    )
    start = 0.278

    def touch(self, geom, is_sole):
        geom.condim = 6 if is_sole else 1
        geom.solref[:] = 0.01, 1
        if is_sole:
            geom.friction[:] = 1.0, 5e-3, 5e-4

    def choose(self, option):
        option.cone, option.impratio = mujoco.mjtCone.mjCONE_ELLIPTIC, 10.0

    def angles(self, joints):
        bent = {".*R_hip_joint": 0.1, ".*L_hip_joint": -0.1}
        return by_name(joints, {".*thigh_joint": 0.9, ".*calf_joint": -1.8, **bent}, 0.0)


_5020 = planetary((0.139e-4, 0.017e-4, 0.169e-4), (1 + 46 / 18, 1 + 56 / 16))
_7520_14 = planetary((0.489e-4, 0.098e-4, 0.533e-4), (4.5, 1 + 48 / 22))
_7520_22 = planetary((0.489e-4, 0.109e-4, 0.738e-4), (4.5, 5.0))
_4010 = planetary((0.068e-4, 0.0, 0.0), (5.0, 5.0))


class G1(Robot, joints=29):
    """Unitree's G1, all of whose parts collide, with each other, too."""

    file, root, imu = "unitree_g1/xmls/g1.xml", "pelvis", "imu_in_pelvis"
    feet = tuple((f"{side}_foot", f"{side}_ankle_roll_link") for side in ("left", "right"))
    soles = "(left|right)_foot[1-7]_collision"
    motors = (
        (".*_(elbow|shoulder_pitch|shoulder_roll|shoulder_yaw|wrist_roll)_joint", _5020, 25.0),
        (".*_hip_(pitch|yaw)_joint|waist_yaw_joint", _7520_14, 88.0),
        (".*_(hip_roll|knee)_joint", _7520_22, 139.0),
        (".*_wrist_(pitch|yaw)_joint", _4010, 5.0),
        ("waist_(pitch|roll)_joint", 2.0 * _5020, 50.0),  # two motors each
        (".*_ankle_(pitch|roll)_joint", 2.0 * _5020, 50.0),
    )
    start = 0.76

    def touch(self, geom, is_sole):
        geom.condim = 3 if is_sole else 1
        if is_sole:
            geom.friction[0] = 0.6

    def measure(self, spec):
        super().measure(spec)
        self.add_contacts(spec, "self_contact", _TREE, "pelvis", _FORCE, _NO_REDUCTION, "robot/pelvis")

    def angles(self, joints):
        legs = {".*_hip_pitch_joint": -0.312, ".*_knee_joint": 0.669, ".*_ankle_pitch_joint": -0.363}
        arms = {
            ".*_elbow_joint": 0.6,
            "left_shoulder_roll_joint": 0.2,
            "right_shoulder_roll_joint": -0.2,
            ".*_shoulder_pitch_joint": 0.2,
        }
        return by_name(joints, legs | arms, 0.0)
