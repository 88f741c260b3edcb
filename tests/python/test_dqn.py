"""DQN's arithmetic is plain torch's, and what it collects are the steps of discrete actions."""

import math
from pathlib import Path
from typing import Any

import gymnasium
import pytest
import torch
from algorithms import make, small
from small_learners import as_sequential
from torch import nn
from torch.testing import assert_close

from pyfastenv.algorithms import dqn
from pyfastenv.experiments.baselines.plain import descend, follow
from pyfastenv.runs.saved import load_policy
from pyfastenv.training.actor_critic import Batch


@pytest.mark.parametrize("accelerate", ["none", "native"])
@pytest.mark.parametrize(
    ("double", "tau", "every", "delta"),
    [(True, 0.1, 1, 1.0), (False, 1.0, 4, math.inf), (False, 0.1, 1, 0.5)],
)
def test_gradient_steps_are_those_of_plain_torch(
    double: bool, tau: float, every: int, delta: float, accelerate: str
) -> None:
    options = {"double": double, "tau": tau, "target_every": every, "huber_delta": delta}
    own = {"learning_rate": 1e-2, "num_seeds": 2, "accelerate": accelerate}
    algorithm = make(small("dqn", env_id="Acrobot-v1", **own, **options))
    learner, layout, n = algorithm.learner, algorithm.layout, 16
    assert (learner.choice.accelerator is None) == (accelerate == "none")
    networks = [as_sequential(learner.actor, k) for k in range(2)]
    targets = [as_sequential(learner.target, k) for k in range(2)]
    adams = [torch.optim.Adam(each.parameters(), 1e-2) for each in networks]
    metrics = torch.zeros(1, 2)
    for step in range(1, 11):
        obs, next_obs = torch.randn(2, 2, n, layout.obs_size)
        actions = torch.randint(3, (2, n, 1))
        rewards, terminated = 3.0 * torch.randn(2, n), torch.rand(2, n) < 0.3
        rows = layout.pack(obs, actions, next_obs, rewards, terminated)
        learner.run(rows[None], torch.empty(1, 2, 0), metrics)
        for k, (network, target, adam) in enumerate(zip(networks, targets, adams, strict=True)):
            with torch.no_grad():
                after = target(next_obs[k].double())
                best = (network(next_obs[k].double()) if double else after).argmax(1)
                future = torch.where(terminated[k], 0.0, 0.99 * after[torch.arange(n), best])
            values = network(obs[k].double())[torch.arange(n), actions[k, :, 0]]
            goals = rewards[k].double() + future
            if math.isinf(delta):
                loss = 0.5 * nn.functional.mse_loss(values, goals)
            else:
                loss = nn.functional.huber_loss(values, goals, delta=delta)
            descend(adam, loss)
            if step % every == 0:
                follow(target, network, tau)
            assert metrics[0, k].item() == pytest.approx(loss.item(), rel=1e-4)
    for name, theirs in (("actor", networks), ("target", targets)):
        for k, each in enumerate(theirs):
            ours = as_sequential(getattr(learner, name), k)
            assert_close([*ours.parameters()], [*each.parameters()], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("own", [False, True])
def test_rows_are_the_steps_of_the_environment(own: bool) -> None:
    """Explored and followed ones: actions by their numbers, terminations and time limits apart."""
    factory = {"policy_factory": "small_learners:policy_network"} if own else {}
    kwargs = {"max_episode_steps": 12}  # a random policy lets the pole fall after about 22 steps
    algorithm = make(small("dqn", env_kwargs=kwargs, buffer_size=400, updates_per_step=0.02,
                           total_steps=400, learning_starts=200, **factory))  # fmt: skip
    while algorithm.global_step < 400:
        algorithm.iterate()
    (rows,) = algorithm.env_pool.rows()
    batch = Batch.of(rows, algorithm.layout)
    env: Any = gymnasium.make("CartPole-v1").unwrapped
    ends = 0
    for obs, action, next_obs, continues in zip(
        batch.obs, batch.actions[:, 0], batch.next_obs, batch.continues, strict=True
    ):
        env.reset()
        env.state = obs.double().numpy()
        expected, _, terminated, *_ = env.step(int(action))
        assert_close(next_obs, torch.from_numpy(expected), rtol=1e-4, atol=1e-5)
        assert continues == 1.0 - terminated
        ends += terminated
    assert 3 < ends < 40
    first = batch.actions[:200, 0]
    assert set(first.tolist()) == {0.0, 1.0} and 70 < first.sum() < 130


def test_the_randomness_falls_along_a_line() -> None:
    config = small("dqn", epsilon=0.9, final_epsilon=0.1, epsilon_steps=100, learning_starts=0)
    assert [config.epsilon_at(step) for step in (0, 25, 100, 1_000)] == pytest.approx(
        [0.9, 0.7, 0.1, 0.1]
    )
    algorithm = make(config)
    while algorithm.global_step < 50:
        algorithm.iterate()
    assert algorithm.policies().epsilon == pytest.approx(0.5)
    assert algorithm.eval_policy().greedy


@pytest.mark.parametrize("which", ["newest", "best"])
def test_a_saved_policy_draws_as_at_its_step(which: Any, tmp_path: Path) -> None:
    options = {"epsilon_steps": 500, "total_steps": 400, "eval_every": 100, "num_seeds": 1}
    config = small("dqn", run_dir=tmp_path / "run", **options)
    dqn.train(config)
    saved = load_policy(tmp_path / "run", which)
    assert saved.policy.epsilon == config.epsilon_at(saved.step) < config.epsilon
    assert saved.policy.greedy


def test_mistakes_are_named() -> None:
    with pytest.raises(ValueError, match=r"dqn needs discrete actions.*Pendulum-v1.*try sac"):
        dqn.train(small("dqn", env_id="Pendulum-v1"))
    with pytest.raises(ValueError, match=r"critic_factory: expected None, got .*dqn has one netw"):
        small("dqn", critic_factory="small_learners:critic_network").check()
