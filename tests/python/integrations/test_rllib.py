"""RLlib: its env runner on our environments, and two of them with a pool each."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from typing import Any

import gymnasium
import numpy as np
import pytest
from parity import wrong_mode
from run_example import run_example

import pyfastenv

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # it uses what it has deprecated
    pytest.importorskip("ray.rllib")

    import ray
    from ray.rllib.algorithms.ppo import PPOConfig
    from ray.rllib.env.single_agent_env_runner import SingleAgentEnvRunner
    from ray.rllib.env.single_agent_episode import SingleAgentEpisode
    from ray.tune import register_env

from pyfastenv.integrations.rllib import make_rllib, register_rllib

NUM_ENVS = 3

pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:.*Overriding environment rllib-single-agent-env.*"),
]


def make_config(env: str, **kwargs: Any) -> PPOConfig:
    kwargs = {"num_env_runners": 0, "num_envs_per_env_runner": NUM_ENVS, **kwargs}
    kwargs = {"gym_env_vectorize_mode": "vector_entry_point", **kwargs}
    return (
        PPOConfig()
        .environment(env)
        .env_runners(**kwargs)
        .training(train_batch_size=96, minibatch_size=48, num_epochs=1)
        .debugging(seed=7, log_level="ERROR")
    )


def register_theirs(env_id: str, **kwargs: Any) -> str:
    """gymnasium's own environments, made as RLlib makes vectors, seeded alike."""
    register_env(
        f"theirs/{env_id}",
        lambda context: gymnasium.make_vec(
            env_id, context["num_envs"], vectorization_mode="sync", **kwargs
        ),
    )
    return f"theirs/{env_id}"


def assert_same_episodes(ours: list[SingleAgentEpisode], theirs: list[SingleAgentEpisode]) -> None:
    assert len(ours) == len(theirs)
    for one, other in zip(ours, theirs, strict=True):
        for our_data, their_data in (
            (one.get_observations(), other.get_observations()),
            (one.get_actions(), other.get_actions()),
            (one.get_rewards(), other.get_rewards()),
        ):
            assert our_data.dtype == their_data.dtype
            np.testing.assert_array_equal(our_data, their_data)
        assert one.is_terminated == other.is_terminated
        assert one.is_truncated == other.is_truncated


@pytest.mark.parametrize(
    ("env_id", "limit"),
    [("Hopper-v5", 23), ("HalfCheetah-v5", 40), ("CartPole-v1", 25), ("Pendulum-v1", 30)],
)
def test_same_samples(env_id: str, limit: int) -> None:
    """The same episodes, actions of the same network included, as on gymnasium's environments."""
    samples = []
    for register in (register_rllib, register_theirs):
        runner = SingleAgentEnvRunner(config=make_config(register(env_id, max_episode_steps=limit)))
        runner.assert_healthy()
        samples.append(
            [*runner.sample(num_timesteps=50 * NUM_ENVS), *runner.sample(num_timesteps=70)]
        )
        runner.stop()
    assert_same_episodes(*samples)
    assert any(episode.is_truncated for episode in samples[0])
    terminated = any(episode.is_terminated for episode in samples[0])
    assert terminated == (env_id in ("Hopper-v5", "CartPole-v1"))


def test_arguments() -> None:
    name = register_rllib("HalfCheetah-v5", ctrl_cost_weight=0.5, num_threads=1)
    assert name == "pyfastenv/HalfCheetah-v5"
    config = make_config(name).environment(env_config={"num_threads": 2, "infos": True})
    runner = SingleAgentEnvRunner(config=config)
    assert isinstance(runner.env.unwrapped, pyfastenv.FastVectorEnv)
    assert runner.env.unwrapped.num_threads == 2
    assert runner.env.reset()[1][0].keys() == {"x_position"}
    runner.stop()


@pytest.mark.parametrize("mode", ["SameStep", "Disabled"])
def test_wrong_autoreset_mode_is_refused(mode: str) -> None:
    with wrong_mode("RLlib", "NextStep", mode):
        make_rllib("CartPole-v1", 2, autoreset_mode=mode)
    config = make_config(register_rllib("CartPole-v1", autoreset_mode=mode))
    with wrong_mode("RLlib", "NextStep", mode):
        SingleAgentEnvRunner(config=config)


def test_single_environments_are_refused() -> None:
    config = make_config(register_rllib("CartPole-v1"), gym_env_vectorize_mode="sync")
    with pytest.raises(ValueError, match="gym_env_vectorize_mode='vector_entry_point'"):
        SingleAgentEnvRunner(config=config)


@pytest.fixture
def cluster() -> Iterator[None]:
    ray.init(num_cpus=4, include_dashboard=False, log_to_driver=False)
    yield
    ray.shutdown()


@pytest.mark.usefixtures("cluster")
def test_two_env_runners_have_a_pool_each() -> None:
    config = make_config(
        register_rllib("CartPole-v1"),
        num_env_runners=2,
        num_cpus_per_env_runner=2,
        num_envs_per_env_runner=8,
    )
    algorithm = config.build_algo()
    pools = algorithm.env_runner_group.foreach_env_runner(
        lambda runner: (os.getpid(), runner.env.unwrapped.num_threads, runner.num_envs),
        local_env_runner=False,
    )
    assert len({pid for pid, _, _ in pools} | {os.getpid()}) == 3
    assert [pool[1:] for pool in pools] == [(2, 8), (2, 8)]  # threads as Ray gave CPUs
    before = algorithm.get_weights()
    results = algorithm.train()
    assert results["env_runners"]["num_env_steps_sampled_lifetime"] >= 96
    after = algorithm.get_weights()
    assert any(
        not np.array_equal(before["default_policy"][name], after["default_policy"][name])
        for name in before["default_policy"]
    )
    algorithm.stop()


def test_example() -> None:
    assert "8,192 steps in 2 iterations" in run_example("integration_rllib.py", "2")
