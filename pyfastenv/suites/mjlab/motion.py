"""Motions of a robot, read from and written to files as mjlab has them (its scripts/csv_to_npz.py).

A file is a ``.npz`` with a row per frame of what a robot's joints and bodies do, in the order of
the model, velocities along the world's axes: ``joint_pos`` and ``joint_vel`` ``(frames, joints)``
[rad, rad/s], ``body_pos_w``, ``body_lin_vel_w`` and ``body_ang_vel_w`` ``(frames, bodies, 3)`` [m,
m/s, rad/s], ``body_quat_w`` ``(frames, bodies, 4)``, and ``fps``, frames a second.
"""

import zipfile
from pathlib import Path

import mujoco
import numpy as np

_JOINTS = ("joint_pos", "joint_vel")
_BODIES = {"body_pos_w": 3, "body_quat_w": 4, "body_lin_vel_w": 3, "body_ang_vel_w": 3}
KEYS = (*_JOINTS, *_BODIES)


def load_motion(file, joints, bodies, fps):
    """Reads a motion.

    Args:
        file: A path.
        joints, bodies: How many the robot has, its free root's joint apart.
        fps: Frames a second that are wanted; a file may leave it out.

    Returns:
        Arrays by their names, float64.

    Raises:
        ValueError: There is no file, or one with other numbers. FileNotFoundError: Not this file.
    """
    expected = f"motion_file: expected a .npz as mjlab has them, with {', '.join(KEYS)} and fps"
    if not isinstance(file, str | Path) or str(file) == "":
        raise ValueError(f"{expected}; got {file!r}")
    if not Path(file).is_file():
        raise FileNotFoundError(f"motion_file: there is no file {file}")
    if not zipfile.is_zipfile(file):
        raise ValueError(f"{expected}; {file} is no .npz")
    with np.load(file) as found:
        missing = [key for key in KEYS if key not in found]
        if missing:
            raise ValueError(f"{expected}; {file} lacks {', '.join(missing)}")
        motion = {key: np.asarray(found[key], np.float64) for key in KEYS}
        given = float(np.ravel(found["fps"])[0]) if "fps" in found else fps
    frames = len(motion["joint_pos"])
    shapes = dict.fromkeys(_JOINTS, (frames, joints))
    shapes |= {key: (frames, bodies, size) for key, size in _BODIES.items()}
    for key, values in motion.items():
        if values.shape != shapes[key] or frames < 2:
            wanted = ", ".join(("frames", *map(str, shapes[key][1:])))
            raise ValueError(
                f"motion_file: {key}: expected ({wanted}) of at least 2 frames, for this robot, "
                f"got {values.shape} in {file}"
            )
        if not np.isfinite(values).all():
            raise ValueError(f"motion_file: {key}: expected finite numbers in {file}")
    if (abs(np.sum(np.square(motion["body_quat_w"]), axis=2) - 1.0) > 0.01).any():
        raise ValueError(f"motion_file: body_quat_w: expected quaternions of length 1 in {file}")
    if abs(given - fps) > 1e-3:
        raise ValueError(f"motion_file: fps: expected {fps:g}, a frame a step, got {given:g}")
    return motion


def save_motion(file, model, qpos, fps=50.0):
    """Writes a motion of which the positions are known; velocities are their differences.

    Args:
        file: A path that ends in ``.npz``.
        model: The robot's mjModel, on its own or in a scene: a free root, each of whose bodies has
            a joint, and nothing else that moves. G1's is
            ``pyfastenv.debug("Mjlab-Velocity-Flat-Unitree-G1").unwrapped.task.model``.
        qpos: ``(frames, nq)``, its state in each frame.
        fps: Frames a second.

    Raises:
        ValueError: ``qpos`` has another shape, or fewer than two frames.
    """
    qpos = np.array(qpos, np.float64)
    if qpos.ndim != 2 or len(qpos) < 2 or qpos.shape[1] != model.nq:
        raise ValueError(f"qpos: expected (frames >= 2, {model.nq}), got {qpos.shape}")
    data, bodies, rows = mujoco.MjData(model), np.flatnonzero(model.body_jntnum), []
    velocity, kind = np.zeros((len(bodies), 6)), mujoco.mjtObj.mjOBJ_XBODY
    for i in range(len(qpos)):
        before, behind = max(i - 1, 0), min(i + 1, len(qpos) - 1)
        seconds = (behind - before) / fps
        mujoco.mj_differentiatePos(model, data.qvel, seconds, qpos[before], qpos[behind])
        data.qpos[:] = qpos[i]
        mujoco.mj_forward(model, data)
        for k, body in enumerate(bodies):
            mujoco.mj_objectVelocity(model, data, kind, body, velocity[k], 0)
        joints, places = (data.qpos[7:], data.qvel[6:]), (data.xpos[bodies], data.xquat[bodies])
        row = (*joints, *places, velocity[:, 3:], velocity[:, :3])
        rows.append([np.array(each, np.float32) for each in row])
    columns = zip(KEYS, zip(*rows, strict=True), strict=True)
    np.savez(file, fps=[fps], **{key: np.stack(values) for key, values in columns})
