"""Snapshots: an environment restored from one goes on bit for bit as the original did."""

import copy
import pickle
from itertools import product
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from parity import MODES, assert_same
from trajectories import (
    action_table,
    assert_same_trajectories,
    bits,
    row_of,
    send_through,
    step_through,
)

import pyfastenv
from pyfastenv.errors import BusyError

NUM_ENVS = 6
LIMIT = 25
IDS = ["HalfCheetah-v5", "Ant-v5", "Humanoid-v4", "CartPole-v1", "Pendulum-v1", "AntGoal-v5"]
SWAPPED = [4, 0, 5, 1, 3, 2]


def make(env_id: str, mode: str = "NextStep", **kwargs: Any) -> pyfastenv.FastVectorEnv:
    kwargs.setdefault("max_episode_steps", LIMIT)
    return pyfastenv.make_vec(env_id, NUM_ENVS, autoreset_mode=mode, **kwargs)


def prepare(envs: pyfastenv.FastVectorEnv, seed: int = 1) -> None:
    """Seeds, and where there are any, tasks and model fields that differ between environments."""
    if "Goal" in envs.env_id:
        envs.reset_task(envs.sample_tasks(NUM_ENVS, seed=seed))
    if envs.env_id in ("HalfCheetah-v5", "AntGoal-v5"):
        scale = 1.0 + 0.1 * np.arange(NUM_ENVS)
        envs.set_model_field("body_mass", envs.get_model_field("body_mass") * scale[:, None])
    envs.reset(seed=seed)


def allow_fields(envs: pyfastenv.FastVectorEnv, like: pyfastenv.FastVectorEnv) -> None:
    """Snapshots fit where the same model fields are each environment's own."""
    for name, *_ in like._core.row(0)[1]:
        own_field(envs, name)


def own_field(envs: pyfastenv.FastVectorEnv, name: str) -> None:
    """Makes a model field each environment's own, at its default."""
    envs.set_model_field(name, envs.get_model_field(name))


def run(envs: pyfastenv.FastVectorEnv, num_steps: int, seed: int) -> list[list[Any]]:
    """Whole steps, a reset of some, and one of all: what the random streams say shows too."""
    trajectories = step_through(envs, action_table(envs, num_steps, seed))
    mask = np.arange(NUM_ENVS) % 2 == 0
    obs, infos = envs.reset(options={"reset_mask": mask})
    for i, trajectory in enumerate(trajectories):
        trajectory.append(bits(obs, i))  # the latest observation where not reset
        if mask[i]:
            trajectory.append(bits(infos, i))
    for trajectory, more in zip(
        trajectories, step_through(envs, action_table(envs, 30, seed + 1)), strict=True
    ):
        trajectory += more
    result = envs.reset()
    for i, trajectory in enumerate(trajectories):
        trajectory.append(row_of(result, i))
    return trajectories


def advance(envs: pyfastenv.FastVectorEnv, moment: str) -> None:
    if moment == "after sends":
        send_through(envs, action_table(envs, 12, 5), np.random.default_rng(0))
        return
    # LIMIT steps without terminations end right at an episode's last step
    steps = {"just reset": 0, "mid-episode": 11, "at the end": LIMIT}[moment]
    step_through(envs, action_table(envs, steps, 5) if steps else np.empty(0))


MOMENTS = [(env_id, "mid-episode") for env_id in IDS]
MOMENTS += product(["HalfCheetah-v5", "CartPole-v1"], ["just reset", "at the end", "after sends"])


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("env_id", "moment"), MOMENTS)
def test_restored_environments_go_on_as_the_original(env_id: str, mode: str, moment: str) -> None:
    envs = make(env_id, mode, num_threads=2)
    prepare(envs)
    advance(envs, moment)
    state = envs.get_state()
    assert state.dtype == np.uint8 and state.shape == (NUM_ENVS, envs.state_bytes)
    expected = run(envs, 40, seed=9)
    kept = state.copy()

    # the same object
    envs.set_state(state)
    assert np.array_equal(envs.get_state(), state)
    assert_same_trajectories(run(envs, 40, seed=9), expected)

    # another object with another number of threads, whatever it did before
    other = make(env_id, mode, num_threads=5 if moment == "mid-episode" else 1)
    allow_fields(other, envs)
    prepare(other, seed=77)
    step_through(other, action_table(other, 7, seed=8))
    other.set_state(state)
    assert_same_trajectories(run(other, 40, seed=9), expected)
    assert np.array_equal(state, kept)


def test_ended_environments_need_a_reset_in_the_copy_too() -> None:
    envs, other = make("CartPole-v1", "Disabled"), make("CartPole-v1", "Disabled")
    envs.reset(seed=0)
    other.reset(seed=0)
    actions = np.ones(NUM_ENVS, int)
    while not envs.step(actions)[2].all():
        ended = envs.get_state()
        other.set_state(ended)
        try:
            envs.step(actions)
        except pyfastenv.ResetNeededError as error:
            with pytest.raises(pyfastenv.ResetNeededError, match=str(error)[:30]):
                other.step(actions)
            return
        envs.set_state(ended)
    other.set_state(envs.get_state())
    with pytest.raises(pyfastenv.ResetNeededError):
        other.step(actions)


def test_never_reset_environments() -> None:
    envs, other = make("HalfCheetah-v5"), make("HalfCheetah-v5")
    other.reset(seed=0)
    other.set_state(envs.get_state())
    with pytest.raises(pyfastenv.ResetNeededError):
        other.step(np.zeros((NUM_ENVS, 6), np.float32))
    assert_same(other.reset(), envs.reset())  # the same streams, drawn from the system's entropy


@pytest.mark.parametrize("env_id", ["HalfCheetah-v5", "CartPole-v1", "AntGoal-v5"])
def test_into_other_environments(env_id: str) -> None:
    envs = make(env_id)
    prepare(envs)
    advance(envs, "mid-episode")
    state = envs.get_state()
    actions = action_table(envs, 60, seed=9)
    expected = step_through(envs, actions)

    # environment SWAPPED[i] goes on as i did
    envs.set_state(state, SWAPPED)
    assert np.array_equal(envs.get_state(SWAPPED), state)
    swapped = np.empty_like(actions)
    swapped[:, SWAPPED] = actions
    got = step_through(envs, swapped)
    assert_same_trajectories([got[i] for i in SWAPPED], expected)


@pytest.mark.parametrize("mode", MODES)
def test_some_environments_only(mode: str) -> None:
    envs = make("Ant-v5", mode)
    prepare(envs)
    advance(envs, "mid-episode")
    ids = [4, 1]
    state = envs.get_state(ids)
    assert state.shape == (2, envs.state_bytes)
    assert np.array_equal(state, envs.get_state()[ids])
    actions = action_table(envs, 50, seed=9)
    expected = step_through(envs, actions)
    later = envs.get_state()
    envs.set_state(state, ids)
    others = [0, 2, 3, 5]
    assert np.array_equal(envs.get_state(others), later[others])
    got = step_through(envs, actions)
    assert_same_trajectories([got[i] for i in ids], [expected[i] for i in ids])


def test_tasks_and_model_fields_are_restored() -> None:
    envs = make("AntGoal-v5")
    prepare(envs)
    tasks, masses = envs.get_task(), envs.get_model_field("body_mass")
    state = envs.get_state()
    envs.reset_task(np.zeros((NUM_ENVS, 2)))
    envs.set_model_field("body_mass", masses[::-1])
    envs.set_state(state)
    assert np.array_equal(envs.get_task(), tasks)
    assert np.array_equal(envs.get_model_field("body_mass"), masses)


def test_float32_observations_of_unmasked_environments() -> None:
    envs, other = make("Ant-v5", obs_dtype="float32"), make("Ant-v5", obs_dtype="float32")
    envs.reset(seed=0)
    latest = [envs.step(a)[0] for a in action_table(envs, 5)][-1]
    other.set_state(envs.get_state())
    mask = np.arange(NUM_ENVS) == 3
    obs = other.reset(options={"reset_mask": mask})[0]
    assert np.array_equal(obs[~mask], latest[~mask])


FOREIGN: list[tuple[str, str, dict[str, Any]]] = [
    ("HalfCheetah-v5", "Ant-v5", {}),
    ("Hopper-v5", "HalfCheetah-v5", {}),
    ("HalfCheetahDir-v5", "HalfCheetah-v5", {}),
    ("HalfCheetah-v5", "HalfCheetah-v5", {"obs_dtype": "float32"}),
    ("HalfCheetah-v5", "HalfCheetah-v4", {}),
    ("HalfCheetahDir-v5", "HalfCheetahVel-v5", {}),
    ("AntDir-v5", "AntVel-v5", {}),
    ("HalfCheetah-v5", "HalfCheetah-v5", {"frame_skip": 3}),
    ("HalfCheetah-v5", "HalfCheetah-v5", {"exclude_current_positions_from_observation": False}),
    ("HalfCheetah-v5", "HalfCheetah-v5", {"ctrl_cost_weight": 0.2}),
    ("Hopper-v5", "Hopper-v5", {"healthy_z_range": (0.5, 1.0)}),
    ("Hopper-v5", "Hopper-v5", {"terminate_when_unhealthy": False}),
    ("Pendulum-v1", "Pendulum-v1", {"g": 9.0}),
    ("InvertedPendulum-v4", "InvertedPendulum-v5", {}),
]


@pytest.mark.parametrize(("env_id", "other_id", "kwargs"), FOREIGN, ids=str)
def test_states_of_other_environments_are_refused(
    env_id: str, other_id: str, kwargs: dict[str, Any]
) -> None:
    envs, other = make(env_id), make(other_id, **kwargs)
    envs.reset(seed=0)
    other.reset(seed=0)
    before = other.get_state()
    with pytest.raises(ValueError, match="state: "):
        other.set_state(envs.get_state())
    assert np.array_equal(other.get_state(), before)


def test_states_with_other_model_fields_are_refused() -> None:
    envs, other, without = (make("HalfCheetah-v5") for _ in range(3))
    plain = envs.get_state()
    own_field(envs, "dof_damping")
    own_field(other, "dof_armature")  # of the same size
    assert envs.state_bytes == other.state_bytes > plain.shape[1]
    for into, state in ((envs, plain), (envs, other.get_state()), (without, envs.get_state())):
        with pytest.raises(ValueError, match=r"state: .*model fields"):
            into.set_state(state)


def test_states_in_any_memory_layout_and_from_a_file(tmp_path: Path) -> None:
    envs = make("HalfCheetah-v5")
    envs.reset(seed=0)
    state = envs.get_state()
    assert type(state) is np.ndarray and state.flags.c_contiguous and state.flags.owndata
    np.save(tmp_path / "state.npy", state)
    layouts = np.asfortranarray(state), state[::-1].copy()[::-1], np.repeat(state, 2, 0)[::2]
    for layout in (*layouts, np.load(tmp_path / "state.npy", mmap_mode="r")):
        envs.reset(seed=1)
        envs.set_state(layout)
        assert np.array_equal(envs.get_state(), state)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"frame_skip": 5, "ctrl_cost_weight": 0.2}, {"ctrl_cost_weight": 0.2, "frame_skip": 5}),
        ({"ctrl_cost_weight": 1}, {"ctrl_cost_weight": 1.0}),
        ({}, {"frame_skip": 5, "reset_noise_scale": 0.1}),
    ],
    ids=["order", "number form", "defaults"],
)
def test_snapshots_belong_to_equal_arguments(
    one: dict[str, float], other: dict[str, float]
) -> None:
    envs = pyfastenv.make_vec("HalfCheetah-v5", 2, **one)
    same = pyfastenv.make_vec("HalfCheetah-v5", 2, **other)
    different = pyfastenv.make_vec("HalfCheetah-v5", 2, **(other | {"ctrl_cost_weight": 0.3}))
    envs.reset(seed=3)
    state = envs.get_state()
    same.set_state(state)
    assert (same.get_state() == state).all()
    with pytest.raises(ValueError, match="same id, arguments"):
        different.set_state(state)


def test_snapshots_and_copies_belong_to_the_contents_of_the_model_file(tmp_path: Path) -> None:
    """A file that has been edited is another robot."""
    original = Path(gymnasium.__file__).parent / "envs/mujoco/assets/hopper.xml"
    file = tmp_path / "hopper.xml"
    file.write_text(original.read_text())
    envs = pyfastenv.make_vec("Hopper-v5", 2, xml_file=str(file))
    envs.reset(seed=0)
    state, pickled = envs.get_state(), pickle.dumps(envs)
    assert_same(pickle.loads(pickled).get_state(), state)
    file.write_text(original.read_text().replace('size="0.05', 'size="0.06'))
    edited = pyfastenv.make_vec("Hopper-v5", 2, xml_file=str(file))
    for copied in (lambda: edited.set_state(state), lambda: pickle.loads(pickled)):
        with pytest.raises(ValueError, match="contents of the model's file"):
            copied()


def test_a_copy_while_steps_are_under_way_says_what_waits() -> None:
    envs = make("CartPole-v1")
    envs.async_reset(seed=0)
    with pytest.raises(BusyError, match=r"^get_state: "):
        copy.deepcopy(envs)
    envs.recv(NUM_ENVS)
