"""Own tasks: the same bits as gymnasium, as plain Python, and however they are driven."""

import pickle
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from parity import MODES, assert_same, compare, random_actions, random_policy, step_both
from plain_python import beside_plain

import pyfastenv
from pyfastenv.tasks.language.randomise import scale, shift, uniform

sys.path.insert(0, str(Path(__file__).parents[2] / "examples" / "own_tasks"))

from ant import Ant
from half_cheetah import HalfCheetah
from hopper import Hopper
from humanoid import Humanoid
from quadruped import Quadruped

ROBOTS = {
    "HalfCheetah-v5": HalfCheetah,
    "Hopper-v5": Hopper,
    "Ant-v5": Ant,
    "Humanoid-v5": Humanoid,
}
TASKS = [*ROBOTS.values(), Quadruped]


def actions_for(envs: Any, rng: np.random.Generator) -> np.ndarray:
    space = envs.single_action_space
    return random_actions(space, rng, envs.num_envs, space.dtype)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("env_id", ROBOTS)
def test_equals_gymnasium(env_id: str, mode: str) -> None:
    assert compare(env_id, mode, 90, max_episode_steps=35, task=ROBOTS[env_id]) > 0


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("env_id", ROBOTS)
def test_equals_gymnasium_for_100_000_steps(env_id: str, mode: str) -> None:
    compare(env_id, mode, 12_500, num_envs=8, seed=1, reset_every=10_007, task=ROBOTS[env_id])


@pytest.mark.parametrize("engine", ["mujoco", "auto"])
@pytest.mark.parametrize("task", TASKS)
def test_plain_python_gives_the_same_bits(task: type[pyfastenv.Task], engine: str) -> None:
    assert all(beside_plain(task, 150, pool={"engine": engine}))


@pytest.mark.parametrize("task", TASKS)
def test_threads_snapshots_and_send_give_the_same_bits(task: type[pyfastenv.Task]) -> None:
    one = pyfastenv.make_vec(task, 6, num_threads=1, engine="mujoco")
    two = pyfastenv.make_vec(task, 6, num_threads=3)
    other = pyfastenv.make_vec(task, 6, num_threads=2)
    rng = np.random.default_rng(0)
    assert_same(one.reset(seed=1), two.reset(seed=1))
    other.reset(seed=2)
    for step in range(60):
        actions = actions_for(one, rng)
        expected = one.step(actions)
        assert_same(two.step(actions), expected)
        if step == 20:
            other.set_state(two.get_state())
        elif step > 20:
            other.send(actions)
            obs, rewards, *_, infos = other.recv()
            order = np.argsort(infos["env_id"])
            assert_same(obs[order], expected[0])
            assert_same(rewards[order], expected[1])


def test_rollouts_give_the_same_bits() -> None:
    pytest.importorskip("torch")
    first, second = (
        pyfastenv.make_vec(Quadruped, 5, num_threads=n, autoreset_mode="SameStep") for n in (1, 2)
    )
    first.reset(seed=3)
    second.reset(seed=3)
    batch = pyfastenv.rollout(first, random_policy(first, log_std=-0.5), 40)
    space = first.single_action_space
    for step in range(40):
        actions = np.clip(batch.actions[step].numpy(), space.low, space.high)
        _, rewards, *_ = second.step(actions.astype(np.float32))
        np.testing.assert_array_equal(batch.rewards[step].numpy(), rewards.astype(np.float32))


def test_parameters_are_run_time_data(monkeypatch: pytest.MonkeyPatch) -> None:
    first = pyfastenv.make_vec(HalfCheetah, 2)
    monkeypatch.setattr("pyfastenv.tasks.compiler.cache.load", None)  # its code is there
    second = pyfastenv.make_vec(HalfCheetah, 2, ctrl_cost_weight=5.0)
    first.reset(seed=0), second.reset(seed=0)
    actions = np.ones((2, 6), np.float32)
    a, b = first.step(actions), second.step(actions)
    assert_same(a[0], b[0])
    np.testing.assert_allclose(a[1] - b[1], 4.9 * 6, rtol=1e-5)
    with pytest.raises(ValueError, match="state"):
        first.set_state(second.get_state())


class Told(Quadruped):
    velocity = pyfastenv.command(2, low=-1.0, high=1.0)


def test_commands_are_tasks() -> None:
    envs = pyfastenv.make_vec(Told, 3)
    tasks = envs.sample_tasks(3, seed=0)
    assert tasks.shape == (3, 2)
    envs.reset_task(tasks)
    obs, _ = envs.reset(seed=0)
    where = envs.observation_groups["command"]
    np.testing.assert_array_equal(obs[:, where], tasks)


def test_model_fields_and_pickling() -> None:
    envs = pyfastenv.make_vec(Quadruped, 2, stiffness=2.0)
    copy = pickle.loads(pickle.dumps(envs))
    for each in (envs, copy):
        each.reset(seed=0)
        each.set_model_field("body_mass", 1.5 * each.get_model_field("body_mass"))
    step_both(envs, copy, 5)


class Shaken(Quadruped):
    randomise = {
        "body_mass": scale(0.8, 1.2),
        "geom_friction": uniform(0.5, 1.0, together=True),
        "dof_damping": shift(0.0, 0.3),
    }


def test_randomised_physics_is_drawn_per_episode_and_part_of_snapshots() -> None:
    envs = pyfastenv.make_vec(Shaken, 2, num_threads=1, autoreset_mode="Disabled")
    other = pyfastenv.make_vec(Shaken, 2, num_threads=2, autoreset_mode="Disabled")
    calm = pyfastenv.make_vec(Shaken, 2, autoreset_mode="Disabled", randomise=False)
    plain = pyfastenv.debug(Shaken)
    rng = np.random.default_rng(0)
    obs, _ = envs.reset(seed=4)
    assert_same(obs[0], plain.reset(seed=4)[0])
    calm.reset(seed=4)
    other.reset(seed=9)
    different = False
    for step in range(80):
        actions = actions_for(envs, rng)
        results = envs.step(actions)
        assert_same(results[0][0], plain.step(actions[0])[0])
        different |= not np.array_equal(results[0], calm.step(actions)[0])
        if step == 10:
            other.set_state(envs.get_state())
        elif step > 10:
            assert_same(other.step(actions)[0], results[0])
        if step % 30 == 29:
            obs, _ = envs.reset()
            assert_same(obs[0], plain.reset()[0])
            calm.reset()
            other.set_state(envs.get_state())
    assert different
    with pytest.raises(ValueError, match="randomise=False"):
        envs.set_model_field("body_mass", envs.task.model.body_mass)
    calm.set_model_field("body_mass", calm.get_model_field("body_mass"))


def test_unknown_arguments_name_the_known_ones() -> None:
    with pytest.raises(TypeError, match=r"no argument 'stiffnes'; there are .*stiffness"):
        pyfastenv.make_vec(Quadruped, 2, stiffnes=1.0)
