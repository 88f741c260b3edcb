"""Results are a function of seeds and actions alone: not of threads, batching, dtype or copying."""

from contextlib import closing
from typing import Any

import numpy as np
import pytest
from parity import MODES, assert_same
from trajectories import (
    action_table,
    assert_same_trajectories,
    reset_ended,
    row_of,
    send_through,
    step_through,
)

import pyfastenv

IDS = [
    "HalfCheetah-v5", "Ant-v5", "Humanoid-v5", "Reacher-v4", "CartPole-v1",
    "MountainCarContinuous-v0", "HalfCheetahDir-v5",
]  # fmt: skip
# every mode with one of them, and every one in a mode
IDS_AND_MODES = sorted({(IDS[0], m) for m in MODES} | {*zip(IDS, 3 * MODES, strict=False)})
NUM_ENVS = 11
STEPS = 65
LIMIT = 31  # every environment ends a few episodes


def make(env_id: str, mode: str = "NextStep", **kwargs: Any) -> pyfastenv.FastVectorEnv:
    envs = pyfastenv.make_vec(
        env_id, NUM_ENVS, autoreset_mode=mode, max_episode_steps=LIMIT, **kwargs
    )
    if env_id == "HalfCheetahDir-v5":
        envs.reset_task(envs.sample_tasks(NUM_ENVS, seed=4))
    return envs


@pytest.mark.parametrize(("env_id", "mode"), IDS_AND_MODES)
def test_threads_and_batching_do_not_matter(env_id: str, mode: str) -> None:
    with closing(make(env_id, mode, num_threads=1)) as envs:
        envs.reset(seed=3)
        actions = action_table(envs, STEPS)
        expected = step_through(envs, actions)
    assert all(len(trajectory) >= STEPS for trajectory in expected)
    for num_threads in (3, 7):
        with closing(make(env_id, mode, num_threads=num_threads)) as envs:
            assert envs.num_threads == num_threads
            envs.reset(seed=3)
            assert_same_trajectories(step_through(envs, actions), expected)
    for num_threads in (1, 3, 7):
        with closing(make(env_id, mode, num_threads=num_threads)) as envs:
            envs.reset(seed=3)
            rng = np.random.default_rng(num_threads)
            assert_same_trajectories(send_through(envs, actions, rng), expected)


def run(env_id: str, mode: str = "NextStep", **kwargs: Any) -> list[tuple[Any, ...]]:
    with closing(make(env_id, mode, **kwargs)) as envs:
        results = [envs.reset(seed=3)]
        for a in action_table(envs, STEPS):
            results.append(envs.step(a))
            for _ in reset_ended(envs, results[-1][2] | results[-1][3]):
                pass
        return results


def as_float32(infos: dict[str, Any]) -> dict[str, Any]:
    """Infos whose final observations are rounded; the rest as it is."""
    if "final_obs" in infos:
        final_obs = infos["final_obs"].copy()
        for i, obs in enumerate(final_obs):
            final_obs[i] = None if obs is None else obs.astype(np.float32)
        infos = {**infos, "final_obs": final_obs}
    return infos


@pytest.mark.parametrize(("env_id", "mode"), IDS_AND_MODES)
def test_float32_observations_are_rounded_float64_ones(env_id: str, mode: str) -> None:
    single = run(env_id, mode, obs_dtype="float32")
    double = run(env_id, mode, obs_dtype=np.float64)
    for ours, expected in zip(single, double, strict=True):
        assert ours[0].dtype == np.float32 and expected[0].dtype == np.float64
        rounded = (expected[0].astype(np.float32), *expected[1:-1], as_float32(expected[-1]))
        assert_same(ours, rounded)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("env_id", ["Ant-v5"])
def test_without_infos_everything_else_is_the_same(env_id: str, mode: str) -> None:
    for ours, expected in zip(run(env_id, mode, infos=False), run(env_id, mode), strict=True):
        assert_same(ours[:-1], expected[:-1])
        kept = {
            key: expected[-1][key] for key in ("final_obs", "_final_obs") if key in expected[-1]
        }
        got = {key: value for key, value in ours[-1].items() if "final_info" not in key}
        assert_same(got, kept)


def test_without_infos_recv_still_names_the_environments() -> None:
    with closing(make("Ant-v5", infos=False)) as envs:
        envs.reset(seed=0)
        envs.send(action_table(envs, 1)[0])
        assert sorted(envs.recv()[4]["env_id"]) == list(range(NUM_ENVS))


@pytest.mark.parametrize("env_id", ["HalfCheetah-v5", "CartPole-v1"])
def test_views_have_the_same_values(env_id: str) -> None:
    with (
        closing(make(env_id, "SameStep", copy=False)) as envs,
        closing(make(env_id, "SameStep")) as other,
    ):
        assert_same(envs.reset(seed=3), other.reset(seed=3))
        for a in action_table(envs, STEPS):
            assert_same(envs.step(a), other.step(a))
        a = action_table(envs, 1)[0]
        envs.send(a[:4], [3, 1, 0, 7])
        other.send(a[:4], [3, 1, 0, 7])
        ours, expected = envs.recv(), other.recv()
        rows = {int(i): k for k, i in enumerate(expected[4]["env_id"])}
        for k, i in enumerate(ours[4]["env_id"]):
            assert row_of(ours, k) == row_of(expected, rows[int(i)])


def test_ring_of_four() -> None:
    # what a call returns is overwritten by the fourth call after it, and by none before
    with closing(make("HalfCheetah-v5", copy=False)) as envs:
        results: list[tuple[np.ndarray, ...]] = [envs.reset(seed=0)[:1]]
        copies = [tuple(array.copy() for array in results[0])]
        for a in action_table(envs, 12):
            results.append(envs.step(a)[:4])
            copies.append(tuple(array.copy() for array in results[-1]))
            for age in range(1, min(4, len(results))):
                assert_same(results[-1 - age], copies[-1 - age], f"{age} calls old")
                assert not np.shares_memory(results[-1 - age][0], results[-1][0])
            if len(results) > 4:
                assert np.shares_memory(results[-5][0], results[-1][0])


def test_new_arrays_share_nothing() -> None:
    with closing(make("HalfCheetah-v5")) as envs:
        first = envs.reset(seed=0)[0]
        kept = first.copy()
        first_of_all = [first]
        for a in action_table(envs, 6):
            first_of_all.append(envs.step(a)[0])
        assert np.array_equal(first, kept)
        for i, a in enumerate(first_of_all):
            assert not any(np.shares_memory(a, b) for b in first_of_all[i + 1 :])
