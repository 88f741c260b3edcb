"""DDPG's arithmetic is plain torch's, and the pool acts as the learner thinks."""

from __future__ import annotations

from functools import partial

import algorithms
import pytest
import torch
from algorithms import make
from small_learners import as_sequential
from torch import Tensor, nn

from pyfastenv.sampling.rollouts import rollout

pytestmark = pytest.mark.usefixtures("one_torch_thread")
small = partial(algorithms.small, "ddpg", total_steps=20_000)


@pytest.mark.parametrize("accelerate", ["none", "native"])
@pytest.mark.parametrize("num_seeds", [1, 2])
def test_gradient_steps_are_those_of_plain_torch(num_seeds: int, accelerate: str) -> None:
    algorithm = make(
        small(
            env_id="Pusher-v5",
            policy_learning_rate=1e-3,
            critic_learning_rate=2e-3,
            tau=0.1,
            num_seeds=num_seeds,
            accelerate=accelerate,
        )
    )
    learner, layout, n = algorithm.learner, algorithm.layout, 16
    assert (learner.choice.accelerator is None) == (accelerate == "none")
    names = ("actor", "critic", "target_actor", "target_critic")
    networks = [
        {name: as_sequential(getattr(learner, name), k) for name in names} for k in range(num_seeds)
    ]
    adams = [
        (
            torch.optim.Adam(each["actor"].parameters(), 1e-3),
            torch.optim.Adam(each["critic"].parameters(), 2e-3),
        )
        for each in networks
    ]
    limit = 2.0  # Pusher's actions

    def act(network: nn.Sequential, obs: Tensor) -> Tensor:
        return limit * torch.tanh(network(obs))

    def judge(network: nn.Sequential, obs: Tensor, actions: Tensor) -> Tensor:
        value: Tensor = network(torch.cat((obs, actions), 1))[:, 0]
        return value

    metrics = torch.zeros(2, num_seeds)
    for _ in range(10):
        obs, next_obs = torch.randn(2, num_seeds, n, layout.obs_size)
        actions = 2.0 * torch.rand(num_seeds, n, layout.action_size) - 1.0
        rewards, terminated = torch.randn(num_seeds, n), torch.rand(num_seeds, n) < 0.3
        rows = layout.pack(obs, actions, next_obs, rewards, terminated)
        learner.run(rows[None], rows.new_empty(1, num_seeds, 0), metrics)
        obs, next_obs, actions, rewards = (x.double() for x in (obs, next_obs, actions, rewards))
        for k, (each, (policy_adam, critic_adam)) in enumerate(zip(networks, adams, strict=True)):
            with torch.no_grad():
                next_actions = act(each["target_actor"], next_obs[k])
                next_values = judge(each["target_critic"], next_obs[k], next_actions)
                targets = torch.where(terminated[k], rewards[k], rewards[k] + 0.99 * next_values)
            values = judge(each["critic"], obs[k], limit * actions[k])
            critic_loss = nn.functional.mse_loss(values, targets)
            critic_adam.zero_grad()
            critic_loss.backward()
            critic_adam.step()
            policy_loss = -judge(each["critic"], obs[k], act(each["actor"], obs[k])).mean()
            policy_adam.zero_grad()
            policy_loss.backward()
            policy_adam.step()
            for name in ("actor", "critic"):
                online, target = each[name], each[f"target_{name}"]
                for slow, fast in zip(target.parameters(), online.parameters(), strict=True):
                    slow.data = 0.9 * slow.data + 0.1 * fast.data
            expected = [critic_loss.item(), policy_loss.item()]
            assert metrics[:, k].tolist() == pytest.approx(expected, rel=1e-4, abs=1e-5)
    for k, each in enumerate(networks):
        for name in names:
            mine = as_sequential(getattr(learner, name), k)
            for a, b in zip(mine.parameters(), each[name].parameters(), strict=True):
                torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("clip", [10.0, 0.5, 0.0])  # 0: none
def test_the_pool_acts_as_the_learner_thinks(clip: float) -> None:
    options = {"normalize_obs": True, "learning_starts": 30, "obs_clip": clip}
    algorithm = make(small(env_id="Pusher-v5", **options))
    for _ in range(4):
        algorithm.iterate()
    batch = rollout(algorithm.envs, algorithm.eval_policy(), 10)
    with torch.no_grad():
        obs = algorithm.normalizer(batch.obs.flatten(0, 1)[None])
        actions = 2.0 * algorithm.learner.actor(obs)[0].tanh()
    torch.testing.assert_close(batch.actions.flatten(0, 1), actions, rtol=0.0, atol=1e-5)
    (moments,) = algorithm.normalizer.state_dict()["moments"]
    assert moments["count"] == 120
    assert algorithm.policies().noise == 0.1
