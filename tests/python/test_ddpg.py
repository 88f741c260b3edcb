"""DDPG: its arithmetic against plain torch, its data against the physics, its resuming, and that it
learns."""

# ruff: noqa: E402

from __future__ import annotations

import io
import math
import pathlib
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from torch import Tensor, nn

from pyfastenv.algorithms import ddpg
from pyfastenv.algorithms.ddpg import DDPG, Config, Minibatch
from pyfastenv.nn.networks import MLP
from pyfastenv.sampling.rollouts import rollout
from pyfastenv.training import saved
from pyfastenv.training.evaluation import evaluate, make_eval_envs

pytestmark = [pytest.mark.timeout(60), pytest.mark.usefixtures("one_torch_thread")]
Path = pathlib.Path


def small(**options: Any) -> Config:
    defaults = {
        "num_envs": 3,
        "num_threads": 1,
        "num_steps": 10,
        "learning_starts": 60,
        "batch_size": 16,
        "buffer_size": 100,
        "hidden_sizes": (16, 16),
    }
    return Config(**{**defaults, **options})


def make(config: Config) -> DDPG:
    config.check()
    return DDPG(config)


def through_a_file(state: dict[str, Any]) -> dict[str, Any]:
    file = io.BytesIO()
    torch.save(state, file)
    file.seek(0)
    loaded: dict[str, Any] = torch.load(file, weights_only=True)
    return loaded


def assert_same(a: Any, b: Any) -> None:
    assert type(a) is type(b)
    if isinstance(a, dict):
        assert a.keys() == b.keys()
        for key in a:
            assert_same(a[key], b[key])
    elif isinstance(a, Tensor):
        assert torch.equal(a, b)
    else:
        assert a == b


# ---- the update ----------------------------------------------------------------------------------


def as_sequential(network: MLP) -> nn.Sequential:
    layers: list[nn.Module] = []
    for weight, bias in zip(network.weight_list, network.bias_list, strict=True):
        linear = nn.Linear(*weight.shape[1:])
        linear.weight.data = weight[0].detach().t().clone()
        linear.bias.data = bias[0].detach().clone()
        layers += [linear, nn.ReLU()]
    return nn.Sequential(*layers[:-1])


def flat(network: nn.Sequential) -> Tensor:
    """In the order of FlatParameters: all weights, then all biases."""
    linears = [layer for layer in network if isinstance(layer, nn.Linear)]
    parts = [layer.weight.t().flatten() for layer in linears] + [layer.bias for layer in linears]
    return torch.cat([part.detach() for part in parts])


def test_gradient_steps_are_those_of_plain_torch() -> None:
    algorithm = make(
        small(env_id="Pusher-v5", policy_learning_rate=1e-3, critic_learning_rate=2e-3, tau=0.1)
    )
    policy, critic, target_policy, target_critic = (
        as_sequential(network)
        for network in (
            algorithm.policy,
            algorithm.critic,
            algorithm.target_policy,
            algorithm.target_critic,
        )
    )
    policy_adam = torch.optim.Adam(policy.parameters(), 1e-3)
    critic_adam = torch.optim.Adam(critic.parameters(), 2e-3)
    limit = 2.0  # Pusher's actions
    obs_size, action_size, n = algorithm.obs_size, len(algorithm.box.low), 16

    def act(network: nn.Sequential, obs: Tensor) -> Tensor:
        return limit * torch.tanh(network(obs))

    def judge(network: nn.Sequential, obs: Tensor, actions: Tensor) -> Tensor:
        value: Tensor = network(torch.cat((obs, actions), 1))[:, 0]
        return value

    for _ in range(10):
        obs, next_obs = torch.randn(2, n, obs_size)
        actions = limit * (2.0 * torch.rand(n, action_size) - 1.0)
        rewards = torch.randn(n)
        terminated = torch.rand(n) < 0.3
        discounts = 0.99 * (~terminated).float()
        with torch.no_grad():
            metrics = algorithm._gradient_step(
                Minibatch(obs, torch.cat((obs, actions), 1), rewards, next_obs, discounts),
                metrics=True,
            )

        with torch.no_grad():
            next_values = judge(target_critic, next_obs, act(target_policy, next_obs))
            targets = torch.where(terminated, rewards, rewards + 0.99 * next_values)
        critic_loss = nn.functional.mse_loss(judge(critic, obs, actions), targets)
        critic_adam.zero_grad()
        critic_loss.backward()
        critic_adam.step()
        policy_loss = -judge(critic, obs, act(policy, obs)).mean()
        policy_adam.zero_grad()
        policy_loss.backward()
        policy_adam.step()
        for target, online in ((target_policy, policy), (target_critic, critic)):
            for slow, fast in zip(target.parameters(), online.parameters(), strict=True):
                slow.data = 0.9 * slow.data + 0.1 * fast.data

        assert metrics is not None
        assert metrics.tolist() == pytest.approx([critic_loss.item(), policy_loss.item()], rel=1e-4)
    for mine, theirs in (
        (algorithm.flat_policy, policy),
        (algorithm.flat_critic, critic),
        (algorithm.flat_target_policy, target_policy),
        (algorithm.flat_target_critic, target_critic),
    ):
        torch.testing.assert_close(mine.parameter.data, flat(theirs), rtol=1e-4, atol=1e-5)


def test_updates_per_step_counts_steps_of_all_environments() -> None:
    algorithm = make(small(updates_per_step=0.25))
    metrics = algorithm.iterate()
    assert algorithm.global_step == 60
    assert metrics.keys() == {"time/sample_s", "time/update_s"}  # explored, learned nothing
    for _ in range(4):
        algorithm.iterate()
    assert algorithm.global_step == 180
    assert algorithm.critic_optimizer.state_dict()["step"] == 30
    assert algorithm.policy_optimizer.state_dict()["step"] == 30
    algorithm = make(small(updates_per_step=7))  # more than are drawn at once
    metrics = [algorithm.iterate() for _ in range(2)][-1]
    assert algorithm.critic_optimizer.state_dict()["step"] == 210
    assert metrics.keys() >= {"loss/critic", "loss/policy", "time/update_s"}


# ---- the data ------------------------------------------------------------------------------------


def pendulum(obs: Tensor, actions: Tensor) -> Tensor:
    """gymnasium's Pendulum-v1: the observation after ``obs``."""
    theta = torch.atan2(obs[:, 1], obs[:, 0])
    speed = (obs[:, 2] + (15.0 * theta.sin() + 3.0 * actions[:, 0]) * 0.05).clamp(-8.0, 8.0)
    theta = theta + speed * 0.05
    return torch.stack((theta.cos(), theta.sin(), speed), 1)


def test_time_limits_bootstrap_from_their_last_observation() -> None:
    # 3 environments, 240 + 2 * 120 steps each: two time limits, one explored and one rolled out
    algorithm = make(small(num_steps=120, learning_starts=720, buffer_size=2_000))
    returns = [algorithm.iterate().get("train/return") for _ in range(3)]
    assert [value is None for value in returns] == [True, True, False]
    assert algorithm.global_step == len(algorithm.buffer) == 1_440
    drawn = algorithm.buffer.sample(20_000, algorithm.generator)  # each of the 1,440 surely
    assert not drawn.terminated.any()
    # no transition leads into another episode
    expected = pendulum(drawn.obs, drawn.actions)
    torch.testing.assert_close(drawn.next_obs, expected, rtol=0.0, atol=1e-4)
    for minibatch in algorithm._draw(5):
        assert (minibatch.discounts == 0.99).all()  # the future counts, time limit or not


def test_terminations_do_not_bootstrap() -> None:
    algorithm = make(small(env_id="InvertedPendulum-v5", learning_starts=300, buffer_size=600))
    for _ in range(11):
        algorithm.iterate()
    assert len(algorithm.buffer) == 600
    drawn = algorithm.buffer.sample(10_000, algorithm.generator)
    assert drawn.terminated.any()
    # terminated: |angle| > 0.2, which no other observation has
    assert torch.equal(drawn.next_obs[:, 1].abs() > 0.2, drawn.terminated)
    assert (drawn.obs[:, 1].abs() <= 0.2).all()
    for minibatch in algorithm._draw(5):
        fallen = minibatch.next_obs[:, 1].abs() > 0.2
        assert torch.equal(minibatch.discounts, torch.where(fallen, 0.0, 0.99))


def test_exploration_is_uniform_over_the_action_space() -> None:
    algorithm = make(small(num_envs=20, learning_starts=4_000))
    actions = algorithm._explore().actions.flatten()
    assert actions.min() >= -2.0 and actions.max() <= 2.0
    counts = torch.histc(actions, bins=10, min=-2.0, max=2.0)
    # 400 each, standard deviation 19
    assert counts.sum() == 4_000
    assert counts.min() > 300 and counts.max() < 500


def test_the_pool_acts_as_the_learner_thinks() -> None:
    algorithm = make(small(env_id="Pusher-v5", normalize_obs=True, learning_starts=30))
    for _ in range(4):
        algorithm.iterate()
    batch = rollout(algorithm.envs, algorithm.eval_policy(), 10)
    with torch.no_grad():
        obs = algorithm.normalizer(batch.obs.flatten(0, 1))
        actions, _, _ = algorithm._act(algorithm.policy, obs)
    torch.testing.assert_close(batch.actions.flatten(0, 1), actions, rtol=0.0, atol=1e-5)
    assert algorithm.normalizer.moments.count == 120
    assert algorithm.policy_spec().noise == 0.1


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
    for _ in range(5):
        mine, theirs = algorithm.iterate(), resumed.iterate()
        for metrics in (mine, theirs):
            for name in [name for name in metrics if name.startswith("time/")]:
                del metrics[name]
        assert mine == theirs
    assert_same(algorithm.state_dict(), resumed.state_dict())


# ---- learning ------------------------------------------------------------------------------------


def test_it_learns_pendulum() -> None:
    config = Config(num_threads=1, total_steps=12_000)
    envs = make_eval_envs(config.env_id, {"num_threads": 1}, 20)

    def score() -> float:
        return evaluate(envs, algorithm.eval_policy(), 20, seed=12_345).metrics()["eval/return"]

    algorithm = make(config)
    assert score() < -900.0
    best = -math.inf
    while best < -300.0 and algorithm.global_step < config.total_steps:
        for _ in range(16):
            algorithm.iterate()
        best = score()
    assert best > -300.0  # the best there is: about -150
    envs.close()


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
    with pytest.raises(ValueError, match="capacity 50"):
        DDPG(small(buffer_size=50), restore=algorithm.state_dict())
