"""The arithmetic of TD3 and its variants is plain torch's; the pool acts as the learner thinks."""

from functools import partial
from typing import Any

import algorithms
import pytest
import torch
from algorithms import make
from small_learners import as_sequential
from torch import Tensor, nn
from torch.testing import assert_close

from pyfastenv.experiments.baselines.plain import descend, follow
from pyfastenv.sampling.rollouts import rollout

pytestmark = pytest.mark.usefixtures("recorded")
small = partial(algorithms.small, "ddpg", total_steps=20_000)
SETTINGS: dict[str, dict[str, Any]] = {
    "ddpg": {},
    "td3": {
        "policy_delay": 3, "target_noise": 0.4, "target_noise_clip": 0.3, "layer_norm": True,
    },
    "td3_bc": {"policy_delay": 3, "target_noise": 0.4, "target_noise_clip": 0.3, "alpha": 1.5},
}  # fmt: skip


@pytest.mark.parametrize("accelerate", ["none", "native"])
@pytest.mark.parametrize("num_seeds", [1, 2])
@pytest.mark.parametrize("name", SETTINGS)
def test_gradient_steps_are_those_of_plain_torch(
    name: str, num_seeds: int, accelerate: str
) -> None:
    config = algorithms.small(
        name,
        env_id="Pusher-v5",
        policy_learning_rate=1e-3,
        critic_learning_rate=2e-3,
        tau=0.1,
        num_seeds=num_seeds,
        accelerate=accelerate,
        **SETTINGS[name],
    )
    algorithm = make(config)
    learner, layout, n = algorithm.learner, algorithm.layout, 16
    assert (learner.choice.accelerator is None) == (accelerate == "none")
    number = 1 if name == "ddpg" else 2

    def networks_of(k: int) -> dict[str, list[nn.Sequential]]:
        each = {"actor": range(k, k + 1), "critic": range(k * number, (k + 1) * number)}
        return {
            prefix + part: [as_sequential(getattr(learner, prefix + part), i) for i in indices]
            for part, indices in each.items()
            for prefix in ("", "target_")
        }

    def adam(networks: list[nn.Sequential], rate: float) -> torch.optim.Adam:
        return torch.optim.Adam([p for each in networks for p in each.parameters()], rate)

    networks = [networks_of(k) for k in range(num_seeds)]
    adams = [(adam(each["actor"], 1e-3), adam(each["critic"], 2e-3)) for each in networks]
    limit = 2.0  # Pusher's actions

    def judge(critics: list[nn.Sequential], obs: Tensor, actions: Tensor) -> list[Tensor]:
        return [critic(torch.cat((obs, limit * actions), 1))[:, 0] for critic in critics]

    metrics = torch.zeros(2, num_seeds)
    for step in range(1, 11):
        obs, next_obs = torch.randn(2, num_seeds, n, layout.obs_size)
        actions = 2.0 * torch.rand(num_seeds, n, layout.action_size) - 1.0
        rewards, terminated = torch.randn(num_seeds, n), torch.rand(num_seeds, n) < 0.3
        rows = layout.pack(obs, actions, next_obs, rewards, terminated)
        noise = torch.randn(num_seeds, *learner.noise_shape(n))
        learner.run(rows[None], noise[None], metrics)
        obs, next_obs, actions, rewards = (x.double() for x in (obs, next_obs, actions, rewards))
        for k, (each, (policy_adam, critic_adam)) in enumerate(zip(networks, adams, strict=True)):
            with torch.no_grad():
                next_actions = each["target_actor"][0](next_obs[k]).tanh()
                if name != "ddpg":
                    next_actions += (0.4 * noise[k].double()).clamp(-0.3, 0.3)
                    next_actions = next_actions.clamp(-1.0, 1.0)
                next_values = judge(each["target_critic"], next_obs[k], next_actions)
                least = torch.stack(next_values).min(0).values
                targets = torch.where(terminated[k], rewards[k], rewards[k] + 0.99 * least)
            critic_loss = torch.zeros(())
            for values in judge(each["critic"], obs[k], actions[k]):
                critic_loss = critic_loss + nn.functional.mse_loss(values, targets)
            descend(critic_adam, critic_loss)
            first = each["critic"][:1]
            acted = each["actor"][0](obs[k]).tanh()
            (values,) = judge(first, obs[k], acted)
            policy_loss = -values.mean()
            if name == "td3_bc":
                policy_loss = 1.5 * policy_loss / values.abs().mean().detach()
                policy_loss = policy_loss + nn.functional.mse_loss(acted, actions[k])
            if name == "ddpg" or step % 3 == 0:
                descend(policy_adam, policy_loss)
                for part in ("actor", "critic"):
                    for online, target in zip(each[part], each[f"target_{part}"], strict=True):
                        follow(target, online, 0.1)
            expected = [critic_loss.item(), policy_loss.item()]
            assert metrics[:, k].tolist() == pytest.approx(expected, rel=1e-4, abs=1e-5)
    assert learner.policy_optimizer.num_steps == (10 if name == "ddpg" else 3)
    for k, each in enumerate(networks):
        for part, mine in networks_of(k).items():
            for ours, theirs in zip(mine, each[part], strict=True):
                assert_close([*ours.parameters()], [*theirs.parameters()], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", ["ddpg", "sac"])
@pytest.mark.parametrize("clip", [10.0, 0.5, 0.0])  # 0: none
def test_the_pool_acts_as_the_learner_thinks(clip: float, name: str) -> None:
    options = {"normalize_obs": True, "learning_starts": 30, "obs_clip": clip}
    options |= {"num_envs": 3, "num_steps": 10, "total_steps": 20_000, "num_seeds": 2}
    algorithm = make(algorithms.small(name, env_id="Pusher-v5", **options))
    while algorithm.global_step < 120:
        algorithm.iterate()
    policies = algorithm.eval_policy()
    batch = rollout(algorithm.envs, policies, 10, policy_id=[0] * 3 + [1] * 3)
    obs = batch.obs.unflatten(1, (2, 3)).transpose(0, 1).flatten(1, 2)  # (K, T * 3, size)
    with torch.no_grad():
        outputs = algorithm.learner.actor(algorithm.normalizer(obs))
    expected = 2.0 * outputs[..., :7].tanh()
    actions = batch.actions.unflatten(1, (2, 3)).transpose(0, 1).flatten(1, 2)
    assert_close(actions, expected, rtol=0.0, atol=1e-5)
    assert [each["count"] for each in algorithm.normalizer.state_dict()["moments"]] == [120] * 2
    assert policies.greedy and algorithm.policies().noise == (0.1 if name == "ddpg" else 0.0)
    # replayed observations are the pool's, normalised by each seed's own moments
    numbers = torch.arange(30).expand(2, 5, -1)
    mine, plain = algorithm.replayed(numbers), algorithm.env_pool.take(numbers)
    for part in (algorithm.layout.obs, algorithm.layout.next_obs):
        normed = algorithm.normalizer(part(plain).transpose(0, 1)).transpose(0, 1)
        assert torch.equal(part(mine), normed) and not torch.equal(normed[:, 0], normed[:, 1])
