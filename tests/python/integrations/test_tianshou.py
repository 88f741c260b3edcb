"""Tianshou: its collectors and algorithms see what they see in a DummyVectorEnv, bit for bit."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
import pytest
import torch
from parity import random_actions, wrong_mode
from run_example import run_example
from tianshou.algorithm import DQN, PPO
from tianshou.algorithm.modelfree.dqn import DiscreteQLearningPolicy
from tianshou.algorithm.modelfree.reinforce import ProbabilisticActorPolicy
from tianshou.algorithm.optim import AdamOptimizerFactory
from tianshou.data import AsyncCollector, Collector, VectorReplayBuffer
from tianshou.env import BaseVectorEnv, DummyVectorEnv, VectorEnvNormObs
from tianshou.trainer import OnPolicyTrainerParams
from tianshou.utils.net.common import Net, Recurrent
from tianshou.utils.net.continuous import ContinuousActorProbabilistic, ContinuousCritic

import pyfastenv
from pyfastenv.integrations.tianshou import make_tianshou, to_tianshou

NUM_ENVS = 4


def make_theirs(env_id: str, num_envs: int = NUM_ENVS, **kwargs: Any) -> DummyVectorEnv:
    return DummyVectorEnv(
        [lambda: gymnasium.make(env_id, disable_env_checker=True, **kwargs)] * num_envs
    )


def assert_equal(ours: Any, theirs: Any) -> None:
    assert len(ours) == len(theirs)
    for one, other in zip(ours, theirs, strict=True):
        assert one.shape == other.shape
        if one.dtype == object:
            for info, their_info in zip(one, other, strict=True):
                assert info == their_info
        else:
            assert one.dtype == other.dtype
            np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize(
    ("env_id", "limit"), [("Hopper-v5", 15), ("HalfCheetah-v5", 20), ("CartPole-v1", 25)]
)
@pytest.mark.parametrize("normalized", [False, True])
def test_same_as_dummy_vector_env(env_id: str, limit: int, normalized: bool) -> None:
    """Steps some environments at a time, in any order, and resets the ended ones."""
    ours: BaseVectorEnv = make_tianshou(env_id, NUM_ENVS, max_episode_steps=limit)
    theirs: BaseVectorEnv = make_theirs(env_id, max_episode_steps=limit)
    spaces = ours.action_space, theirs.action_space
    if normalized:
        ours, theirs = VectorEnvNormObs(ours), VectorEnvNormObs(theirs)
    assert len(ours) == NUM_ENVS and not ours.is_async
    assert ours.seed(5) == theirs.seed(5)
    assert [space.sample().tolist() for space in spaces[0]] == [
        space.sample().tolist() for space in spaces[1]
    ]
    assert_equal(ours.reset(), theirs.reset())
    rng = np.random.default_rng(0)
    episodes = 0
    for _ in range(150):
        ids = rng.permutation(NUM_ENVS)[: rng.integers(1, NUM_ENVS + 1)]
        actions = random_actions(spaces[0][0], rng, len(ids))
        results = ours.step(actions, ids)
        assert_equal(results, theirs.step(actions, ids))
        ended = ids[results[2] | results[3]]
        episodes += len(ended)
        if len(ended) > 0:
            assert_equal(ours.reset(ended), theirs.reset(ended))
    assert episodes > 5
    assert_equal(ours.reset(2, seed=9), theirs.reset(2, seed=9))
    assert_equal(ours.reset(seed=9), theirs.reset(seed=9))
    actions = random_actions(spaces[0][0], rng, NUM_ENVS)
    assert_equal(ours.step(actions), theirs.step(actions))
    assert_equal(ours.step(actions[:1], 3), theirs.step(actions[:1], 3))
    ours.close()
    theirs.close()
    with pytest.raises(AssertionError, match="cannot be called after close"):
        ours.reset()


@pytest.mark.parametrize("mode", ["NextStep", "SameStep"])
def test_wrong_autoreset_mode_is_refused(mode: str) -> None:
    with wrong_mode("Tianshou", "Disabled", mode):
        to_tianshou(pyfastenv.make_vec("CartPole-v1", autoreset_mode=mode))


@pytest.mark.parametrize("arguments", [{"wait_num": 0}, {"wait_num": 5}, {"timeout": 0.0}])
def test_bad_arguments(arguments: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=f"^{next(iter(arguments))}: expected "):
        make_tianshou("CartPole-v1", NUM_ENVS, **arguments)


def test_attributes() -> None:
    envs = make_tianshou("Hopper-v5", NUM_ENVS)
    assert envs.observation_space == make_theirs("Hopper-v5").observation_space
    assert envs.get_env_attr("spec", 1)[0].id == "pyfastenv/Hopper-v5"
    envs.set_env_attr("level", 3, [0, 2])
    assert envs.get_env_attr("level", [2, 0]) == [3, 3]
    with pytest.raises(AttributeError):
        envs.get_env_attr("level")
    with pytest.raises(AttributeError):
        envs.set_env_attr("observation_space", None)


@pytest.mark.parametrize(
    "arguments", [{"wait_num": 2}, {"timeout": 0.01}, {"wait_num": NUM_ENVS - 1}]
)
def test_asynchronous_trajectories(arguments: dict[str, Any]) -> None:
    """Whoever is ready steps on; each environment's trajectory is the one of stepping alone."""
    envs = make_tianshou("Hopper-v5", NUM_ENVS, max_episode_steps=12, **arguments)
    theirs = make_theirs("Hopper-v5", max_episode_steps=12)
    assert envs.is_async
    assert envs.seed(1) == theirs.seed(1)
    assert_equal(envs.reset(), theirs.reset())
    rngs = [np.random.default_rng(i) for i in range(NUM_ENVS)]
    counts = np.zeros(NUM_ENVS, int)
    ready = np.arange(NUM_ENVS)
    sent = {}
    for _ in range(120):
        actions = np.array([rngs[i].uniform(-1, 1, 3) for i in ready], np.float32)
        sent |= dict(zip(ready.tolist(), actions, strict=True))
        results = envs.step(actions, ready)
        ready = np.array([info["env_id"] for info in results[4]])
        assert sorted([*envs.ready_id, *envs.waiting_id]) == list(range(NUM_ENVS))
        assert set(ready) == set(envs.ready_id)
        for row, i in enumerate(ready.tolist()):
            assert_equal([r[row : row + 1] for r in results], theirs.step([sent[i]], i))
            counts[i] += 1
        ended = ready[results[2] | results[3]]
        if len(ended) > 0:
            assert_equal(envs.reset(ended), theirs.reset(ended))
    assert counts.min() > 20
    if envs.waiting_id:
        with pytest.raises(AssertionError, match="Cannot interact with environment"):
            envs.step(np.zeros((1, 3)), envs.waiting_id[:1])
        with pytest.raises(RuntimeError, match="are stepping, cannot render"):
            envs.render()
    while envs.waiting_id:
        envs.step(None)
    envs.close()


def test_actions_are_needed() -> None:
    envs = make_tianshou("CartPole-v1", NUM_ENVS)
    with pytest.raises(ValueError, match="expected actions, got None"):
        envs.step(None)


def make_ppo() -> PPO:
    torch.manual_seed(0)
    space = gymnasium.make("Hopper-v5").action_space
    nets = [Net(state_shape=11, hidden_sizes=(16,)) for _ in range(2)]
    policy = ProbabilisticActorPolicy(
        actor=ContinuousActorProbabilistic(preprocess_net=nets[0], action_shape=3, unbounded=True),
        dist_fn=lambda loc_scale: torch.distributions.Independent(
            torch.distributions.Normal(*loc_scale), 1
        ),
        action_space=space,
    )
    critic = ContinuousCritic(preprocess_net=nets[1])
    return PPO(policy=policy, critic=critic, optim=AdamOptimizerFactory(lr=1e-3))


@pytest.mark.filterwarnings("ignore:action_scaling and action_bound_method:UserWarning")
def test_same_training() -> None:
    """PPO's weights after some updates are the same, bit for bit."""
    weights = []
    for make in (make_tianshou, make_theirs):
        ppo = make_ppo()
        np.random.seed(0)
        envs = make("Hopper-v5", NUM_ENVS, max_episode_steps=20)
        envs.seed(0)
        collector = Collector(ppo, VectorEnvNormObs(envs), VectorReplayBuffer(400, NUM_ENVS))
        ppo.run_training(
            OnPolicyTrainerParams(
                training_collector=collector,
                max_epochs=2,
                epoch_num_steps=200,
                collection_step_num_env_steps=100,
                update_step_num_repetitions=2,
                show_progress=False,
                verbose=False,
            )
        )
        weights.append(
            [w.detach().numpy() for w in [*ppo.policy.parameters(), *ppo.critic.parameters()]]
        )
        collector.close()
    assert_equal(*weights)


@pytest.mark.filterwarnings("ignore:Using async setting:UserWarning")
def test_asynchronous_collector() -> None:
    """With a recurrent policy: Tianshou 2.0.1's AsyncCollector fails with others, on any envs."""
    envs = make_tianshou("CartPole-v1", NUM_ENVS, wait_num=2)
    policy = DiscreteQLearningPolicy(
        model=Recurrent(layer_num=1, state_shape=4, action_shape=2, hidden_layer_size=8),
        action_space=envs.action_space[0],
        eps_training=0.5,
    )
    dqn = DQN(policy=policy, optim=AdamOptimizerFactory(lr=1e-3))
    collector = AsyncCollector(dqn, envs, VectorReplayBuffer(2000, NUM_ENVS), True)
    collector.reset()
    stats = collector.collect(n_step=400)
    assert stats.n_collected_steps >= 400 and stats.n_collected_episodes > 5
    data = collector.buffer
    for start, length in zip(*_episodes(data), strict=True):
        rows = np.arange(start, start + length)
        np.testing.assert_array_equal(data.obs_next[rows[:-1]], data.obs[rows[1:]])
    collector.close()


def _episodes(buffer: VectorReplayBuffer) -> tuple[list[int], list[int]]:
    """Starts and lengths of the episodes that ended."""
    starts, lengths = [], []
    for part, offset in zip(buffer.buffers, buffer._offset, strict=True):
        ends = np.flatnonzero(part.done[: len(part)])
        begins = np.concatenate([[0], ends[:-1] + 1])
        starts += (begins + offset).tolist()
        lengths += (ends - begins + 1).tolist()
    return starts, lengths


def test_example() -> None:
    assert "return" in run_example("integration_tianshou.py", "4096")
