"""Stable-Baselines3: its VecEnv contract, its wrappers and its algorithms on our environments."""

from __future__ import annotations

import warnings
from typing import Any

import gymnasium
import numpy as np
import pytest
import stable_baselines3
from parity import random_actions, wrong_mode
from run_example import run_example
from stable_baselines3.common.env_checker import check_env
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import (
    DummyVecEnv,
    VecCheckNan,
    VecEnv,
    VecFrameStack,
    VecMonitor,
    VecNormalize,
)

import pyfastenv
from pyfastenv.integrations.sb3 import make_sb3, to_sb3

NUM_ENVS = 3


def make_ours(env_id: str, num_envs: int = NUM_ENVS, **kwargs: Any) -> VecEnv:
    return to_sb3(pyfastenv.make_vec(env_id, num_envs, autoreset_mode="SameStep", **kwargs))


def make_theirs(env_id: str, num_envs: int = NUM_ENVS, **kwargs: Any) -> DummyVecEnv:
    return DummyVecEnv(
        [lambda: gymnasium.make(env_id, disable_env_checker=True, **kwargs)] * num_envs
    )


def assert_equal(ours: Any, theirs: Any) -> None:
    if isinstance(theirs, np.ndarray):
        assert ours.dtype == theirs.dtype
        np.testing.assert_array_equal(ours, theirs, strict=True)
    elif isinstance(theirs, dict):
        assert set(ours) == set(theirs)
        for key in theirs:
            assert_equal(ours[key], theirs[key])
    elif isinstance(theirs, list | tuple):
        assert len(ours) == len(theirs)
        for one, other in zip(ours, theirs, strict=True):
            assert_equal(one, other)
    else:
        assert ours == theirs


def compare(ours: VecEnv, theirs: VecEnv, num_steps: int, seed: int = 3) -> tuple[int, int]:
    """Steps both with the same random actions; returns the counts of terminations, truncations."""
    counts = [0, 0]
    rng = np.random.default_rng(seed)
    assert_equal(ours.seed(seed), theirs.seed(seed))
    assert_equal(ours.reset(), theirs.reset())
    assert_equal(ours.reset_infos, theirs.reset_infos)
    space = theirs.action_space
    for _ in range(num_steps):
        actions = random_actions(space, rng, ours.num_envs)
        result = ours.step(actions)
        assert_equal(result, theirs.step(actions))
        assert_equal(ours.reset_infos, theirs.reset_infos)
        for done, info in zip(result[2], result[3], strict=True):
            if done:
                counts[info["TimeLimit.truncated"]] += 1
    return counts[0], counts[1]


@pytest.mark.parametrize(
    ("env_id", "limit"),
    [
        ("Hopper-v5", 23),
        ("HalfCheetah-v5", 40),
        ("Ant-v5", 50),
        ("Humanoid-v5", 20),
        ("CartPole-v1", 25),
        ("Pendulum-v1", 30),
    ],
)
def test_same_as_dummy_vec_env(env_id: str, limit: int) -> None:
    ours = make_ours(env_id, max_episode_steps=limit)
    theirs = make_theirs(env_id, max_episode_steps=limit)
    terminations, truncations = compare(ours, theirs, 200)
    assert truncations > 0
    assert terminations > 0 or env_id in ("HalfCheetah-v5", "Ant-v5", "Pendulum-v1")
    ours.close()
    theirs.close()


@pytest.mark.parametrize("wrapper", [VecNormalize, VecCheckNan, lambda v: VecFrameStack(v, 3)])
def test_same_within_wrappers(wrapper: Any) -> None:
    """Terminal observations are normalised and stacked too."""
    compare(
        wrapper(make_ours("Hopper-v5", max_episode_steps=20)),
        wrapper(make_theirs("Hopper-v5", max_episode_steps=20)),
        100,
    )


def test_termination_beats_truncation() -> None:
    """Both on the same step: not TimeLimit.truncated, as in SB3."""
    ours = make_ours("CartPole-v1", max_episode_steps=9)
    compare(ours, make_theirs("CartPole-v1", max_episode_steps=9), 1)
    ours.seed(3)
    ours.reset()
    flags = set()
    for _ in range(40):
        _, _, dones, infos = ours.step(np.ones(NUM_ENVS, np.int64))
        flags |= {(bool(d), i["TimeLimit.truncated"]) for d, i in zip(dones, infos, strict=True)}
    assert flags == {(False, False), (True, False), (True, True)}


@pytest.mark.parametrize("mode", ["NextStep", "Disabled"])
def test_wrong_autoreset_mode_is_refused(mode: str) -> None:
    with wrong_mode("Stable-Baselines3", "SameStep", mode):
        to_sb3(pyfastenv.make_vec("CartPole-v1", autoreset_mode=mode))


def test_seeds_and_options_are_used_once() -> None:
    ours, theirs = make_ours("Pendulum-v1"), make_theirs("Pendulum-v1")
    for venv in (ours, theirs):
        venv.seed(7)
        venv.set_options({"x_init": 0.1, "y_init": 0.2})
    first = ours.reset()
    assert_equal(first, theirs.reset())
    assert_equal(ours.reset(), theirs.reset())  # neither seeded nor bounded
    for venv in (ours, theirs):
        venv.set_options([{"x_init": 0.1 * (i + 1)} for i in range(NUM_ENVS)])
    assert_equal(ours.reset(), theirs.reset())
    assert_equal(ours.reset_infos, theirs.reset_infos)
    ours.seed(7)
    ours.set_options({"x_init": 0.1, "y_init": 0.2})
    assert_equal(ours.reset(), first)


def test_options_of_each_environment_where_observations_are_pictures() -> None:
    ours = make_ours("Pendulum-v1", 2)
    pictures = make_ours("HalfCheetah-v5", 2, pixels={"height": 16, "width": 16, "samples": 1})
    for venv in (ours, pictures):
        venv.set_options([{"one": 1}, {"other": 2}])
        assert venv.reset().shape == (2, *venv.observation_space.shape)


def test_attributes() -> None:
    ours = make_ours("HalfCheetah-v5", render_mode=None)
    assert ours.get_attr("render_mode") == [None] * NUM_ENVS
    assert ours.get_attr("spec")[0].id == "pyfastenv/HalfCheetah-v5"
    assert ours.get_attr("action_space", [0, 2]) == [ours.action_space] * 2
    assert ours.has_attr("np_random") and not ours.has_attr("number_of_wheels")
    ours.seed(5)
    ours.reset()
    assert ours.get_attr("np_random_seed") == [5, 6, 7]
    ours.set_attr("current_step", 0)
    ours.set_attr("current_step", 12, indices=[0, -1])
    assert ours.get_attr("current_step") == [12, 0, 12]
    assert ours.get_attr("current_step", 1) == [0]
    with pytest.raises(AttributeError):
        ours.set_attr("observation_space", None)
    assert ours.env_is_wrapped(Monitor) == [False] * NUM_ENVS
    assert ours.env_is_wrapped(Monitor, [1]) == [False]


def test_methods() -> None:
    ours = make_ours("HalfCheetah-v5")
    ours.seed(0)
    before = ours.reset()
    masses = ours.env_method("get_model_field", "body_mass")
    ours.env_method("set_model_field", "body_mass", 2 * masses[1], indices=1)
    assert_equal(
        ours.env_method("get_model_field", "body_mass"), [masses[0], 2 * masses[1], masses[2]]
    )
    states = ours.env_method("get_state")
    ((obs, info),) = ours.env_method("reset", seed=9, indices=[2])
    assert set(info) == set(ours.reset_infos[2])
    assert not np.array_equal(obs, before[2])
    ours.env_method("set_state", states[2], indices=2)
    actions = np.zeros((NUM_ENVS, 6), np.float32)
    results = ours.step(actions)[0]
    theirs = make_theirs("HalfCheetah-v5")
    theirs.seed(0)
    theirs.reset()
    same = (results == theirs.step(actions)[0]).all(axis=1)
    np.testing.assert_array_equal(same, [True, False, True])


def test_tasks() -> None:
    ours = make_ours("HalfCheetahVel-v5")
    ours.env_method("reset_task", {"velocity": 1.5}, indices=1)
    assert ours.env_method("get_task", indices=1)[0] == [1.5]


def test_divergence_is_in_the_info() -> None:
    ours = make_ours("HalfCheetah-v5", infos=False)
    ours.reset()
    ours.env_method("set_model_field", "opt.gravity", [0, 0, -1e15], indices=1)
    dones = np.zeros(NUM_ENVS, bool)
    while not dones[1]:
        _, _, dones, infos = ours.step(np.zeros((NUM_ENVS, 6), np.float32))
    assert infos[1]["diverged"]
    assert infos[1]["terminal_observation"].shape == (17,)
    assert infos[0] == {"TimeLimit.truncated": False}


def test_step_wait_needs_step_async() -> None:
    ours = make_ours("CartPole-v1")
    ours.reset()
    with pytest.raises(RuntimeError, match="expected step_async before it"):
        ours.step_wait()


def test_rendering() -> None:
    pytest.importorskip("pygame")
    ours = make_ours("CartPole-v1", render_mode="rgb_array")
    theirs = make_theirs("CartPole-v1", render_mode="rgb_array")
    for venv in (ours, theirs):
        venv.seed(0)
        venv.reset()
    assert_equal(ours.get_images(), theirs.get_images())
    assert_equal(ours.render(), theirs.render())
    assert ours.metadata["render_fps"] == theirs.metadata["render_fps"]
    with pytest.warns(UserWarning, match="without a render mode"):
        assert make_ours("CartPole-v1").get_images() == [None] * NUM_ENVS


@pytest.mark.parametrize("env_id", ["HalfCheetah-v5", "CartPole-v1"])
def test_env_checker_on_the_single_environment(env_id: str) -> None:
    env = gymnasium.make(f"pyfastenv/{env_id}")
    with warnings.catch_warnings():
        # its advice to make action spaces symmetric and to use float32
        warnings.simplefilter("ignore", UserWarning)
        check_env(env, skip_render_check=True)
    env.close()


@pytest.mark.parametrize(
    ("algorithm", "env_id", "settings"),
    [
        ("PPO", "Hopper-v5", {"n_steps": 32, "batch_size": 32}),
        ("A2C", "CartPole-v1", {}),
        ("DQN", "CartPole-v1", {"learning_starts": 10}),
        ("SAC", "Hopper-v5", {"learning_starts": 10, "batch_size": 16}),
        ("TD3", "Hopper-v5", {"learning_starts": 10, "batch_size": 16}),
        ("DDPG", "Pendulum-v1", {"learning_starts": 10, "batch_size": 16}),
    ],
)
def test_same_training(algorithm: str, env_id: str, settings: dict[str, Any]) -> None:
    """The same weights, bit for bit, as on gymnasium's environments."""
    weights = []
    for make in (make_ours, make_theirs):
        venv = VecMonitor(make(env_id, max_episode_steps=15))
        model = getattr(stable_baselines3, algorithm)(
            "MlpPolicy", venv, seed=4, device="cpu", policy_kwargs={"net_arch": [16]}, **settings
        )
        model.learn(150)
        assert len(model.ep_info_buffer) > 0
        weights.append({name: w.numpy() for name, w in model.policy.state_dict().items()})
        venv.close()
    assert_equal(*weights)


def test_make_sb3_chooses_the_mode_and_seeds() -> None:
    venv = make_sb3("CartPole-v1", NUM_ENVS, seed=2)
    assert isinstance(venv, VecMonitor)
    theirs = make_theirs("CartPole-v1")
    theirs.seed(2)
    assert_equal(venv.reset(), theirs.reset())
    venv.close()
    with pytest.raises(pyfastenv.ClosedError):
        venv.step(np.zeros(NUM_ENVS, np.int64))


def test_example() -> None:
    assert "return" in run_example("integration_sb3.py", "2000")


def test_dict_observations_of_an_own_task() -> None:
    pytest.importorskip("numba")
    from dict_tasks import Arm

    ours = make_sb3(Arm, NUM_ENVS, seed=7)
    theirs = VecMonitor(DummyVecEnv([lambda: pyfastenv.debug(Arm)] * NUM_ENVS))
    theirs.seed(7)
    assert ours.observation_space == theirs.observation_space
    assert_equal(ours.reset(), theirs.reset())
    rng, ended = np.random.default_rng(0), 0
    for _ in range(60):
        actions = rng.uniform(-1.0, 1.0, (NUM_ENVS, 2)).astype(np.float32)
        obs, rewards, dones, infos = ours.step(actions)
        expected = theirs.step(actions)
        assert_equal((obs, rewards, dones), expected[:3])
        for info, other in zip(infos, expected[3], strict=True):
            assert_equal(info.get("terminal_observation"), other.get("terminal_observation"))
            assert info["is_success"] == other["is_success"]
        ended += dones.sum()
    assert ended > 0
    model = stable_baselines3.PPO("MultiInputPolicy", ours, n_steps=16, batch_size=48, n_epochs=1)
    model.learn(200)
    action, _ = model.predict(ours.reset())
    assert action.shape == (NUM_ENVS, 2)
