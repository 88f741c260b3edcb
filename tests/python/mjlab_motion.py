"""A motion of G1's own, for its tracking tasks: it bends its knees, waves and turns about."""

from pathlib import Path
from typing import Any

import mujoco
import numpy as np

import pyfastenv
from pyfastenv.suites import MJLAB
from pyfastenv.suites.mjlab.base import by_name
from pyfastenv.suites.mjlab.motion import save_motion

TRACKING = [env_id for env_id in MJLAB if "Tracking" in env_id]
SWAY = {
    ".*_hip_pitch_joint": -0.2, ".*_knee_joint": 0.4, ".*_ankle_pitch_joint": -0.2,
    "waist_yaw_joint": 0.3, "left_shoulder_pitch_joint": -0.6, "right_elbow_joint": 0.5,
}  # fmt: skip


def own_motion(path: Path, frames: int = 150) -> Path:
    """Writes the motion, of 50 frames a second, with its feet on the ground."""
    task: Any = pyfastenv.debug("Mjlab-Velocity-Flat-Unitree-G1").unwrapped.task
    data, sway = mujoco.MjData(task.model), by_name(task.joint_names(), SWAY)
    foot, rows, height = task.foot_sites[0], [], None
    for i in range(frames):
        data.qpos[:] = task.home
        data.qpos[7:] += sway * (1.0 - np.cos(0.04 * np.pi * i)) / 2.0
        mujoco.mju_axisAngle2Quat(data.qpos[3:7], np.array([0.0, 0.0, 1.0]), 0.02 * i)
        mujoco.mj_kinematics(task.model, data)
        height = data.site_xpos[foot, 2] if height is None else height
        data.qpos[2] += height - data.site_xpos[foot, 2]
        rows.append(data.qpos.copy())
    save_motion(path, task.model, rows)
    return path
