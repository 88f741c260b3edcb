"""SAC: its gradient step against plain torch, mixed precision, what it acts and reports."""

import copy
import math
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import algorithms
import gymnasium
import numpy as np
import pytest
import torch
from algorithms import make
from small_learners import as_sequential, batch_of
from torch import Tensor, nn
from trainings import assert_equal

from pyfastenv import _core
from pyfastenv.algorithms.sac.accelerated import CompiledBfloat16, CompiledStep, WrittenOut
from pyfastenv.algorithms.sac.spec import METRICS, SAC, Config, SACLearner, SACOptions
from pyfastenv.experiments.baselines.plain import descend, follow
from pyfastenv.runs import saved
from pyfastenv.runs.evaluation import make_eval_envs
from pyfastenv.runs.seeds import Stream, env_seeds
from pyfastenv.sampling.buffers import RowLayout
from pyfastenv.sampling.exploration import continuous_actions
from pyfastenv.sampling.rollouts import rollout
from pyfastenv.training.accelerators import Accelerator
from pyfastenv.training.loop import run

small = partial(algorithms.small, "sac")


# ---- the gradient step ---------------------------------------------------------------------------


class Reference:
    """One seed's soft actor-critic in plain torch."""

    def __init__(self, learner: SACLearner, k: int):
        self.layout, self.options = learner.layout, learner.options
        self.actor = as_sequential(learner.actor, k)
        self.critics = [as_sequential(learner.critic, 2 * k + i) for i in range(2)]
        self.targets = copy.deepcopy(self.critics)
        options = learner.options
        start = math.log(options.temperature or 1.0)
        self.log_temperature = torch.tensor(start, dtype=torch.float64, requires_grad=True)
        self.critic_adam = torch.optim.Adam(
            [p for critic in self.critics for p in critic.parameters()],
            options.critic_learning_rate,
        )
        self.policy_adam = torch.optim.Adam(self.actor.parameters(), options.policy_learning_rate)
        self.temperature_adam = torch.optim.Adam(
            [self.log_temperature], options.policy_learning_rate
        )

    def act(self, obs: Tensor, noise: Tensor) -> tuple[Tensor, Tensor]:
        mean, log_std = self.actor(obs).chunk(2, -1)
        std = log_std.clamp(*self.options.log_std_range).exp()
        before = mean + std * noise
        log_prob = torch.distributions.Normal(mean, std).log_prob(before)
        return before.tanh(), (log_prob - torch.log1p(-before.tanh().square())).sum(-1)

    def update(self, rows: Tensor, noise: Tensor) -> list[float]:
        """A step; the metrics."""
        rows, noise = rows.double(), noise.double()
        obs_size, action_size = self.layout.obs_size, self.layout.action_size
        widths = [obs_size, action_size, obs_size, 1, 1]
        obs, actions, next_obs, rewards, continues = rows.split(widths, -1)
        now, later = noise.split(len(rows))
        temperature = self.log_temperature.exp().detach()
        new_actions, log_probs = self.act(obs, now)

        with torch.no_grad():
            next_actions, next_log_probs = self.act(next_obs, later)
            pairs = torch.cat((next_obs, next_actions), -1)
            soft = torch.min(*(target(pairs)[:, 0] for target in self.targets))
            soft = soft - temperature * next_log_probs
            wanted = rewards[:, 0] + self.options.gamma * continues[:, 0] * soft
        pairs = torch.cat((obs, actions), -1)
        losses = [(critic(pairs)[:, 0] - wanted).square().mean() for critic in self.critics]
        critic_loss = 0.5 * (losses[0] + losses[1])
        descend(self.critic_adam, critic_loss)

        pairs = torch.cat((obs, new_actions), -1)
        value = torch.min(*(critic(pairs)[:, 0] for critic in self.critics))
        policy_loss = (temperature * log_probs - value).mean()
        self.policy_adam.zero_grad()
        policy_loss.backward(inputs=list(self.actor.parameters()))
        self.policy_adam.step()
        entropy = -log_probs.detach().mean()
        if self.options.temperature is None:
            target = self.options.target_entropy
            target = -float(action_size) if target is None else target
            descend(self.temperature_adam, self.log_temperature * (entropy - target))

        for slow, fast in zip(self.targets, self.critics, strict=True):
            follow(slow, fast, self.options.tau)
        metrics = (critic_loss, policy_loss, entropy, temperature, value.mean())
        return [metric.item() for metric in metrics]

    def assert_is(self, learner: SACLearner, k: int, gradients: bool) -> None:
        """Parameters and, where a step leaves them, the gradients they went along."""
        pairs = [(learner.actor, k, self.actor)]
        for i in range(2):
            pairs.append((learner.critic, 2 * k + i, self.critics[i]))
            pairs.append((learner.target, 2 * k + i, self.targets[i]))
        for network, index, module in pairs:
            linears = [layer for layer in module if isinstance(layer, nn.Linear)]
            norms = [layer for layer in module if isinstance(layer, nn.LayerNorm)]
            ours = (*network.weight_list, *network.bias_list, *network.norm_list)
            for part in (lambda x: x.detach(), lambda x: x.grad)[: 1 + gradients]:
                if part(linears[0].weight) is None:  # a target's
                    continue
                theirs = [
                    *(part(linear.weight).t() for linear in linears),
                    *(part(linear.bias) for linear in linears),
                    *(torch.stack((part(norm.weight), part(norm.bias))) for norm in norms),
                ]
                for mine, other in zip(ours, theirs, strict=True):
                    assert_near(part(mine)[index], other, 1e-4)
        assert_near(learner.log_temperature.detach()[k], self.log_temperature.detach())


def assert_near(ours: Tensor, theirs: Tensor, relative: float = 1e-5) -> None:
    torch.testing.assert_close(ours.double(), theirs, rtol=relative, atol=1e-5)


def choose(learner: SACLearner, kind: type[Accelerator] | None) -> None:
    """Has the learner's steps made by this accelerator, which it could choose; None: by none."""
    assert kind is None or (kind in learner.accelerators and not kind.why_not(learner))
    accelerator = kind and kind(learner)
    learner._chooser.choice = learner.choice._replace(accelerator=accelerator)


@pytest.mark.parametrize("kind", [None, WrittenOut, CompiledStep])
@pytest.mark.parametrize("num_threads", [1, 2])
@pytest.mark.parametrize("num_seeds", [1, 3])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"temperature": 0.3},
        {"target_entropy": 0.7, "log_std_range": (-0.05, 0.05)},  # most log-stds are clamped
        {"layer_norm": True},
    ],
    ids=["learned", "fixed", "clamped", "normalised"],
)
def test_gradient_steps_are_those_of_plain_torch(
    num_seeds: int, num_threads: int, options: dict[str, Any], kind: type[Accelerator] | None
) -> None:
    layout = RowLayout(obs_size=4, action_size=2)
    learner = SACLearner(
        layout,
        [5, 3, 9][:num_seeds],
        SACOptions(
            hidden_sizes=(70, 20),  # more than a thread's piece, in each direction
            policy_learning_rate=2e-3,
            critic_learning_rate=1e-3,
            gamma=0.9,
            tau=0.1,
            num_threads=num_threads,
            **options,
        ),
    )
    choose(learner, kind)
    references = [Reference(learner, k) for k in range(num_seeds)]
    generator = torch.Generator().manual_seed(0)
    metrics = torch.full((len(METRICS), num_seeds), torch.nan)
    for _ in range(5):
        rows = batch_of(layout, (num_seeds, 70), generator)
        noise = torch.randn(num_seeds, *learner.noise_shape(70), generator=generator)
        kept = rows.clone(), noise.clone()
        learner.run(rows[None], noise[None], metrics)
        assert torch.equal(rows, kept[0]) and torch.equal(noise, kept[1])
        for k, reference in enumerate(references):
            expected = reference.update(rows[k], noise[k])
            assert metrics[:, k].tolist() == pytest.approx(expected, rel=1e-4, abs=1e-5)
            reference.assert_is(learner, k, gradients=kind is not CompiledStep)
    change = learner.log_temperature.detach().exp() - options.get("temperature", 1.0)
    assert (change.abs() > 5e-3).all() == ("temperature" not in options)


@pytest.mark.parametrize("options", [{"accelerate": "none"}, {}, {"amp": True}], ids=str)
def test_every_way_steps_by_the_optimisers_rate(options: dict[str, Any]) -> None:
    results = []
    for begins_with, goes_on_with in ((1e-3, 1e-3), (1e-2, 1e-3), (1e-2, 1e-2)):
        algorithm = make(small(learning_rate=begins_with, **options))
        algorithm.iterate()  # explores
        for optimizer in algorithm.learner.optimizers.values():
            optimizer.lr = goes_on_with
        algorithm.learn(3)
        results.append(
            [algorithm.learner.flat_policy.parameter, algorithm.learner.flat_critic.parameter]
        )
    for wanted, same, other in zip(*results, strict=True):
        assert torch.equal(wanted, same) and not torch.equal(wanted, other)


@pytest.mark.parametrize("options", [{"accelerate": "none"}, {}, {"amp": True}], ids=str)
def test_every_way_steps_by_the_scheduled_discount(options: dict[str, Any]) -> None:
    results = []
    for schedule in (
        {"gamma": 0.9},
        {"gamma": 0.5, "gamma_schedule": (0, 10, 0.9)},
        {"gamma": 0.5},
    ):
        algorithm = make(small(**schedule, **options))
        for _ in range(2):
            algorithm.iterate()  # explores, then learns after all of the schedule
        results.append(algorithm.learner.flat_critic.parameter)
    wanted, same, other = results
    assert torch.equal(wanted, same) and not torch.equal(wanted, other)


def test_a_scheduled_discount_rises_geometrically_in_what_it_lacks() -> None:
    config = small(gamma=0.99, gamma_schedule=(1_000, 3_000, 0.9975))
    found = [config.discount(step) for step in (0, 1_000, 2_000, 3_000, 10**9)]
    assert found == pytest.approx([0.99, 0.99, 0.995, 0.9975, 0.9975], abs=1e-12)
    assert small(gamma=0.98).discount(10**6) == 0.98
    assert small(gamma_schedule=(5, 5, 0.5)).discount(6) == pytest.approx(0.5)


def test_metrics_are_optional_and_change_nothing() -> None:
    layout = RowLayout(obs_size=3, action_size=1)
    generator = torch.Generator().manual_seed(0)
    rows = batch_of(layout, (1, 8), generator)
    noise = torch.randn(1, 16, 1, generator=generator)
    learners = [SACLearner(layout, [1], SACOptions(hidden_sizes=(8,))) for _ in range(2)]
    for learner in learners:
        choose(learner, WrittenOut)
    for step in (lambda mine: mine.update, lambda mine: mine.choice.accelerator.update):
        step(learners[0])(rows, noise)
        step(learners[1])(rows, noise, torch.empty(len(METRICS), 1))
    assert_equal(learners[0].state_dict(), learners[1].state_dict())


def relative(ours: Tensor, theirs: Tensor) -> float:
    return float((ours - theirs).norm() / theirs.norm())


@pytest.mark.parametrize("kind", ["plain", "written out", "compiled"])
@pytest.mark.parametrize("num_seeds", [1, 3])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"temperature": 0.3, "hidden_sizes": (24, 40, 16)},
        {"target_entropy": 0.7, "log_std_range": (-0.05, 0.05), "hidden_sizes": (32,)},
        {"layer_norm": True, "hidden_sizes": (24, 40, 16)},
    ],
    ids=["learned", "fixed", "clamped", "normalised"],
)
def test_steps_in_bfloat16_are_near(
    options: dict[str, Any], num_seeds: int, kind: str, in_software: str
) -> None:
    if kind == "compiled" and not in_software:
        pytest.skip("neither AMX nor AVX512-BF16")
    layout = RowLayout(obs_size=4, action_size=2)
    fields = {"hidden_sizes": (32, 48, 32), "gamma": 0.9, "tau": 0.1, **options}
    fields |= {"policy_learning_rate": 2e-3, "critic_learning_rate": 1e-3}
    seeds = [5, 3, 9][:num_seeds]
    exact = SACLearner(layout, seeds, SACOptions(**fields))
    choose(exact, WrittenOut)
    how: Any = "auto" if in_software else "none"
    mixed = SACOptions(**fields, bfloat16=True, num_threads=2, accelerate=how)
    rounded = SACLearner(layout, seeds, mixed)
    ways = {"plain": None, "written out": WrittenOut, "compiled": CompiledBfloat16}
    choose(rounded, ways[kind])
    generator = torch.Generator().manual_seed(0)
    rows = batch_of(layout, (3, num_seeds, 50), generator)
    noise = torch.randn(3, num_seeds, *exact.noise_shape(50), generator=generator)
    metrics = torch.full((2, len(METRICS), num_seeds), torch.nan)
    old_target = rounded.flat_target.parameter.detach().clone()
    for i in range(3):
        for learner, results in zip((exact, rounded), metrics, strict=True):
            learner.run(rows[i : i + 1], noise[i : i + 1], results)
        torch.testing.assert_close(metrics[1], metrics[0], rtol=0.03, atol=0.03)
        if i == 0:  # the gradients, before the parameters part
            for name in ("critic_optimizer", "policy_optimizer"):
                ours, theirs = (each.state_dict()[name] for each in (rounded, exact))
                assert ours["step"] == theirs["step"] == 1
                assert relative(ours["mean"], theirs["mean"]) < 0.1
                assert relative(ours["square"], theirs["square"]) < 0.2
            critic = rounded.flat_critic.parameter.detach()
            expected = 0.9 * old_target + 0.1 * critic
            torch.testing.assert_close(rounded.flat_target.parameter.detach(), expected)
    nothing_between = fields["hidden_sizes"] == (32,)  # hidden layers
    if kind != "plain" or not nothing_between:  # autograd may round as what is written out does
        assert torch.equal(*metrics) == (kind == "written out" and nothing_between)
    for name in ("actor", "critic", "target"):
        pairs = zip(
            getattr(rounded, name).parameters(), getattr(exact, name).parameters(), strict=True
        )
        for ours, theirs in pairs:
            torch.testing.assert_close(ours, theirs, rtol=0.05, atol=0.015)  # 3 steps of 2e-3
    torch.testing.assert_close(rounded.log_temperature, exact.log_temperature, rtol=1e-3, atol=1e-3)
    inner = rounded.actor.layers[0][1:-1]
    for copied, weight in zip(inner, rounded.actor.weight_list[1:-1], strict=True):
        assert torch.equal(copied, weight.bfloat16())  # what acts is up to date


@pytest.mark.parametrize("kind", [CompiledStep, CompiledBfloat16])
@pytest.mark.parametrize("layer_norm", [False, True])
def test_compiled_steps_depend_neither_on_their_number_nor_on_threads_or_other_seeds(
    layer_norm: bool, kind: type[CompiledStep]
) -> None:
    if kind.bfloat16 and not _core.bfloat16_unit():
        pytest.skip("neither AMX nor AVX512-BF16")
    layout = RowLayout(obs_size=3, action_size=1)

    def make_learner(*seeds: int, num_threads: int = 1) -> SACLearner:
        options = SACOptions(
            hidden_sizes=(70, 30),
            layer_norm=layer_norm,
            bfloat16=kind.bfloat16,
            num_threads=num_threads,
        )
        learner = SACLearner(layout, seeds, options)
        choose(learner, kind)
        return learner

    together, stepwise = make_learner(1, 2, 3, num_threads=6), make_learner(1, 2, 3)
    generator = torch.Generator().manual_seed(0)
    rows = batch_of(layout, (5, 3, 100), generator)
    noise = torch.randn(5, 3, *together.noise_shape(100), generator=generator)
    metrics = torch.zeros(len(METRICS), 3)
    states: list[dict[str, Any]] = []
    together.run(rows, noise, metrics)
    for i in range(5):
        last = torch.zeros_like(metrics)
        stepwise.run(rows[i : i + 1], noise[i : i + 1], last)
    assert torch.equal(last, metrics)
    assert_equal(together.state_dict(), stepwise.state_dict())
    fewer = together.noise_shape(7)[0]  # another batch size, and the first again
    for learner in (together, make_learner(1, 2, 3)):
        learner.load_state_dict(copy.deepcopy(stepwise.state_dict()))
        learner.run(rows[:2, :, :7], noise[:2, :, :fewer], last)
        learner.run(rows[2:], noise[2:], last)
        assert last.isfinite().all()
        states.append(learner.state_dict())
    assert_equal(*states)
    together.load_state_dict(stepwise.state_dict())
    for k in range(3):
        alone, mine = make_learner(k + 1), torch.zeros(len(METRICS), 1)
        alone.run(rows[:, k : k + 1], noise[:, k : k + 1], mine)
        assert torch.equal(mine[:, 0], metrics[:, k])
        for name, per_seed in (("actor", 1), ("critic", 2), ("target", 2)):
            for one, three in zip(
                getattr(alone, name).parameters(), getattr(together, name).parameters(), strict=True
            ):
                assert torch.equal(one, three[k * per_seed : (k + 1) * per_seed])


# ---- several seeds -------------------------------------------------------------------------------


def test_each_seeds_returns_have_their_number() -> None:
    algorithm = make(small(num_seeds=2, seed=7, learning_starts=0, num_envs=1, num_steps=200))
    metrics = algorithm.iterate()
    both = [metrics["train/return_0"], metrics["train/return_1"]]
    assert both[0] != both[1]
    assert metrics["train/return"] == pytest.approx(sum(both) / 2)
    assert metrics["train/length"] == 200.0


def test_returns_are_means_of_all_that_ended_since_the_last_line() -> None:
    # 2 environments with a time limit of 200: episodes end in the 40th and the 80th of 85 calls
    options = {"learning_starts": 0, "num_steps": 5, "total_steps": 850, "log_every": 850}
    algorithm = make(small(buffer_size=2_000, **options))
    metrics = algorithm.iterate()
    (rows,) = algorithm.env_pool.rows()
    rewards = algorithm.layout.rewards(rows).view(-1, 2)[:400].view(2, 200, 2).sum(1)
    assert metrics["train/return"] == pytest.approx(rewards.mean().item(), rel=1e-5)
    assert metrics["train/length"] == 200.0
    assert "train/return_0" not in metrics


def test_a_policy_of_nan_does_not_act() -> None:
    algorithm = make(small(log_every=50))
    algorithm.iterate()

    def learn(num_updates: int) -> None:
        algorithm.learner.actor.weight_list[0].data[0, 0, 0] = math.nan

    algorithm.learn = learn  # metrics of before
    metrics = algorithm.iterate()
    assert math.isnan(metrics["loss/policy"]) and algorithm.global_step == 70


# ---- learning ------------------------------------------------------------------------------------


def test_a_run_of_two_seeds_leaves_their_policies(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    config = small(env_id="Reacher-v5", num_seeds=2, eval_every=70, run_dir=tmp_path / "run")
    algorithms = []

    def kept(config: Config) -> SAC:
        algorithms.append(SAC(config))
        return algorithms[-1]

    result = run(kept, config)
    assert result.global_step == 200
    assert math.isfinite(result.evaluation["eval/return"])
    again = saved.evaluate_run(tmp_path / "run", episodes=2, seed=config.seed)
    assert again.metrics() == result.evaluation
    policy = saved.load_policy(tmp_path / "run").policy
    expected = algorithms[0].eval_policy()
    assert policy.greedy and policy.weights[0].shape[0] == 2
    for mine, theirs in zip(policy.weights, expected.weights, strict=True):
        assert (mine == theirs).all()
    # the two are not the same
    assert (policy.weights[0][0] != policy.weights[0][1]).any()
    # each is evaluated, in the episodes that it has alone
    envs = make_eval_envs(config.env_id, {"num_threads": 1}, 2)
    each = []
    for k in range(2):
        envs.reset(seed=env_seeds(config.seed + k, envs.num_envs, Stream.EVALUATION_ENVS))
        batch = rollout(envs, policy, envs.max_episode_steps, policy_id=[k, k])
        each.append(float(batch.episodes.returns.mean()))
    envs.close()
    assert each[0] != each[1]
    assert [result.evaluation[f"eval/return_{k}"] for k in range(2)] == pytest.approx(each)
    assert result.evaluation["eval/return"] == pytest.approx(sum(each) / 2)


# ---- mistakes ------------------------------------------------------------------------------------


@pytest.mark.parametrize(("low", "high"), [(-math.inf, math.inf), (0.0, math.inf), (1.0, 1.0)])
def test_actions_without_bounds_are_named_at_once(low: float, high: float) -> None:
    closed: list[bool] = []
    envs: Any = SimpleNamespace(
        single_action_space=gymnasium.spaces.Box(np.float32([low, -1.0]), np.float32([high, 1.0])),
        spec=None,
        close=lambda: closed.append(True),
    )
    with pytest.raises(ValueError, match=r"flashsac needs a lower and a greater .*ctrlrange.*ppo"):
        continuous_actions(envs, "flashsac")
    assert closed
