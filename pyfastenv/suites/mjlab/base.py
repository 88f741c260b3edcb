"""The base of mjlab's tasks: its robots' models and servos.

Numbers: mjlab 1.6, asset_zoo/robots/unitree_{go1,g1}, tasks/velocity/velocity_env_cfg.py and
tasks/tracking/tracking_env_cfg.py.
"""

import re
from typing import Any

import gymnasium
import mujoco
import numpy as np

from pyfastenv.suites.packages import package_file
from pyfastenv.suites.playground import terms as t
from pyfastenv.tasks.language.fields import memory
from pyfastenv.tasks.language.helpers import in_frame
from pyfastenv.tasks.language.randomise import uniform as between
from pyfastenv.tasks.language.task import Task

_INSTALL = "--no-deps mjlab==1.6.0"  # which pins another MuJoCo, and asks for Warp and a torch
_DATA = mujoco.mjtConDataField
_FOUND, _FORCE = 1 << int(_DATA.mjCONDATA_FOUND), 1 << int(_DATA.mjCONDATA_FORCE)
_NO_REDUCTION, _NET_FORCE = 0, 3  # mjSpec's numbers of reduce="none" and "netforce"
_GEOM, _BODY, _TREE = mujoco.mjtObj.mjOBJ_GEOM, mujoco.mjtObj.mjOBJ_BODY, mujoco.mjtObj.mjOBJ_XBODY
TOLERANCE = 1e-6  # mjlab's, of times [s]
OWN, SHANKS, TRUNK, THIGHS = range(4)
_HARD = 10.0  # force of a contact that counts [N]
_RATE, _DAMPING_RATIO = 10 * 2.0 * 3.1415926535, 2.0  # of mjlab's servos [rad/s]


def by_name(names, values, default=0.0):
    """An array with a number for each name: that of the first pattern which the whole name fits."""
    found = [
        next((value for pattern, value in values.items() if re.fullmatch(pattern, name)), default)
        for name in names
    ]
    return np.array(found, np.float64)


class Robot(Task):
    """A robot of mjlab's, moved by servos and pushed. A step is 20 ms.

    What a subclass says: ``joints``, how many; the other class attributes.

    Attributes:
        file: The model's, in mjlab's folder asset_zoo/robots.
        root, imu: The body that is free; the site of its sensors.
        feet: Sites under the feet, and what of the robot each foot is: a geom, or a body.
        soles: Geoms that touch the ground with friction: a pattern.
        of_parts, of_soles: How geoms that collide do, and soles besides.
        options: Of the physics, besides those of all.
        motors: For each kind, joints (a pattern), inertia [kg m²], greatest torque [Nm].
        start, bent: The root's height [m]; the default pose by patterns of joints [rad], else 0.
        encoder_bias: Greatest error of joints' encoders, one per joint and episode [rad].
        soft_limit: Share of joints' ranges beyond which they cost, about the range's middle.
        touches: Sensors of contacts, and what those harder than 10 N count as: ``OWN``, among the
            robot's parts, or ``SHANKS``, ``TRUNK`` or ``THIGHS``, of the geom of this name with the
            ground.
        every_substep: Whether contacts are looked at after every substep, as in mjlab, and not
            after the last one alone. It leaves physics to mj_step.
        push_every: The least and the most time between pushes [s].
        push_velocity: The most that a push adds to the root's velocities, along the world's axes
            and about them [m/s, rad/s]; 0: no pushes.
    """

    frame_skip = 4
    file, root, imu, soles = "", "", "", ""
    feet: tuple[tuple[str, str], ...] = ()
    of_parts: dict[str, Any] = {}
    of_soles: dict[str, Any] = {}
    options: dict[str, Any] = {}
    motors: tuple[tuple[str, float, float], ...] = ()
    bent: dict[str, float] = {}
    touches: dict[str, int] = {}
    start, encoder_bias, soft_limit, every_substep = 0.0, 0.015, 0.9, False
    push_every, push_velocity = (1.0, 3.0), (0.5, 0.5, 0.4, 0.52, 0.52, 0.78)

    push_in = memory()

    def __init_subclass__(cls, joints=0, **arguments):
        if joints:
            cls.last_action, cls.bias = memory(joints), memory(joints)
            cls.action_space = gymnasium.spaces.Box(-np.inf, np.inf, (joints,), np.float64)
        super().__init_subclass__(**arguments)

    def model(self):
        """mjlab's scene: the ground, the robot, its servos and what its tasks measure."""
        path = package_file("mjlab", f"asset_zoo/robots/{self.file}", _INSTALL)
        robot, spec = mujoco.MjSpec.from_file(str(path)), mujoco.MjSpec()
        for sensor in list(robot.sensors):
            robot.delete(sensor)
        for pattern, inertia, torque in self.motors:
            for joint in robot.joints:
                if re.fullmatch(pattern, joint.name):
                    add_servo(robot, joint, inertia, torque)
        for geom in robot.geoms:
            collides = re.fullmatch(r".*_collision\d*", geom.name) is not None
            geom.contype = geom.conaffinity = int(collides)
            is_sole = re.fullmatch(self.soles, geom.name) is not None
            geom.priority = int(is_sole)
            touch = self.of_parts | (self.of_soles if is_sole else {})
            for name, value in touch.items() if collides else ():
                setattr(geom, name, value)
        self.lay_ground(spec, spec.worldbody.add_body(name="terrain"))
        spec.attach(robot, prefix="robot/", frame=spec.worldbody.add_frame())
        self.measure(spec)
        model = spec.compile()
        options = {"timestep": 0.005, "iterations": 10, "ls_iterations": 20, "ccd_iterations": 50}
        for name, value in (options | self.options).items():
            setattr(model.opt, name, value)
        model.opt.integrator = mujoco.mjtIntegrator.mjINT_IMPLICITFAST
        model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_MIDPHASE  # MuJoCo Warp has none
        return model

    def lay_ground(self, spec, body):
        """Adds the ground to its body: a plane."""
        body.add_geom(name="terrain", type=mujoco.mjtGeom.mjGEOM_PLANE, size=(0, 0, 0.01))

    def measure(self, spec):
        """Adds the sensors: of each foot's contact with the ground, whether there is one and its
        force, and of ``touches``, the first one's force."""
        for site, foot in self.feet:
            kind = _GEOM if foot.endswith("_collision") else _TREE
            data = _FOUND | _FORCE, _NET_FORCE, 1
            add_contacts(spec, site, data, kind, foot, _BODY, "terrain")
        for name, what in self.touches.items():
            all_of_it = _TREE, self.root, _TREE, f"robot/{self.root}"
            ends = all_of_it if what == OWN else (_GEOM, name, _BODY, "terrain")
            add_contacts(spec, name, (_FORCE, _NO_REDUCTION, 1), *ends)

    def joint_names(self):
        """The joints' names in the robot's file."""
        return [self.model.joint(i).name.removeprefix("robot/") for i in range(1, self.model.njnt)]

    def setup(self):
        model = self.model
        self.pose = by_name(self.joint_names(), self.bent)
        self.home = np.concatenate(((0.0, 0.0, self.start, 1.0, 0.0, 0.0, 0.0), self.pose))
        low, high = model.jnt_range[1:].T
        middle, reach = 0.5 * (low + high), 0.5 * self.soft_limit * (high - low)
        self.lowest, self.highest = middle - reach, middle + reach
        self.joint_of = model.actuator_trnid[:, 0] - 1  # servos stand in the order of motors
        self.action_scale = np.zeros(len(self.pose))
        reaches = model.actuator_forcerange[:, 1] / model.actuator_gainprm[:, 0]
        self.action_scale[self.joint_of] = 0.25 * reaches
        self.imu_place = model.site(f"robot/{self.imu}").pos.copy()
        self.root_id = model.body(f"robot/{self.root}").id
        self.foot_sites = np.array([model.site(f"robot/{site}").id for site, _ in self.feet])
        self.foot_at = np.array([model.sensor(site).adr[0] for site, _ in self.feet])
        self.touch_kind = np.array([*self.touches.values()] or [-1])
        self.touch_at = np.array([model.sensor(name).adr[0] for name in self.touches] or [0])

    def control(self, action, ctrl):
        for i in range(len(ctrl)):
            joint = self.joint_of[i]
            target = self.pose[joint] + self.action_scale[joint] * action[joint]
            ctrl[i] = target - self.bias[joint]

    def feel(self, data, dt):
        """Looks at contacts after some substeps."""

    def touching(self, data):
        """Which of ``touches`` there are, 0 or 1, ``(4,)``."""
        found = np.zeros(4)
        for i in range(len(self.touch_at)):
            at, kind = self.touch_at[i], self.touch_kind[i]
            if kind >= 0 and t.length(data.sensordata[at : at + 3]) > _HARD:
                found[kind] = 1.0
        return found

    def advance(self, data, action):
        """Runs the physics; counts the substeps in which there are ``touches``, ``(4,)``."""
        if not self.every_substep:
            self.simulate(data)
            self.feel(data, self.dt)
            return self.frame_skip * self.touching(data)
        hits, ctrl = np.zeros(4), np.zeros(len(action))
        self.control(action, ctrl)
        for _ in range(self.frame_skip):
            self.simulate(data, ctrl, 1)
            self.feel(data, self.dt / self.frame_skip)
            hits += self.touching(data)
        return hits

    def suffer_pushes(self, data, rng):
        """Sets the root's velocity where a push is due: that of the last substep's start, more."""
        self.push_in -= self.dt
        if self.push_in < TOLERANCE and t.sizes(self.push_velocity) > 0.0:
            self.push_in = rng.uniform(self.push_every[0], self.push_every[1])
            velocity, change = np.zeros(6), np.zeros(6)
            mujoco.mj_objectVelocity(self.model, data, _TREE, self.root_id, velocity, 0)
            for i in range(6):
                change[i] = rng.uniform(-self.push_velocity[i], self.push_velocity[i])
            data.qvel[:3] = velocity[3:] + change[:3]
            data.qvel[3:6] = in_frame(data.qpos[3:7], velocity[:3] + change[3:])

    def imu_velocity(self, data):
        """The velocity of the robot's sensors in their frame, in the new state."""
        velocity = in_frame(data.qpos[3:7], data.qvel[:3])
        return velocity + np.cross(data.qvel[3:6], self.imu_place)


def yaw_of(quat):
    """An orientation's turn about the upright axis, the last of three that make it up [rad]."""
    w, x, y, z = quat[0], quat[1], quat[2], quat[3]
    return np.arctan2(2.0 * (x * y + w * z), 1.0 - 2.0 * (y * y + z * z))


def body_poses(model, qpos):
    """Where the bodies of a robot with a free root and hinges are, by its state: ``mj_kinematics``.

    Returns:
        ``(nbody, 3)`` [m], ``(nbody, 4)``: places in the world, and quaternions.
    """
    places, turns = np.zeros((model.nbody, 3)), np.zeros((model.nbody, 4))
    turned, own, quat, turns[0, 0] = np.zeros(3), np.zeros(4), np.zeros(4), 1.0
    for body in range(1, model.nbody):
        joint, parent = model.body_jntadr[body], model.body_parentid[body]
        if joint >= 0 and model.jnt_type[joint] == 0:  # the free one
            places[body], turns[body] = qpos[:3], qpos[3:7]
            continue
        mujoco.mju_rotVecQuat(turned, model.body_pos[body], turns[parent])
        places[body] = places[parent] + turned
        mujoco.mju_mulQuat(quat, turns[parent], model.body_quat[body])
        if joint >= 0:
            mujoco.mju_rotVecQuat(turned, model.jnt_pos[joint], quat)
            places[body] += turned
            angle = qpos[model.jnt_qposadr[joint]]
            mujoco.mju_axisAngle2Quat(own, model.jnt_axis[joint], angle)
            mujoco.mju_mulQuat(turns[body], quat, own)
            mujoco.mju_rotVecQuat(turned, model.jnt_pos[joint], turns[body])
            places[body] -= turned
        else:
            turns[body] = quat
    return places, turns


def add_contacts(spec, name, data, kind, part, other_kind, other):
    """Adds a sensor of contacts between a part of the robot and another."""
    sensor = spec.add_sensor(name=name, type=mujoco.mjtSensor.mjSENS_CONTACT, intprm=data)
    sensor.objtype, sensor.objname = kind, f"robot/{part}"
    sensor.reftype, sensor.refname = other_kind, other


def add_servo(robot, joint, inertia, torque):
    """Adds mjlab's position servo, whose gains follow from the motor's inertia [kg m²]."""
    servo = robot.add_actuator(name=joint.name, target=joint.name)
    servo.trntype = mujoco.mjtTrn.mjTRN_JOINT
    servo.gaintype, servo.biastype = mujoco.mjtGain.mjGAIN_FIXED, mujoco.mjtBias.mjBIAS_AFFINE
    servo.gainprm[0] = stiffness = inertia * _RATE**2
    servo.biasprm[1:3] = -stiffness, -2.0 * _DAMPING_RATIO * inertia * _RATE
    servo.ctrllimited, servo.forcelimited, servo.forcerange[:] = False, True, (-torque, torque)
    joint.armature = inertia


def planetary(rotors, gears):
    """Inertia of a motor behind a planetary gear of two stages [kg m²]."""
    return rotors[0] * (gears[0] * gears[1]) ** 2 + rotors[1] * gears[1] ** 2 + rotors[2]


FEET = ("FR", "FL", "RR", "RL")


class Go1(Robot, joints=12):
    """Unitree's Go1, all of whose parts collide."""

    file, root, imu = "unitree_go1/xmls/go1.xml", "trunk", "imu"
    feet = tuple((foot, f"{foot}_foot_collision") for foot in FEET)
    soles = ".*_foot_collision"
    of_parts = {"condim": 1, "solref": (0.01, 1)}
    of_soles = {"condim": 6, "friction": (1.0, 5e-3, 5e-4)}
    options = {"cone": mujoco.mjtCone.mjCONE_ELLIPTIC, "impratio": 10.0}
    motors = (
        (".*_(hip|thigh)_joint", 0.000111842 * 6.0**2, 23.7),
        (".*_calf_joint", 0.000111842 * 9.0**2, 35.55),
    )
    start = 0.278
    bent = {
        ".*thigh_joint": 0.9, ".*calf_joint": -1.8, ".*R_hip_joint": 0.1, ".*L_hip_joint": -0.1,
    }  # fmt: skip


_5020 = planetary((0.139e-4, 0.017e-4, 0.169e-4), (1 + 46 / 18, 1 + 56 / 16))
_7520_14 = planetary((0.489e-4, 0.098e-4, 0.533e-4), (4.5, 1 + 48 / 22))
_7520_22 = planetary((0.489e-4, 0.109e-4, 0.738e-4), (4.5, 5.0))
_4010 = planetary((0.068e-4, 0.0, 0.0), (5.0, 5.0))


G1_SOLE_FRICTION = between(
    0.3,
    1.2,
    together=True,
    of=[f"robot/{side}_foot{i}_collision" for side in ("left", "right") for i in range(1, 8)],
    columns=0,
)


class G1(Robot, joints=29):
    """Unitree's G1, all of whose parts collide, with each other, too."""

    file, root, imu = "unitree_g1/xmls/g1.xml", "pelvis", "imu_in_pelvis"
    feet = tuple((f"{side}_foot", f"{side}_ankle_roll_link") for side in ("left", "right"))
    soles = "(left|right)_foot[1-7]_collision"
    touches = {"self_contact": OWN}
    of_parts, of_soles = {"condim": 1}, {"condim": 3, "friction": (0.6, 0.005, 0.0001)}
    motors = (
        (".*_(elbow|shoulder_pitch|shoulder_roll|shoulder_yaw|wrist_roll)_joint", _5020, 25.0),
        (".*_hip_(pitch|yaw)_joint|waist_yaw_joint", _7520_14, 88.0),
        (".*_(hip_roll|knee)_joint", _7520_22, 139.0),
        (".*_wrist_(pitch|yaw)_joint", _4010, 5.0),
        ("waist_(pitch|roll)_joint", 2.0 * _5020, 50.0),  # two motors each
        (".*_ankle_(pitch|roll)_joint", 2.0 * _5020, 50.0),
    )
    start = 0.76
    bent = {
        ".*_hip_pitch_joint": -0.312, ".*_knee_joint": 0.669, ".*_ankle_pitch_joint": -0.363,
        ".*_elbow_joint": 0.6, ".*_shoulder_pitch_joint": 0.2, "left_shoulder_roll_joint": 0.2,
        "right_shoulder_roll_joint": -0.2,
    }  # fmt: skip
