"""The meta-RL environments against a plain NumPy reference on gymnasium's MujocoEnv."""

from typing import Any

import gymnasium
import numpy as np
import pytest
from meta_references import REFERENCES
from parity import META_IDS, assert_same, random_actions

import pyfastenv

NUM_ENVS = 4
HORIZON = 60


NAMES = {"Dir": "direction", "Vel": "velocity", "Goal": "goal"}
# (task_size, the values' set or range)
RANGES: dict[str, tuple[int, float, float]] = {
    "HalfCheetahDir-v5": (1, -1.0, 1.0),
    "HalfCheetahVel-v5": (1, 0.0, 2.0),
    "AntDir-v5": (1, -1.0, 1.0),
    "AntVel-v5": (1, 0.0, 3.0),
    "AntGoal-v5": (2, -3.0, 3.0),
}


def make_reference(env_id: str, mode: str = "NextStep") -> gymnasium.vector.SyncVectorEnv:
    def make() -> gymnasium.Env[Any, Any]:
        return gymnasium.wrappers.TimeLimit(REFERENCES[env_id](), HORIZON)

    return gymnasium.vector.SyncVectorEnv([make] * NUM_ENVS, autoreset_mode=mode)


def make_ours(env_id: str, mode: str = "NextStep", **kwargs: Any) -> pyfastenv.FastVectorEnv:
    return pyfastenv.make_vec(
        env_id, NUM_ENVS, autoreset_mode=mode, max_episode_steps=HORIZON, **kwargs
    )


def set_tasks(
    ours: pyfastenv.FastVectorEnv, theirs: gymnasium.vector.SyncVectorEnv, tasks: np.ndarray
) -> None:
    ours.reset_task(tasks)
    for env, task in zip(theirs.envs, tasks, strict=True):
        env.unwrapped.task = task  # type: ignore[attr-defined]


def test_every_id_has_a_reference() -> None:
    assert set(REFERENCES) == set(RANGES) == set(META_IDS)


@pytest.mark.parametrize(
    ("env_id", "mode"), [*zip(META_IDS, 3 * ["NextStep", "SameStep"], strict=False)]
)
def test_equals_the_reference(env_id: str, mode: str) -> None:
    theirs = make_reference(env_id, mode)
    ours = make_ours(env_id, mode, num_threads=2)
    rng = np.random.default_rng(0)
    ended = 0
    assert ours.single_observation_space == theirs.single_observation_space
    assert ours.single_action_space == theirs.single_action_space
    set_tasks(ours, theirs, ours.sample_tasks(NUM_ENVS, seed=0))
    assert_same(ours.reset(seed=0), theirs.reset(seed=0), "reset")
    for step in range(310):
        actions = random_actions(ours.single_action_space, rng, NUM_ENVS)
        result = ours.step(actions)
        assert_same(result, theirs.step(actions), f"{env_id} step {step}")
        ended += int((result[2] | result[3]).sum())
        if step % 250 == 130:  # in the middle of episodes
            set_tasks(ours, theirs, ours.sample_tasks(NUM_ENVS, seed=step))
        if step % 301 == 300:
            mask = np.array([True, False, True, False])
            assert_same(
                ours.reset(seed=step, options={"reset_mask": mask}),
                theirs.reset(seed=step, options={"reset_mask": mask}),
                "masked reset",
            )
    assert ended >= 16


@pytest.mark.parametrize("env_id", ["HalfCheetahVel-v5", "AntGoal-v5"])
def test_equals_the_reference_with_float64_actions(env_id: str) -> None:
    theirs, ours = make_reference(env_id), make_ours(env_id)
    rng = np.random.default_rng(1)
    set_tasks(ours, theirs, ours.sample_tasks(NUM_ENVS, seed=1))
    assert_same(ours.reset(seed=1), theirs.reset(seed=1))
    for _ in range(150):
        actions = random_actions(ours.single_action_space, rng, NUM_ENVS, np.float64)
        assert_same(ours.step(actions), theirs.step(actions))


@pytest.mark.parametrize("env_id", META_IDS)
def test_sampled_tasks(env_id: str) -> None:
    envs = make_ours(env_id)
    size, low, high = RANGES[env_id]
    tasks = envs.sample_tasks(5_000, seed=7)
    assert tasks.shape == (5_000, size) and tasks.dtype == np.float64
    if "Dir" in env_id:
        assert set(tasks.ravel()) == {-1.0, 1.0}
        assert abs(tasks.mean()) < 0.05
    else:
        assert low <= tasks.min() < low + 0.01 and high - 0.01 < tasks.max() <= high
        assert np.allclose(tasks.mean(axis=0), (low + high) / 2, atol=0.1)
    assert np.array_equal(tasks, envs.sample_tasks(5_000, seed=7))
    assert not np.array_equal(tasks, envs.sample_tasks(5_000, seed=8))
    assert not np.array_equal(envs.sample_tasks(64), envs.sample_tasks(64))


def test_sampling_leaves_the_environments_random_streams_alone() -> None:
    envs, other = make_ours("AntGoal-v5"), make_ours("AntGoal-v5")
    envs.reset(seed=0)
    other.reset(seed=0)
    envs.sample_tasks(10)
    assert_same(envs.reset(), other.reset())


@pytest.mark.parametrize("env_id", META_IDS)
def test_tasks_as_arrays_dicts_and_for_some(env_id: str) -> None:
    envs = make_ours(env_id)
    size = RANGES[env_id][0]
    default = 1.0 if "Dir" in env_id else 0.0
    assert np.array_equal(envs.get_task(), np.full((NUM_ENVS, size), default))
    tasks = envs.sample_tasks(NUM_ENVS, seed=2)
    envs.reset_task(tasks.tolist())
    assert np.array_equal(envs.get_task(), tasks)
    others = -tasks
    name = next(value for key, value in NAMES.items() if key in env_id)
    envs.reset_task([{name: task if size > 1 else task[0]} for task in others])
    assert np.array_equal(envs.get_task(), others)
    envs.reset_task(tasks[:2], env_ids=[3, 1])
    assert np.array_equal(envs.get_task(), [others[0], tasks[1], others[2], tasks[0]])
    envs.reset_task([{name: tasks[2]}], env_ids=np.array([2]))
    assert np.array_equal(envs.get_task()[2], tasks[2])
    copy = envs.get_task()
    copy[:] = 99.0
    assert not (envs.get_task() == 99.0).any()


def test_integer_tasks() -> None:
    envs = make_ours("HalfCheetahDir-v5")
    envs.reset_task([[1], [-1], [-1], [1]])
    envs.reset_task([{"direction": -1}], env_ids=[0])
    assert envs.get_task().ravel().tolist() == [-1.0, -1.0, -1.0, 1.0]


def test_a_task_holds_from_the_next_step_on_and_survives_resets() -> None:
    envs, other = make_ours("HalfCheetahDir-v5"), make_ours("HalfCheetahDir-v5")
    envs.reset(seed=0)
    other.reset(seed=0)
    rng = np.random.default_rng(0)
    signs = np.array([1.0, -1.0, -1.0, 1.0])
    for step in range(2 * HORIZON + 10):
        if step == 50:
            envs.reset_task(signs[:, None])
        if step == 70:
            assert np.array_equal(envs.reset()[0], other.reset()[0])
        actions = random_actions(envs.single_action_space, rng, NUM_ENVS)
        ours, theirs = envs.step(actions), other.step(actions)
        assert np.array_equal(ours[0], theirs[0])  # the task changes rewards only
        if "reward_forward" in theirs[4]:  # not where the episodes start anew
            expected = theirs[4]["reward_forward"] * (signs if step >= 50 else 1.0)
            assert np.array_equal(ours[4]["reward_forward"], expected)
    assert np.array_equal(envs.get_task().ravel(), signs)
