"""DDPG: its arithmetic against plain torch, its data against the physics, its resuming, and that it
learns."""

# ruff: noqa: E402

from __future__ import annotations

import math
import pathlib
from functools import partial
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import algorithms
from algorithms import make
from torch import Tensor, nn
from trainings import (
    assert_equal,
    assert_goes_on_alike,
    assert_learns_pendulum,
    pendulum,
    through_a_file,
)

from pyfastenv.algorithms import ddpg
from pyfastenv.algorithms.ddpg import DDPG, Config
from pyfastenv.learners.actor_critic import Batch
from pyfastenv.nn.networks import MLP
from pyfastenv.sampling.rollouts import rollout
from pyfastenv.training import saved

pytestmark = pytest.mark.usefixtures("one_torch_thread")
Path = pathlib.Path
small = partial(algorithms.small, "ddpg", total_steps=20_000)


# ---- the update ----------------------------------------------------------------------------------


def as_sequential(network: MLP, k: int = 0) -> nn.Sequential:
    layers: list[nn.Module] = []
    for weight, bias in zip(network.weight_list, network.bias_list, strict=True):
        linear = nn.Linear(*weight.shape[1:])
        linear.weight.data = weight[k].detach().t().clone()
        linear.bias.data = bias[k].detach().clone()
        layers += [linear, nn.ReLU()]
    return nn.Sequential(*layers[:-1])


def flat(network: nn.Sequential) -> Tensor:
    """In the order of FlatParameters: all weights, then all biases."""
    linears = [layer for layer in network if isinstance(layer, nn.Linear)]
    parts = [layer.weight.t().flatten() for layer in linears] + [layer.bias for layer in linears]
    return torch.cat([part.detach() for part in parts])


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
            torch.testing.assert_close(flat(mine), flat(each[name]), rtol=1e-4, atol=1e-5)


def test_updates_per_step_counts_steps_of_all_environments() -> None:
    algorithm = make(small(updates_per_step=0.25))
    metrics = algorithm.iterate()
    assert algorithm.global_step == 60
    assert metrics.keys() == {"time/sample_s", "time/update_s"}  # explored, learned nothing
    for _ in range(4):
        algorithm.iterate()
    assert algorithm.global_step == 180
    assert algorithm.learner.critic_optimizer.state_dict()["step"] == 30
    assert algorithm.learner.policy_optimizer.state_dict()["step"] == 30
    algorithm = make(small(updates_per_step=7))  # more than are drawn at once
    metrics = [algorithm.iterate() for _ in range(2)][-1]
    assert algorithm.learner.critic_optimizer.state_dict()["step"] == 210
    assert metrics.keys() >= {"loss/critic", "loss/policy", "time/update_s"}


# ---- the data ------------------------------------------------------------------------------------


def test_both_learning_rates_fall() -> None:
    algorithm = make(small(total_steps=1_000, anneal_to=0.2))
    for _ in range(3):
        algorithm.iterate()
    done = (algorithm.global_step - 30) / 1_000  # where the last iteration began
    share = 0.2 + 0.8 * 0.5 * (1.0 + math.cos(math.pi * done))
    assert algorithm.learner.policy_optimizer.lr == pytest.approx(1e-3 * share)
    assert algorithm.learner.critic_optimizer.lr == pytest.approx(
        share * algorithm.config.critic_learning_rate
    )
    assert share < 1.0


def test_time_limits_bootstrap_from_their_last_observation() -> None:
    # 3 environments, 240 + 2 * 120 steps each: two time limits, one explored and one rolled out
    algorithm = make(small(num_steps=120, learning_starts=720, buffer_size=2_000))
    returns = [algorithm.iterate().get("train/return") for _ in range(3)]
    assert [value is None for value in returns] == [True, True, False]
    (rows,) = algorithm.env_pool.rows()
    assert algorithm.global_step == len(rows) == 1_440
    layout = algorithm.layout
    assert (layout.continues(rows) == 1.0).all()  # the future counts, time limit or not
    # no transition leads into another episode
    batch = Batch.of(rows, layout)
    expected = pendulum(batch.obs, 2.0 * batch.actions)
    torch.testing.assert_close(batch.next_obs, expected, rtol=0.0, atol=1e-4)
    drawn, _ = algorithm.draw(5)
    assert drawn.shape == (5, 1, 16, layout.width)
    known = {tuple(row) for row in rows.tolist()}
    assert {tuple(row) for row in drawn.flatten(0, 2).tolist()} <= known


def test_terminations_do_not_bootstrap() -> None:
    algorithm = make(small(env_id="InvertedPendulum-v5", learning_starts=300, buffer_size=600))
    for _ in range(11):
        algorithm.iterate()
    (rows,) = algorithm.env_pool.rows()
    assert len(rows) == 600
    # terminated: |angle| > 0.2, which no other observation has
    layout = algorithm.layout
    fallen = layout.next_obs(rows)[:, 1].abs() > 0.2
    assert fallen.any()
    assert torch.equal(layout.continues(rows), (~fallen).float())
    assert (layout.obs(rows)[:, 1].abs() <= 0.2).all()


def test_exploration_is_uniform_over_the_action_space() -> None:
    algorithm = make(small(num_envs=20, learning_starts=4_000, buffer_size=4_000))
    algorithm.iterate()
    (rows,) = algorithm.env_pool.rows()
    actions = 2.0 * Batch.of(rows, algorithm.layout).actions.flatten()
    assert actions.min() >= -2.0 and actions.max() <= 2.0
    counts = torch.histc(actions, bins=10, min=-2.0, max=2.0)
    # 400 each, standard deviation 19
    assert counts.sum() == 4_000
    assert counts.min() > 300 and counts.max() < 500


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


# ---- resuming ------------------------------------------------------------------------------------


@pytest.mark.parametrize("env_id", ["Pendulum-v1", "InvertedPendulum-v5"])
@pytest.mark.parametrize("iterations", [0, 1, 5])  # new; explored; learning, with a full buffer
@pytest.mark.parametrize("normalize_obs", [False, True])
def test_a_resumed_run_is_the_same_bit_for_bit(
    env_id: str, iterations: int, normalize_obs: bool
) -> None:
    config = small(env_id=env_id, normalize_obs=normalize_obs)
    algorithm = make(config)
    for _ in range(iterations):
        algorithm.iterate()
    state = through_a_file(algorithm.state_dict())
    torch.manual_seed(99)
    resumed = DDPG(small(env_id=env_id, normalize_obs=normalize_obs, num_threads=2), restore=state)
    assert_goes_on_alike(algorithm, resumed, 5)
    assert_equal(algorithm.state_dict(), resumed.state_dict())


# ---- seeds side by side --------------------------------------------------------------------------


def test_three_seeds_are_three_runs() -> None:
    options = {"normalize_obs": True, "updates_per_step": 0.2, "buffer_size": 200}
    together = make(small(seed=4, num_seeds=3, **options))
    singles = [make(small(seed=4 + k, **options)) for k in range(3)]
    for algorithm in (together, *singles):
        for _ in range(4):
            algorithm.iterate()
    for k, single in enumerate(singles):
        assert single.global_step == together.global_step
        for name in ("streams", "exploration_streams"):
            mine = getattr(together, name).state_dict()["generators"][k]
            assert torch.equal(mine, getattr(single, name).state_dict()["generators"][0])
        rows, alone = together.env_pool.rows()[k], single.env_pool.rows()[0]
        torch.testing.assert_close(rows, alone, rtol=1e-4, atol=1e-4)
        for network in ("actor", "critic", "target_actor", "target_critic"):
            for a, b in zip(
                getattr(together.learner, network).parameters(),
                getattr(single.learner, network).parameters(),
                strict=True,
            ):
                torch.testing.assert_close(a[k : k + 1], b, rtol=1e-4, atol=1e-4)
        moments = together.normalizer.state_dict()["moments"][k]
        alone = single.normalizer.state_dict()["moments"][0]
        torch.testing.assert_close(moments["mean"], alone["mean"], rtol=1e-4, atol=1e-4)
    pools = together.env_pool.rows()
    assert not torch.equal(pools[0], pools[1]) and not torch.equal(pools[1], pools[2])


# ---- learning ------------------------------------------------------------------------------------


def test_it_learns_pendulum() -> None:
    config = Config(num_threads=1, total_steps=12_000)
    assert_learns_pendulum(config, make, 16)


def test_a_run_leaves_a_policy(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    config = small(
        env_id="Reacher-v5",
        total_steps=150,
        eval_every=60,
        eval_episodes=2,
        run_dir=tmp_path / "run",
        loggers=(),
        quiet=True,
    )
    result = ddpg.train(config)
    assert result.global_step == 150
    assert math.isfinite(result.evaluation["eval/return"])
    again = saved.evaluate_run(tmp_path / "run", episodes=2, seed=config.seed)
    assert again.metrics() == result.evaluation


# ---- mistakes ------------------------------------------------------------------------------------


def test_discrete_actions_are_refused(tmp_path: Path) -> None:
    config = small(env_id="CartPole-v1", run_dir=tmp_path / "run", quiet=True)
    with pytest.raises(ValueError, match=r"ddpg needs continuous actions.*CartPole-v1.*try ppo"):
        ddpg.train(config)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"num_steps": 0}, "num_steps: expected at least 1, got 0"),
        ({"buffer_size": 0}, "buffer_size: expected at least 1, got 0"),
        ({"batch_size": 0}, "batch_size: expected at least 1, got 0"),
        ({"updates_per_step": 0.0}, "updates_per_step: expected more than 0, got 0.0"),
        ({"critic_learning_rate": math.nan}, "critic_learning_rate: expected more than 0, got nan"),
        ({"noise": -0.1}, "noise: expected at least 0, got -0.1"),
        ({"obs_clip": -5.0}, "obs_clip: expected at least 0, got -5.0"),
        ({"tau": 1.5}, "tau: expected 0 to 1, got 1.5"),
        ({"gamma": -1.0}, "gamma: expected 0 to 1, got -1.0"),
        ({"learning_starts": 20_000}, "learning_starts: expected less than total_steps = 20000"),
    ],
)
def test_options_that_cannot_be(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        small(**options).check()


def test_another_buffer_size_does_not_resume() -> None:
    algorithm = make(small())
    algorithm.iterate()
    with pytest.raises(ValueError, match="at most 50 rows, got 100"):
        DDPG(small(buffer_size=50), restore=algorithm.state_dict())
