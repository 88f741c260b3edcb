"""FlashSAC: its networks and losses against plain torch, norms, reward scale and noise."""

import copy
import math
from functools import partial
from itertools import pairwise
from pathlib import Path

import algorithms
import numpy as np
import pytest
import torch
from algorithms import make
from small_learners import FLASHSAC_LAYOUT as LAYOUT
from small_learners import inputs_of, learner_of
from torch import Tensor, nn
from trainings import through_a_file

from pyfastenv import _core
from pyfastenv.algorithms.flashsac import accelerated as flashsac_accelerators
from pyfastenv.algorithms.flashsac import spec as flashsac
from pyfastenv.algorithms.flashsac.accelerated import CompiledNetworks
from pyfastenv.algorithms.flashsac.spec import FlashSACLearner
from pyfastenv.nn.functional import onto_bins
from pyfastenv.nn.networks import learning
from pyfastenv.nn.unit_networks import UnitNetwork, project
from pyfastenv.runs import saved
from pyfastenv.sampling.exploration import RepeatedNoise
from pyfastenv.training.actor_critic import Batch
from pyfastenv.training.reward_scale import RewardScale

small = partial(algorithms.small, "flashsac")
SLOPE = torch.distributions.TanhTransform().log_abs_det_jacobian  # logarithm of tanh's


# ---- networks ------------------------------------------------------------------------------------


def test_a_network_is_what_its_description_says() -> None:
    torch.manual_seed(0)
    network = UnitNetwork(5, 4, width=6, num_blocks=2).double().eval()
    for parameter in network.parameters():
        parameter.data += 0.3 * torch.randn_like(parameter)
    for module in network.modules():
        if isinstance(module, nn.BatchNorm1d):
            module.running_mean.normal_()
            module.running_var.uniform_(0.5, 2.0)
    weights = dict(network.named_parameters())
    moments = dict(network.named_buffers())

    def norm(x: Tensor, name: str) -> Tensor:
        mean, var = moments[f"{name}.running_mean"], moments[f"{name}.running_var"]
        if network.training:
            mean, var = x.mean(0), x.var(0, correction=0)
        scaled = (x - mean) / (var + 1e-5).sqrt()
        return scaled * weights[f"{name}.weight"] + weights[f"{name}.bias"]

    def plain(x: Tensor) -> Tensor:
        x = norm(x, "0") @ weights["1.weight"].T
        for block in (2, 3):
            inner = f"{block}.inner"
            y = norm(x @ weights[f"{inner}.0.weight"].T, f"{inner}.1").relu()
            x = x + norm(y @ weights[f"{inner}.3.weight"].T, f"{inner}.4").relu()
        x = x / (x.square().mean(1, keepdim=True) + 1e-6).sqrt() * weights["4.weight"]
        return x @ weights["5.weight"].T + weights["5.bias"]

    x = torch.randn(10, 5, dtype=torch.float64)
    torch.testing.assert_close(network(x), plain(x))
    before = moments["0.running_mean"].clone()
    with learning(network):
        expected = plain(x)
        torch.testing.assert_close(network(x), expected)
    assert not network.training
    torch.testing.assert_close(moments["0.running_mean"], 0.99 * before + 0.01 * x.mean(0))


def test_projection_brings_norms_back() -> None:
    torch.manual_seed(0)
    network = UnitNetwork(5, 4, width=6, num_blocks=1)
    for parameter in network.parameters():
        parameter.data.uniform_(0.5, 2.0)
    free = network[-1].bias.clone()
    project(network)
    for name, parameter in network.named_parameters():
        if parameter.dim() == 2:
            torch.testing.assert_close(parameter.norm(dim=1), torch.ones(len(parameter)))
        elif name == "3.weight":
            assert parameter.norm().item() == pytest.approx(math.sqrt(6))
    normed = [module for module in network.modules() if isinstance(module, nn.BatchNorm1d)]
    for module in normed:
        both = torch.cat((module.weight, module.bias))
        assert both.norm().item() == pytest.approx(math.sqrt(module.num_features))
    assert len(normed) == 3
    assert torch.equal(network[-1].bias, free)


# ---- the gradient step ---------------------------------------------------------------------------


def test_onto_bins() -> None:
    bins = torch.linspace(-2.0, 2.0, 5)
    probs = torch.tensor([[0.5, 0.25, 0.25], [1.0, 0.0, 0.0], [0.2, 0.3, 0.5]])
    values = torch.tensor([[0.25, -1.0, 9.0], [2.0, 0.0, 0.0], [-7.0, 1.5, 0.5]])
    expected = [
        [0.0, 0.25, 0.375, 0.125, 0.25],
        [0.0, 0.0, 0.0, 0.0, 1.0],
        [0.2, 0.0, 0.25, 0.4, 0.15],
    ]
    found = onto_bins(probs, values, bins)
    torch.testing.assert_close(found, torch.tensor(expected))
    means = (probs * values.clamp(-2.0, 2.0)).sum(1)
    torch.testing.assert_close(found @ bins, means)
    values[0, 1], values[1] = torch.nan, torch.tensor([torch.inf, -torch.inf, 0.0])
    found = onto_bins(probs, values, bins)
    assert found[0].isnan().any()
    torch.testing.assert_close(found[1:], torch.tensor(expected)[1:])


@torch.no_grad()
def plain_loss(learner: FlashSACLearner, k: int, batch: Batch, noise: Tensor) -> float:
    """A seed's critics' loss, sample by sample."""
    actor = learner.actor.networks[k]
    critics, targets = (
        [copy.deepcopy(stack.networks[2 * k + i]).train() for i in range(2)]
        for stack in (learner.critic, learner.target)
    )
    mean, log_std = actor(batch.next_obs[k]).chunk(2, -1)
    normal = torch.distributions.Normal(mean, log_std.exp())
    before = mean + log_std.exp() * noise[k]
    following = before.tanh()
    log_probs = (normal.log_prob(before) - SLOPE(before, following)).sum(-1)
    now = torch.cat((batch.obs[k], batch.actions[k]), -1)
    later = torch.cat((batch.next_obs[k], following), -1)
    found = [critic(torch.cat((now, later))).softmax(-1) for critic in critics]
    wanted = [target(torch.cat((now, later))).softmax(-1) for target in targets]
    temperature = learner.log_temperature[k].exp()
    bins, total = learner.bins, 0.0
    for i in range(len(now)):
        candidates = [each[len(now) + i] for each in wanted]
        careful = min(candidates, key=lambda probs: float(probs @ bins))
        goal = torch.zeros(len(bins))
        for share, value in zip(careful, bins, strict=True):
            soft = value - temperature * log_probs[i]
            to = (batch.rewards[k, i] + 0.9 * batch.continues[k, i] * soft).clamp(-5.0, 5.0)
            place = float((to + 5.0) / 10.0 * (len(bins) - 1))
            low = min(int(place), len(bins) - 2)
            goal[low] += share * (1.0 - (place - low))
            goal[low + 1] += share * (place - low)
        total -= sum(float(goal @ each[i].log()) for each in found) / 2
    return total / len(now)


@torch.no_grad()
def randomised(learner: FlashSACLearner) -> FlashSACLearner:
    """Parameters and moments that are nowhere what they begin with."""
    generator = torch.Generator().manual_seed(9)
    for network in learner.networks.values():
        for tensor in (*network.parameters(), *network.buffers()):
            if tensor.is_floating_point():
                tensor += 0.3 * torch.rand(tensor.shape, generator=generator)
        project(network)
    learner.log_temperature += torch.rand(learner.num_seeds, generator=generator) + 3.0
    return learner


def test_losses_are_those_of_plain_torch() -> None:
    learner = randomised(learner_of((3, 4)))
    rows, noise = inputs_of(learner)
    batch = Batch.of(rows, LAYOUT)
    networks = flashsac.Networks(
        learner.actor, learner.critic, learner.target, learner.log_temperature, learner.bins
    )
    now, later = noise.chunk(2, 1)
    expected = [plain_loss(learner, k, batch, later) for k in range(2)]
    found = flashsac.critic_loss(networks, batch, later, 0.9)
    assert found.tolist() == pytest.approx(expected, rel=1e-4)

    policy = flashsac.policy_loss(networks, batch, now)
    for k in range(2):
        actor = copy.deepcopy(learner.actor.networks[k]).train()
        outputs = actor(torch.cat((batch.obs[k], batch.next_obs[k])))[: len(batch.obs[k])]
        mean, log_std = outputs.chunk(2, -1)
        before = mean + log_std.exp() * now[k]
        normal = torch.distributions.Normal(mean, log_std.exp())
        log_probs = (normal.log_prob(before) - SLOPE(before, before.tanh())).sum(-1)
        pairs = torch.cat((batch.obs[k], before.tanh()), -1)
        critics = [learner.critic.networks[2 * k + i] for i in range(2)]
        values = torch.stack([critic(pairs).softmax(-1) @ learner.bins for critic in critics])
        loss = (learner.log_temperature[k].exp() * log_probs - values.amin(0)).mean()
        assert policy.loss[k].item() == pytest.approx(loss.item(), rel=1e-4)
        assert policy.entropy[k].item() == pytest.approx(-log_probs.mean().item(), rel=1e-4)
        assert policy.value[k].item() == pytest.approx(values.amin(0).mean().item(), rel=1e-4)


def test_the_policy_steps_every_other_time() -> None:
    learner = learner_of(policy_every=2)
    metrics = torch.full((len(learner.metrics), 1), math.nan)
    policies, critics, latest = [], [], []
    for i in range(5):
        rows, noise = inputs_of(learner, i)
        old_target = learner.flat_target.parameter.detach().clone()
        learner.run(rows[None], noise[None], metrics)
        policies.append(learner.flat_policy.parameter.detach().clone())
        critics.append(learner.flat_critic.parameter.detach().clone())
        latest.append(metrics[1:, 0].tolist())
        torch.testing.assert_close(
            learner.flat_target.parameter.detach(),
            old_target.lerp(critics[-1], learner.options.tau),
        )
    same = [torch.equal(*pair) for pair in pairwise(policies)]
    assert same == [True, False, True, False]
    assert [a == b for a, b in pairwise(latest)] == same
    assert not any(torch.equal(*pair) for pair in pairwise(critics))
    assert learner.policy_optimizer.num_steps == 3 and learner.critic_optimizer.num_steps == 5
    entropy = 2 * (0.5 * math.log(2 * math.pi * math.e) + math.log(0.15))
    assert learner.target_entropy == pytest.approx(entropy)
    assert latest[0][2] == pytest.approx(0.01)  # the temperature at first


@pytest.mark.parametrize("accelerate", ["none", "native"])
def test_steps_in_bfloat16_are_near(accelerate: str, in_software: str) -> None:
    if accelerate == "native" and not in_software:
        pytest.skip("neither AMX nor AVX512-BF16")
    exact, rounded = learner_of((3, 4)), learner_of((3, 4), amp=True, accelerate=accelerate)
    compiled = accelerate == "native"
    assert isinstance(rounded.choice.accelerator, CompiledNetworks) == compiled
    metrics = torch.zeros(2, len(exact.metrics), 2)
    for i in range(3):
        rows, noise = inputs_of(exact, i)
        for learner, mine in zip((exact, rounded), metrics, strict=True):
            learner.run(rows[None], noise[None], mine)
        torch.testing.assert_close(*metrics, rtol=0.05, atol=0.05)
        if i == 0:  # the gradients, before the parameters part
            for name in ("critic_optimizer", "policy_optimizer"):
                ours, theirs = (getattr(each, name).mean for each in (rounded, exact))
                assert (ours - theirs).norm() < 0.25 * theirs.norm()
    assert not torch.equal(*metrics)
    for name, network in exact.networks.items():
        ours = rounded.networks[name].state_dict()
        for key, value in network.state_dict().items():
            if "running" in key:
                torch.testing.assert_close(ours[key], value, rtol=0.02, atol=0.02)
        for key, value in network.named_parameters():
            if value.dim() == 2 and name != "target":
                lengths = torch.ones(len(value))
                torch.testing.assert_close(ours[key].norm(dim=1), lengths)


class PlainStack:
    """The passes that the written-out steps ask of compiled networks, by autograd in float32."""

    def __init__(self, stack: nn.Module, *_: object):
        self._stack = stack

    def forward(self, x: Tensor, *, by_batch: bool = False) -> Tensor:
        self._stack.train(by_batch)
        self._inputs = x.clone().requires_grad_()
        with torch.enable_grad():
            self._outputs = self._stack(self._inputs)
        self._stack.eval()
        return self._outputs.detach()

    def write_gradients(self, by_outputs: Tensor) -> None:
        parameters = list(self._stack.parameters())
        found = torch.autograd.grad(self._outputs, parameters, by_outputs)
        for parameter, gradient in zip(parameters, found, strict=True):
            parameter.grad.copy_(gradient)

    def input_gradient(self, by_outputs: Tensor) -> Tensor:
        (found,) = torch.autograd.grad(self._outputs, self._inputs, by_outputs)
        return found

    def project(self) -> None:
        project(self._stack)


def test_written_out_steps_are_autograds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(CompiledNetworks, "why_not", lambda _: None)
    monkeypatch.setattr(flashsac_accelerators, "CompiledStack", PlainStack)
    written, plain = (
        randomised(learner_of((3, 4), amp=amp, accelerate="auto")) for amp in (True, False)
    )
    assert isinstance(written.choice.accelerator, CompiledNetworks)
    metrics = torch.zeros(2, len(plain.metrics), 2)
    for i in range(5):
        rows, noise = inputs_of(plain, i)
        written.run(rows[None], noise[None], metrics[0])
        plain.update(rows, noise, metrics[1])
        torch.testing.assert_close(*metrics, rtol=1e-4, atol=1e-5)
    for name in plain.networks:
        ours, theirs = (each.networks[name].state_dict() for each in (written, plain))
        for key, value in theirs.items():
            if "num_batches" not in key:
                torch.testing.assert_close(ours[key], value, rtol=1e-3, atol=1e-4)
    assert written.log_temperature.tolist() == pytest.approx(plain.log_temperature.tolist())


@pytest.mark.parametrize("count", [2, 16, 17, 101])
def test_compiled_losses_of_bins(count: int) -> None:
    generator = torch.Generator().manual_seed(count)
    num_seeds, size = 2, 9
    bins = torch.linspace(-5.0, 5.0, count)

    def logits() -> Tensor:
        return 3.0 * torch.randn(num_seeds, 2, 2 * size, count, generator=generator)

    exact = logits().double().requires_grad_()
    means = flashsac.mean_value(exact.softmax(-1), bins.double()).amin(1)
    (-0.3 * means.sum()).backward()
    least, by_logits = _core.least_of_bins(exact.detach().float().numpy(), bins.numpy(), -0.3)
    torch.testing.assert_close(torch.from_numpy(least), means.detach().float())
    torch.testing.assert_close(torch.from_numpy(by_logits), exact.grad.float())

    found, target = logits().double().requires_grad_(), logits()
    rewards, bonus = (torch.randn(num_seeds, size, generator=generator) for _ in range(2))
    rewards[:, :2] = torch.tensor([-20.0, 20.0])  # beyond the bins
    discounts = 0.9 * (torch.rand(num_seeds, size, generator=generator) < 0.7)
    probs = target[:, :, size:].double().softmax(-1)
    careful = flashsac.mean_value(probs, bins.double()).argmin(1, keepdim=True)[..., None]
    values = rewards[..., None] + discounts[..., None] * (bins - bonus[..., None])
    wanted = onto_bins(probs.take_along_dim(careful, 1)[:, 0], values.double(), bins.double())
    losses = -(wanted[:, None] * found[:, :, :size].log_softmax(-1)).sum(-1).mean((1, 2))
    losses.sum().backward()
    ours, by_found = _core.bin_cross_entropy(
        found.detach().float().numpy(), target.numpy(), rewards.numpy(), discounts.numpy(),
        bonus.numpy(), bins.numpy(),
    )  # fmt: skip
    torch.testing.assert_close(torch.from_numpy(ours), losses.detach().float())
    torch.testing.assert_close(torch.from_numpy(by_found), found.grad.float(), rtol=1e-4, atol=1e-6)
    for part in (target, rewards):  # NaN stays NaN, in its seed
        part[0, 0] = torch.nan
        spoilt, _ = _core.bin_cross_entropy(
            found.detach().float().numpy(), target.numpy(), rewards.numpy(), discounts.numpy(),
            bonus.numpy(), bins.numpy(),
        )  # fmt: skip
        assert np.isnan(spoilt[0]) and spoilt[1] == ours[1]
        part[0, 0] = 0.0


def test_bins_that_do_not_fit() -> None:
    bins = np.linspace(-1.0, 1.0, 5, dtype=np.float32)
    logits, column = np.zeros((2, 2, 6, 5), np.float32), np.zeros((2, 3), np.float32)
    with pytest.raises(ValueError, match=r"logits: expected \(seeds, 2, rows, 5\) float32"):
        _core.least_of_bins(logits[..., :4], bins, 1.0)
    with pytest.raises(ValueError, match="bins: expected at least two"):
        _core.least_of_bins(logits[..., :1], bins[:1], 1.0)
    good = [logits, logits, column, column, column, bins]
    for i, wrong, message in (
        (0, logits[:, :, :5], "found: expected both ends of one or more transitions"),
        (1, logits[:1], r"target: expected \(2, 2, 6, 5\) float32"),
        (2, column[:, :2], r"rewards: expected \(2, 3\) float32"),
        (3, column.astype(np.float64), r"discounts: expected \(2, 3\) float32"),
        (4, column.T, r"bonus: expected \(2, 3\) float32"),
    ):
        with pytest.raises((ValueError, TypeError), match=message):
            _core.bin_cross_entropy(*good[:i], wrong, *good[i + 1 :])


# ---- rewards and noise ---------------------------------------------------------------------------


def test_rewards_are_scaled_by_their_returns() -> None:
    scale = RewardScale(2, 2, gamma=0.5, bound=5.0)
    generator = torch.Generator().manual_seed(0)
    rewards = torch.randn(2, 60, generator=generator)
    rewards[1] *= 10.0
    rewards[1, 8] = 1_000.0
    ended = torch.rand(2, 60, generator=generator) < 0.2
    for part in (slice(0, 20), slice(20, 24), slice(24, 60)):
        scale.update(rewards[:, part], ended[:, part])
    expected = []
    for k in range(2):
        returns, seen = [0.0, 0.0], []
        for i in range(60):
            returns[i % 2] = 0.5 * returns[i % 2] + float(rewards[k, i])
            seen.append(returns[i % 2])
            returns[i % 2] *= not ended[k, i]
        deviation = float(torch.tensor(seen).double().var(correction=0).sqrt())
        expected.append(1.0 / max(deviation, max(map(abs, seen)) / 5.0))
    assert scale.factors().tolist() == pytest.approx(expected, rel=1e-5)
    assert expected[1] == pytest.approx(0.005, rel=0.1)  # bounded by the largest


def test_noise_stays_for_a_while() -> None:
    noise = RepeatedNoise(2, 3, 2, longest=4)
    first, second = noise.each()
    generator = torch.Generator().manual_seed(0)
    steps = torch.stack([first(generator) for _ in range(4_000)])  # (T, envs, A)
    changed = (steps[1:] != steps[:-1]).any(-1)
    assert torch.equal(changed, (steps[1:] != steps[:-1]).all(-1))
    ends = changed[:, 0].nonzero()[:, 0]
    lengths = ends.diff()
    weights = 1.0 / torch.arange(1.0, 5.0).square()
    shares = torch.bincount(lengths, minlength=5)[1:] / len(lengths)
    torch.testing.assert_close(shares, weights / weights.sum(), rtol=0.0, atol=0.03)
    assert not torch.equal(changed[:, 0], changed[:, 1])  # environments change on their own
    fresh = steps[1:, 0][changed[:, 0]]
    assert abs(fresh.mean()) < 0.1 and abs(fresh.std() - 1.0) < 0.1
    again = RepeatedNoise(2, 3, 2, longest=4)
    again.load_state_dict(through_a_file(noise.state_dict()))
    states = generator.get_state()
    expected = [first(generator) for _ in range(5)]
    generator.set_state(states)
    assert all(torch.equal(again.each()[0](generator), each) for each in expected)
    assert second(generator).shape == (3, 2)


# ---- the training --------------------------------------------------------------------------------


def test_minibatches_have_scaled_rewards() -> None:
    algorithm = make(small(num_seeds=2))
    for _ in range(3):
        algorithm.iterate()
    rows, noise = algorithm.draw(3)
    assert rows.shape == (3, 2, 16, algorithm.layout.width) and noise.shape == (3, 2, 32, 1)
    factors = algorithm.reward_scale.factors()
    assert factors[0] != factors[1]
    for k, stored in enumerate(algorithm.env_pool.rows()):
        known = (algorithm.layout.rewards(stored) * factors[k]).tolist()
        for reward in algorithm.layout.rewards(rows[:, k]).flatten().tolist():
            assert min(abs(reward - each) for each in known) < 1e-6
    # the pool's own are as they were
    assert min(algorithm.layout.rewards(algorithm.env_pool.rows()[0])) < -1.0


def test_nothing_is_repeated_outside_of_a_training(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    flashsac.train(small(num_seeds=2, run_dir=tmp_path / "run"))
    policy = saved.load_policy(tmp_path / "run")
    obs = torch.randn(7, 3).numpy()
    assert policy.act(obs, policy_id=1).shape == (7, 1)
    draws = [policy.act(obs, deterministic=False) for _ in range(2)]
    # but a bound of the action space
    assert (draws[0] != draws[1]).mean() > 0.5
