"""The base of dm_control's tasks: models, the order of a step, starts, rewards."""

import importlib
from typing import Any

import mujoco
import numpy as np

from pyfastenv.suites.dm_control.rewards import QUADRATIC, tolerances
from pyfastenv.suites.packages import package_file
from pyfastenv.suites.starts import MOST_DRAWS
from pyfastenv.tasks.language.task import Task


class SuiteTask(Task):
    """A task with dm_control's conventions; a domain says ``reward(self, data)``.

    ``step`` needs no more: dm_control's suite ends episodes by their time alone (but for LQR).
    Unless a domain says else, an episode starts with any joints, and all of the state is seen.
    """

    up_to_date = True

    def reset(self, data, rng):
        draw_joints(self.model, data, rng)

    def step(self, data):
        self.simulate(data)
        return self.reward(data), False

    def observation(self, data, obs):
        obs["position"] = data.qpos
        obs["velocity"] = data.qvel


class SuiteModel:
    """A model of the installed dm_control, loaded when it is called.

    Args:
        domain: ``"cheetah"``.
        make: Given dm_control's module of the domain, the model's XML (and assets); None: that of
            the file of this name.

    Raises:
        ImportError: There is no dm_control, or none with this domain.
    """

    def __init__(self, domain: str, make: Any = None):
        self._domain, self._make = domain, make

    def __call__(self) -> mujoco.MjModel:
        file = package_file("dm_control", f"suite/{self._domain}.xml", "'pyfastenv[dm-control]'")
        assets = {f"./common/{f.name}": f.read_bytes() for f in file.parent.glob("common/*.xml")}
        if self._make is None:  # importing dm_control takes a second
            xml: Any = file.read_text()
        else:
            xml = self._make(importlib.import_module(f"dm_control.suite.{self._domain}"))
        if isinstance(xml, tuple):
            xml, assets = xml
        return mujoco.MjModel.from_xml_string(xml, assets)


def draw_joints(model, data, rng):
    """Draws every joint: within its limits, an angle of any size, an orientation of any kind.

    dm_control/suite/utils/randomizers.py: free joints stay where they are, and their orientations
    are of positive numbers.
    """
    for joint in range(model.njnt):
        at = model.jnt_qposadr[joint]
        kind = model.jnt_type[joint]
        low, high = model.jnt_range[joint, 0], model.jnt_range[joint, 1]
        if kind == mujoco.mjtJoint.mjJNT_FREE:
            if not model.jnt_limited[joint]:
                quaternion = rng.random(4)
                data.qpos[at + 3 : at + 7] = quaternion / np.linalg.norm(quaternion)
        elif kind == mujoco.mjtJoint.mjJNT_BALL:
            if model.jnt_limited[joint]:
                axis = rng.standard_normal(3)
                axis /= np.linalg.norm(axis)
                quaternion = np.zeros(4)
                mujoco.mju_axisAngle2Quat(quaternion, axis, rng.random() * high)
            else:
                quaternion = rng.standard_normal(4)
                quaternion /= np.linalg.norm(quaternion)
            data.qpos[at : at + 4] = quaternion
        elif model.jnt_limited[joint]:
            data.qpos[at] = rng.uniform(low, high)
        elif kind == mujoco.mjtJoint.mjJNT_HINGE:
            data.qpos[at] = rng.uniform(-np.pi, np.pi)


def draw_joints_without_contacts(model, data, rng):
    """The same until nothing touches anything."""
    for _ in range(MOST_DRAWS):
        draw_joints(model, data, rng)
        mujoco.mj_forward(model, data)
        if data.ncon == 0:
            return
    raise ValueError("every start that was drawn has contacts")


def pick(numbers, at):
    """``numbers[at]`` for an array of places, by a loop, which compiles much faster."""
    picked = np.empty(at.size)
    for i in range(at.size):
        picked[i] = numbers[at[i]]
    return picked


def random_quaternion(rng):
    """An orientation, any as likely as any other."""
    quaternion = rng.standard_normal(4)
    return quaternion / np.linalg.norm(quaternion)


def small_control(data):
    """1 without control, 0.8 where all controls are at their bounds of one."""
    return (4 + np.mean(tolerances(data.ctrl, (0.0, 0.0), 1.0, QUADRATIC, 0.0))) / 5


def seen_from(data, body, vector):
    """A vector of the world in a body's frame."""
    return vector @ data.xmat[body].reshape(3, 3)
