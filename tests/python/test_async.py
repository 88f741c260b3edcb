"""send, recv and async_reset: what is under way, what comes when, and what it looks like."""

import time
from typing import Any

import numpy as np
import pytest
from parity import MODES, assert_same
from trajectories import action_table, row_of

import pyfastenv

NUM_ENVS = 6
THREADS = [1, 3]


def make(
    env_id: str = "HalfCheetah-v5", mode: str = "NextStep", **kwargs: Any
) -> pyfastenv.FastVectorEnv:
    return pyfastenv.make_vec(env_id, NUM_ENVS, autoreset_mode=mode, **kwargs)


def make_pair(
    env_id: str = "HalfCheetah-v5", mode: str = "NextStep", **kwargs: Any
) -> tuple[pyfastenv.FastVectorEnv, pyfastenv.FastVectorEnv]:
    """Two that were reset alike: one to send to, one to step."""
    envs, other = make(env_id, mode, **kwargs), make(env_id, mode, **kwargs)
    assert_same(envs.reset(seed=0), other.reset(seed=0))
    return envs, other


def by_env(result: tuple[Any, ...]) -> dict[int, Any]:
    """The rows of a recv by environment, each checked to be named once."""
    ids = result[4]["env_id"].tolist()
    assert len(ids) == len(set(ids)) == len(result[0])
    return {i: row_of(result, k) for k, i in enumerate(ids)}


def rows(result: tuple[Any, ...]) -> dict[int, Any]:
    """The rows of a step or reset by environment."""
    return {i: row_of(result, i) for i in range(NUM_ENVS)}


@pytest.mark.parametrize("num_threads", THREADS)
@pytest.mark.parametrize("env_id", ["HalfCheetah-v5", "Ant-v5", "CartPole-v1"])
def test_async_reset_is_reset(env_id: str, num_threads: int) -> None:
    envs, other = make_pair(env_id, num_threads=num_threads)
    seeds: list[Any] = [None, 7, [1, None, 2, 3, None, 2**70]]
    for seed in seeds:
        envs.async_reset(seed=seed)
        result = envs.recv()
        obs, infos = other.reset(seed=seed)
        nothing = np.zeros(NUM_ENVS)
        expected = (obs, nothing, nothing.astype(bool), nothing.astype(bool), infos)
        assert by_env(result) == rows(expected)
        assert envs.np_random_seed == other.np_random_seed
        assert result[1].dtype == np.float64 and not result[1].any()


def test_async_reset_takes_bounds_and_no_mask() -> None:
    envs, other = make("CartPole-v1"), make("CartPole-v1")
    options = {"low": 0.01, "high": 0.02}
    envs.async_reset(seed=0, options=options)
    obs, *_, infos = envs.recv()
    assert options == {"low": 0.01, "high": 0.02}
    assert np.array_equal(obs[np.argsort(infos["env_id"])], other.reset(seed=0, options=options)[0])
    # the bounds are this reset's, not the next autoreset's
    assert ((obs >= 0.01) & (obs <= 0.02)).all()
    with pytest.raises(ValueError, match="reset_mask"):
        envs.async_reset(options={"reset_mask": np.ones(NUM_ENVS, bool)})


def test_bounds_of_async_reset_are_not_the_next_autoresets() -> None:
    results = []
    for sent in (True, False):
        envs = make("CartPole-v1")
        options = {"low": 0.049, "high": 0.05}
        if sent:
            envs.async_reset(seed=0, options=options)
            envs.recv()
        else:
            envs.reset(seed=0, options=options)
        received = []
        for actions in np.ones((30, NUM_ENVS), int):
            envs.send(actions)
            received.append(by_env(envs.recv()))
        results.append(received)
    assert results[0] == results[1]


@pytest.mark.parametrize("num_threads", THREADS)
def test_env_id(num_threads: int) -> None:
    envs, _ = make_pair(num_threads=num_threads)
    envs.send(np.zeros((3, 6), np.float32), [4, 0, 2])
    infos = envs.recv()[4]
    assert infos["env_id"].dtype == np.int32 and infos["env_id"].shape == (3,)
    assert sorted(infos["env_id"]) == [0, 2, 4]
    assert infos["_env_id"].dtype == np.bool_ and infos["_env_id"].tolist() == [True] * 3


def test_one_thread_works_in_the_order_sent() -> None:
    envs, _ = make_pair(num_threads=1)
    envs.send(np.zeros((3, 6), np.float32), [4, 0, 2])
    envs.send(np.zeros((2, 6), np.float32), [1, 5])
    assert envs.recv()[4]["env_id"].tolist() == [4, 0, 2, 1, 5]


@pytest.mark.parametrize("num_threads", THREADS)
def test_min_envs_above_what_is_under_way_is_all_of_it(num_threads: int) -> None:
    envs, _ = make_pair(num_threads=num_threads)
    envs.send(np.zeros((2, 6), np.float32), [1, 4])
    assert set(by_env(envs.recv(min_envs=NUM_ENVS))) == {1, 4}


@pytest.mark.parametrize("num_threads", THREADS)
def test_max_envs_alone(num_threads: int) -> None:
    # without min_envs: waits for all that are under way, takes as many as asked for
    envs, other = make_pair(num_threads=num_threads)
    actions = action_table(envs, 1)[0]
    envs.send(actions)
    parts = [by_env(envs.recv(max_envs=4)), by_env(envs.recv(max_envs=4))]
    assert [len(part) for part in parts] == [4, 2]
    assert parts[0] | parts[1] == rows(other.step(actions))


@pytest.mark.parametrize("timeout", [0.0, 1e-3, float("inf")])
@pytest.mark.parametrize("num_threads", THREADS)
def test_timeout_loses_nothing(num_threads: int, timeout: float) -> None:
    envs, other = make_pair("Humanoid-v5", num_threads=num_threads)
    for actions in action_table(envs, 5):
        envs.send(actions)
        received = {}
        while len(received) < NUM_ENVS:
            part = by_env(envs.recv(timeout=timeout))
            assert part  # at least one
            if timeout >= 10.0:
                assert len(part) == NUM_ENVS
            received |= part
        assert received == rows(other.step(actions))


def test_timeout_bounds_the_wait() -> None:
    # a thousand environments take seconds
    envs = pyfastenv.make_vec("Humanoid-v5", 1_000, num_threads=2, frame_skip=100)
    envs.reset(seed=0)
    envs.send(np.zeros((1_000, 17), np.float32))
    total = len(envs.recv(timeout=0.005)[0])
    assert 0 < total < 1_000
    while total < 1_000:
        total += len(envs.recv(timeout=0.05)[0])


def test_results_wait_for_their_receiver() -> None:
    envs, other = make_pair(num_threads=3)
    actions = action_table(envs, 1)[0]
    envs.send(actions)
    time.sleep(0.5)
    assert by_env(envs.recv(timeout=0.0)).keys() == rows(other.step(actions)).keys()


def test_actions_are_copied() -> None:
    envs, other = make_pair(num_threads=1)
    actions = action_table(envs, 1)[0]
    sent = actions.copy()
    envs.send(sent)
    sent[:] = 99.0
    assert by_env(envs.recv()) == rows(other.step(actions))


@pytest.mark.parametrize("env_id", ["HalfCheetah-v5", "Ant-v4", "MountainCarContinuous-v0"])
def test_float64_actions_are_used_as_they_are(env_id: str) -> None:
    envs, other = make_pair(env_id, num_threads=2)
    for actions in action_table(envs, 30):
        wide = actions.astype(np.float64) + 1e-12
        envs.send(wide)
        result = envs.recv()
        assert by_env(result) == rows(other.step(wide))  # dtypes of info entries included


def test_infos_follow_the_dtype_of_the_actions() -> None:
    envs, _ = make_pair(num_threads=1)
    for dtypes, expected in [
        ([np.float32], np.float32),
        ([np.float64], np.float64),
        ([np.float32, np.float64], np.float64),
    ]:
        for env_id, dtype in enumerate(dtypes):
            envs.send(np.zeros((1, 6), dtype), [env_id])
        assert envs.recv()[4]["reward_ctrl"].dtype == expected


@pytest.mark.parametrize("num_threads", THREADS)
@pytest.mark.parametrize("env_id", ["HalfCheetah-v5", "Hopper-v5", "CartPole-v1"])
@pytest.mark.parametrize("mode", MODES)
def test_ends_of_episodes(env_id: str, mode: str, num_threads: int) -> None:
    envs, other = make_pair(env_id, mode, num_threads=num_threads, max_episode_steps=13)
    finals = 0
    for actions in action_table(envs, 60):
        envs.send(actions[::-1], np.arange(NUM_ENVS)[::-1])
        received: dict[int, Any] = {}
        while len(received) < NUM_ENVS:
            result = envs.recv(1, max_envs=4)
            ended = result[2] | result[3]
            if mode == "SameStep" and ended.any():
                finals += int(ended.sum())
                assert np.array_equal(result[4]["_final_obs"], ended)
                assert np.array_equal(result[4]["_final_info"], ended)
                for row, final in enumerate(result[4]["final_obs"]):
                    assert (final is not None) == ended[row]
            else:
                assert "final_obs" not in result[4] and "final_info" not in result[4]
            received |= by_env(result)
        stepped = other.step(actions)
        assert received == rows(stepped)
        ended = stepped[2] | stepped[3]
        if mode == "Disabled" and ended.any():
            for i in np.flatnonzero(ended):
                with pytest.raises(pyfastenv.ResetNeededError):
                    envs.send(actions[[i]], [i])
            options = {"reset_mask": ended}
            assert_same(envs.reset(options=options), other.reset(options=options))
    assert mode != "SameStep" or finals >= 4 * NUM_ENVS


def test_reward_of_an_autoreset_is_zero() -> None:
    envs, _ = make_pair(max_episode_steps=3)
    for step, actions in enumerate(action_table(envs, 8)):
        envs.send(actions)
        _, rewards, terminations, truncations, infos = envs.recv()
        if step % 4 == 3:
            assert not (rewards.any() or terminations.any() or truncations.any())
            assert "x_velocity" not in infos and infos["_x_position"].all()
        else:
            assert rewards.all() and truncations.all() == (step % 4 == 2)
