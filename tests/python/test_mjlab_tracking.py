"""mjlab's tracking tasks as own tasks; `make parity NAME=mjlab` compares them with mjlab's own."""

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import gymnasium
import mujoco
import numpy as np
import pytest
from mjlab_motion import TRACKING, own_motion
from plain_python import beside_plain

import pyfastenv
from pyfastenv.suites.mjlab.motion import save_motion

pytestmark = pytest.mark.skipif(find_spec("mjlab") is None, reason="needs mjlab's models")
TRACK, BLIND = TRACKING


@pytest.fixture(scope="module")
def motion(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(own_motion(tmp_path_factory.mktemp("motion") / "motion.npz"))


@pytest.mark.parametrize("env_id", [TRACK, pytest.param(BLIND, marks=pytest.mark.slow)])
def test_rides_lanes_with_the_bits_of_plain_python(env_id: str, tmp_path: Path) -> None:
    own: dict[str, Any] = {"motion_file": str(own_motion(tmp_path / "short.npz", 20))}
    own |= {"push_every": (0.1, 0.3), "observation_dict": False}
    own["action_space"] = gymnasium.spaces.Box(-0.5, 0.5, (29,), np.float64)
    for pair in beside_plain(env_id, 60, num_envs=9, pool={"engine": "lanes"}, **own):
        stats = pair.envs.stats()
    assert stats["lane_steps"] >= stats["steps"] - 9


def track(motion: str, **own: Any) -> Any:
    """The tracking task in plain Python, begun, without noise and pushes but for what is said."""
    still = {"pose_range": (0.0,) * 6, "velocity_range": (0.0,) * 6, "joint_position_range": 0.0}
    arguments = {
        "randomise": False,
        "push_velocity": (0.0,) * 6,
        "observation_noise": False,
        "encoder_bias": 0.0,
        **still,
        **own,
    }
    env: Any = pyfastenv.debug(TRACK, motion_file=motion, **arguments).unwrapped
    env.reset(seed=0)
    return env


def test_a_written_motion_has_the_velocities_of_its_places(motion: str) -> None:
    with np.load(motion) as found:
        places, quats = found["body_pos_w"], found["body_quat_w"].astype(np.float64)
        moving, turning = found["body_lin_vel_w"], found["body_ang_vel_w"]
        joints = np.gradient(found["joint_pos"], 0.02, axis=0)
        np.testing.assert_allclose(found["joint_vel"], joints, atol=1e-3)
        assert found["joint_pos"].shape == (150, 29) and found["fps"] == [50.0]
    assert places.shape == (150, 30, 3) and np.abs(moving).max() > 0.3
    np.testing.assert_allclose(moving, np.gradient(places, 0.02, axis=0), atol=0.02)
    for body in (0, 10, 29):
        change, back = np.zeros(4), np.zeros(4)
        mujoco.mju_negQuat(back, quats[73, body])
        mujoco.mju_mulQuat(change, quats[75, body], back)
        np.testing.assert_allclose(turning[74, body], 2.0 * change[1:] / 0.04, atol=0.01)


def test_an_episode_begins_at_a_frame_and_sees_the_next(motion: str) -> None:
    env = track(motion, sampling="start")
    task, frames = env.task, env.task.motion_joint_pos
    np.testing.assert_allclose(env.data.qpos[7:], np.clip(frames[0], task.lowest, task.highest))
    np.testing.assert_allclose(env.data.qpos[:3], task.motion_body_pos_w[0, 0])
    np.testing.assert_allclose(env.data.qvel[:3], task.motion_body_lin_vel_w[0, 0])
    obs = env.reset(seed=0)[0]
    np.testing.assert_allclose(obs["policy"][:29], frames[1])
    assert obs["policy"][29:58] == pytest.approx(task.motion_joint_vel[1])
    ahead = task.motion_body_pos_w[1, 7] - task.motion_body_pos_w[0, 7]
    assert np.linalg.norm(obs["policy"][58:61]) == pytest.approx(np.linalg.norm(ahead), abs=1e-6)
    starts = set[float]()
    anywhere = track(motion)
    for seed in range(40):
        anywhere.reset(seed=seed)
        starts.add(anywhere.task.frame)
    assert len(starts) > 25 and max(starts) > 120 and min(starts) < 30


def test_starts_are_drawn_around_the_frame(motion: str) -> None:
    own = {"sampling": "start", "pose_range": (0.05, 0.05, 0.01, 0.0, 0.0, 0.2)}
    env = track(motion, velocity_range=(0.5,) * 6, joint_position_range=0.1, **own)
    rows = []
    for seed in range(30):
        env.reset(seed=seed)
        rows.append(np.concatenate((env.data.qpos[:7], env.data.qpos[7:], env.data.qvel)))
    still = track(motion, sampling="start").data
    off = np.abs(np.array(rows) - np.concatenate((still.qpos, still.qvel)))
    assert (off[:, :2].max(axis=0) > 0.03).all() and (off[:, :2] <= 0.05).all()
    assert 0.006 < off[:, 2].max() <= 0.01
    yaw = 2.0 * np.arcsin(off[:, 6])  # at first it looks ahead
    assert 0.15 < yaw.max() <= 0.2 + 1e-6 and off[:, 4:6].max() < 1e-6
    assert (off[:, 7:36] <= 0.1 + 1e-9).all() and off[:, 7:36].max() > 0.09
    assert (off[:, 36:39] <= 0.5).all() and off[:, 36:39].max() > 0.45
    assert off[:, 42:].max() == 0.0


def test_after_the_last_frame_it_is_put_back_within_the_episode(tmp_path: Path) -> None:
    env = track(str(own_motion(tmp_path / "short.npz", 8)), sampling="start")
    for step in range(7):
        assert env.task.frame == step + 1
        _, _, ended, _, info = env.step(np.zeros(29))
        assert not ended
    assert env.task.frame == 0.0 and info["reward_motion_body_pos"] > 0.9 * 0.02
    np.testing.assert_allclose(env.data.qpos[:3], env.task.motion_body_pos_w[0, 0])
    np.testing.assert_allclose(env.data.qvel[6:], env.task.motion_joint_vel[0])
    env.step(np.zeros(29))
    assert env.task.frame == 1.0


def test_the_policy_sees_noise_and_one_without_estimates_less(motion: str) -> None:
    env: Any = pyfastenv.debug(BLIND, motion_file=motion).unwrapped
    obs = env.reset(seed=0)[0]
    assert obs["policy"].shape == (154,) and obs["critic"].shape == (286,)
    seen, true = obs["policy"], obs["critic"]
    assert (seen[:58] == true[:58]).all()
    turn = np.abs(seen[58:64] - true[61:67])
    assert 0.0 < turn.max() <= 0.05 and 0.1 < np.abs(seen[96:125] - true[228:257]).max() <= 0.5
    assert (env.data.qvel[6:] == true[228:257]).all()


@pytest.mark.parametrize(
    ("key", "change", "said"),
    [
        ("body_quat_w", None, r"npz as mjlab has them, with joint_pos.*; .* lacks body_quat_w$"),
        ("joint_pos", lambda all: all[:, :12], r"joint_pos: expected \(frames, 29\) .*\(150, 12\)"),
        ("body_pos_w", lambda all: all[:, :13], r"\(frames, 30, 3\) .* got \(150, 13, 3\)"),
        ("joint_vel", lambda all: all * np.nan, "joint_vel: expected finite numbers"),
        ("body_quat_w", lambda all: 2.0 * all, "body_quat_w: expected quaternions of length 1"),
        ("fps", lambda all: [30], "fps: expected 50, a frame a step, got 30"),
    ],
)
def test_another_motion_is_refused(
    key: str, change: Any, said: str, motion: str, tmp_path: Path
) -> None:
    with np.load(motion) as found:
        others = dict(found)
    given = others.pop(key)
    np.savez(tmp_path / "other.npz", **others, **({key: change(given)} if change else {}))
    with pytest.raises(ValueError, match=said):
        pyfastenv.debug(TRACK, motion_file=str(tmp_path / "other.npz"))


def test_no_motion_and_no_such_sampling_are_refused(motion: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"motion_file: expected a .npz as mjlab .*; got ''"):
        pyfastenv.make_vec(TRACK, 2)
    with pytest.raises(FileNotFoundError, match=r"motion_file: there is no file nothing.npz"):
        pyfastenv.debug(TRACK, motion_file="nothing.npz")
    (tmp_path / "text.npz").write_text("joint_pos")
    with pytest.raises(ValueError, match=r"text.npz is no .npz"):
        pyfastenv.debug(TRACK, motion_file=tmp_path / "text.npz")
    with pytest.raises(ValueError, match="sampling: expected 'uniform' or 'start', got 'adaptive'"):
        pyfastenv.debug(TRACK, motion_file=motion, sampling="adaptive")
    env: Any = pyfastenv.debug(TRACK, motion_file=motion).unwrapped
    with pytest.raises(ValueError, match=r"qpos: expected \(frames >= 2, 36\), got \(5, 35\)"):
        save_motion(tmp_path / "short.npz", env.task.model, np.zeros((5, 35)))
