"""The base of gymnasium-robotics' tasks: where its files are, goals, rotations."""

from pathlib import Path

import numpy as np

from pyfastenv.suites.packages import package_file
from pyfastenv.tasks.language.task import Task

_TINY = 4 * np.finfo(np.float64).eps


def robotics_file(name: str) -> Path:
    """A file of the installed gymnasium_robotics, which is not imported.

    Args:
        name: As in its folder envs, such as ``"assets/fetch/reach.xml"``.

    Raises:
        ImportError: There is no gymnasium_robotics, or none with such a file.
    """
    return package_file("gymnasium_robotics", f"envs/{name}", "'pyfastenv[robotics]'")


class GoalTask(Task):
    """A task whose Dict observation has a goal, and whose reward depends on how far it is.

    ``goal``: what this episode asks for; ``dense``: a reward that grows as the goal comes nearer,
    and not one for being there.
    """

    observation_dict = True
    action_dtype = "float32"
    dense = False


def distance(goal, other):
    """``np.linalg.norm(goal - other, axis=-1)``; without ``axis`` NumPy rounds otherwise."""
    return np.sqrt(np.sum(np.square(goal - other)))


# ---- gymnasium_robotics/utils/rotations.py, for one rotation ------------------------------------


def matrix_to_euler(m):
    """Angles ``(3,)`` [rad] of a rotation's nine numbers ``(9,)``."""
    euler = np.zeros(3)
    cosine = np.sqrt(m[8] * m[8] + m[5] * m[5])
    euler[1] = -np.arctan2(-m[2], cosine)
    if cosine > _TINY:
        euler[2] = -np.arctan2(m[1], m[0])
        euler[0] = -np.arctan2(m[5], m[8])
    else:
        euler[2] = -np.arctan2(-m[3], m[4])
    return euler


def quaternion_to_euler(quaternion):
    """Angles ``(3,)`` [rad] of an orientation ``(4,)`` of length about 1."""
    w, x, y, z = quaternion
    scale = 2.0 / np.sum(quaternion * quaternion)
    x_scaled, y_scaled, z_scaled = x * scale, y * scale, z * scale
    wx, wy, wz = w * x_scaled, w * y_scaled, w * z_scaled
    xx, xy, xz = x * x_scaled, x * y_scaled, x * z_scaled
    yy, yz, zz = y * y_scaled, y * z_scaled, z * z_scaled
    matrix = (
        1.0 - (yy + zz), xy - wz, xz + wy,
        xy + wz, 1.0 - (xx + zz), yz - wx,
        xz - wy, yz + wx, 1.0 - (xx + yy),
    )  # fmt: skip
    return matrix_to_euler(np.array(matrix))


def euler_to_quaternion(euler):
    """The orientation ``(4,)`` of angles ``(3,)`` [rad]."""
    ai, aj, ak = euler[2] / 2, -euler[1] / 2, euler[0] / 2
    si, sj, sk = np.sin(ai), np.sin(aj), np.sin(ak)
    ci, cj, ck = np.cos(ai), np.cos(aj), np.cos(ak)
    cc, cs, sc, ss = ci * ck, ci * sk, si * ck, si * sk
    return np.array((cj * cc + sj * ss, cj * cs - sj * sc, -(cj * ss + sj * cc), cj * sc - sj * cs))
