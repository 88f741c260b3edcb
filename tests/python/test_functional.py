"""Pure functions against plain loops and autograd."""

import math

import pytest
import torch

from pyfastenv.algorithms.ppo.spec import Columns, ppo_loss
from pyfastenv.nn.functional import (
    PPO_METRICS,
    bounded_gaussian_gradients,
    bounded_log_var,
    discounted_returns,
    gae,
    gaussian_log_prob,
    linear_scan,
    squashed_gaussian,
    squashed_gaussian_gradient,
)


def _generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])  # compiled, in torch
@pytest.mark.parametrize("num_steps", [1, 2, 3, 7, 64, 100])
def test_linear_scan_equals_the_loop(num_steps: int, dtype: torch.dtype) -> None:
    generator = _generator()
    values = torch.randn(num_steps, 5, dtype=dtype, generator=generator)
    decays = torch.rand(num_steps, 5, dtype=dtype, generator=generator)
    before = values.clone(), decays.clone()
    expected = torch.zeros_like(values)
    x = torch.zeros(5, dtype=dtype)
    for t in reversed(range(num_steps)):
        x = values[t] + decays[t] * x
        expected[t] = x
    torch.testing.assert_close(linear_scan(values, decays), expected)
    assert torch.equal(values, before[0]) and torch.equal(decays, before[1])


def test_gae_bootstraps_on_truncation_and_not_on_termination() -> None:
    gamma, gae_lambda = 0.9, 0.8
    rewards = torch.tensor([[1.0], [2.0], [3.0], [4.0]])
    values = torch.tensor([[0.5], [0.6], [0.7], [0.8]])
    # step 0 terminates; step 2 is truncated in a state worth 5; the last leads to one worth 9
    next_values = torch.tensor([[0.0], [0.7], [5.0], [9.0]])
    ended = torch.tensor([[True], [False], [True], [False]])
    deltas = [1.0 - 0.5, 2.0 + 0.9 * 0.7 - 0.6, 3.0 + 0.9 * 5.0 - 0.7, 4.0 + 0.9 * 9.0 - 0.8]
    expected = [deltas[0], deltas[1] + gamma * gae_lambda * deltas[2], deltas[2], deltas[3]]
    advantages = gae(rewards, values, next_values, ended, gamma=gamma, gae_lambda=gae_lambda)
    torch.testing.assert_close(advantages[:, 0], torch.tensor(expected))


def test_discounted_returns_restart_with_episodes() -> None:
    generator = _generator()
    rewards = torch.randn(50, 4, generator=generator)
    ended = torch.rand(50, 4, generator=generator) < 0.1
    start = torch.randn(4, generator=generator)
    x, expected = start.clone(), []
    for t in range(50):
        x = rewards[t] + 0.9 * x
        expected.append(x)
        x = x * ~ended[t]
    result = discounted_returns(rewards, ended, start, 0.9)
    torch.testing.assert_close(result, torch.stack(expected))


def _case(discrete: bool) -> dict[str, torch.Tensor]:
    """A minibatch that has every branch of the loss, several times over."""
    generator = _generator(3)

    def randn(*shape: int) -> torch.Tensor:
        return torch.randn(*shape, dtype=torch.float64, generator=generator)

    batch, size = 200, 3
    outputs, log_std = randn(batch, size), 0.3 * randn(size)
    if discrete:
        actions = torch.randint(size, (batch,), generator=generator)
        log_probs = torch.log_softmax(outputs, -1).gather(-1, actions[:, None]).squeeze(-1)
    else:
        actions = outputs + randn(batch, size)
        log_probs = gaussian_log_prob(actions, outputs, log_std)
    values = randn(batch)
    return {
        "outputs": outputs,
        "log_std": log_std,
        "values": values,
        "actions": actions,
        "log_probs": log_probs + 0.3 * randn(batch),
        "advantages": randn(batch),
        "returns": randn(batch),
        "old_values": values + 0.3 * randn(batch),
    }


@pytest.mark.parametrize("discrete", [False, True])
@pytest.mark.parametrize("value_clip", [0.0, 0.2])
@pytest.mark.parametrize("entropy_coef", [0.0, 0.7])
def test_ppos_loss_is_that_of_torchs_distributions(
    discrete: bool, value_clip: float, entropy_coef: float
) -> None:
    case = _case(discrete)
    outputs = case["outputs"].requires_grad_()
    values = case["values"].requires_grad_()
    log_std = None if discrete else case["log_std"].requires_grad_()
    clip, value_coef = 0.2, 0.5
    if log_std is None:
        distribution = torch.distributions.Categorical(logits=outputs)
        log_probs, entropy = distribution.log_prob(case["actions"]), distribution.entropy()
    else:
        normal = torch.distributions.Normal(outputs, log_std.exp())
        log_probs = normal.log_prob(case["actions"]).sum(-1)
        entropy = normal.entropy().sum(-1)
    ratio = (log_probs - case["log_probs"]).exp()
    advantages = case["advantages"]
    policy_loss = -torch.min(
        advantages * ratio, advantages * ratio.clamp(1 - clip, 1 + clip)
    ).mean()
    squared = (values - case["returns"]).square()
    if value_clip > 0:
        near = case["old_values"] + (values - case["old_values"]).clamp(-value_clip, value_clip)
        squared = torch.max(squared, (near - case["returns"]).square())
    value_loss = 0.5 * squared.mean()
    loss = policy_loss + value_coef * value_loss - entropy_coef * entropy.mean()
    wanted = [outputs, values] if log_std is None else [outputs, values, log_std]
    expected = torch.autograd.grad(loss, wanted)

    names = ("actions", "log_probs", "advantages", "returns", "old_values")
    columns = Columns(torch.empty(0), torch.empty(0), *(case[name] for name in names))
    coefficients = {"entropy_coef": entropy_coef, "value_coef": value_coef}
    result = ppo_loss(
        outputs, log_std, values, columns, clip=clip, value_clip=value_clip, **coefficients
    )
    torch.testing.assert_close(torch.autograd.grad(result.loss, wanted), expected)
    metrics = dict(zip(PPO_METRICS, result.metrics.tolist(), strict=True))
    assert metrics["loss/policy"] == pytest.approx(policy_loss.item())
    assert metrics["loss/value"] == pytest.approx(value_loss.item())
    assert metrics["policy/entropy"] == pytest.approx(entropy.mean().item())
    # the case is not trivial
    assert 0.2 < metrics["policy/clip_fraction"] < 0.8
    assert math.isfinite(metrics["policy/kl"]) and metrics["policy/kl"] > 0


# ---- squashed Gaussians --------------------------------------------------------------------------

RANGES = [(-20.0, 2.0), (-0.7, 0.3)]  # the second clamps about half of the log-stds below


def _squashed_case() -> tuple[torch.Tensor, torch.Tensor]:
    """Outputs ``(2, 40, 6)`` and noise for three action components, float64."""
    generator = _generator(1)
    outputs = torch.randn(2, 40, 6, dtype=torch.float64, generator=generator)
    outputs[0, :2, 3:] = torch.tensor(RANGES[1]).double()[:, None]  # at a bound
    noise = torch.randn(2, 40, 3, dtype=torch.float64, generator=generator)
    return outputs.clamp_(-2.0, 1.0), noise.clamp_(-1.5, 1.5)  # below 1 - tanh^2 has its digits


@pytest.mark.parametrize("log_std_range", RANGES)
def test_squashed_gaussian_is_torchs(log_std_range: tuple[float, float]) -> None:
    outputs, noise = _squashed_case()
    sample = squashed_gaussian(outputs, noise, log_std_range)
    mean, raw = outputs.chunk(2, -1)
    std = raw.clamp(*log_std_range).exp()
    distributions = torch.distributions
    transforms = [distributions.TanhTransform(), distributions.AffineTransform(0.5, 2.0)]
    squashed = distributions.TransformedDistribution(
        distributions.Normal(mean, std), transforms[:1]
    )
    expected = squashed.log_prob(sample.actions).sum(-1)
    torch.testing.assert_close(sample.actions, (mean + std * noise).tanh())
    torch.testing.assert_close(sample.log_probs, expected, rtol=1e-7, atol=1e-7)
    # of the actions in a box: a constant apart
    scaled = distributions.TransformedDistribution(distributions.Normal(mean, std), transforms)
    in_box = scaled.log_prob(0.5 + 2.0 * sample.actions).sum(-1)
    torch.testing.assert_close(sample.log_probs - 3.0 * math.log(2.0), in_box, rtol=1e-7, atol=1e-7)


def test_squashed_gaussian_is_exact_where_tanh_is_one() -> None:
    outputs = torch.tensor([[40.0, -1.0], [-40.0, -1.0], [12.0, 0.0]])
    noise = torch.tensor([[0.5], [0.5], [-1.0]])
    sample = squashed_gaussian(outputs, noise, (-20.0, 2.0))
    before = outputs[:, :1].double() + outputs[:, 1:].double().exp() * noise.double()
    normal = torch.distributions.Normal(outputs[:, :1].double(), outputs[:, 1:].double().exp())
    # log(1 - tanh(u)^2) = log 4 - 2 |u| - 2 log(1 + exp(-2 |u|))
    far = before.abs()
    slope = math.log(4.0) - 2.0 * far - 2.0 * torch.log1p((-2.0 * far).exp())
    expected = (normal.log_prob(before) - slope)[:, 0]
    assert (sample.actions[:2].abs() == 1.0).all()
    torch.testing.assert_close(sample.log_probs.double(), expected, rtol=1e-5, atol=0.0)


@pytest.mark.parametrize("log_std_range", RANGES)
def test_squashed_gaussian_gradient_is_autograds(log_std_range: tuple[float, float]) -> None:
    outputs, noise = _squashed_case()
    generator = _generator(2)
    by_actions = torch.randn(2, 40, 3, dtype=torch.float64, generator=generator)
    by_log_probs = torch.randn(2, 40, dtype=torch.float64, generator=generator)

    outputs.requires_grad_()
    mean, raw = outputs.chunk(2, -1)
    std = raw.clamp(*log_std_range).exp()
    before = mean + std * noise
    log_probs = torch.distributions.Normal(mean, std).log_prob(before)
    log_probs = (log_probs - torch.log1p(-before.tanh().square())).sum(-1)
    loss = (by_actions * before.tanh()).sum() + (by_log_probs * log_probs).sum()
    (expected,) = torch.autograd.grad(loss, outputs)

    with torch.no_grad():
        sample = squashed_gaussian(outputs, noise, log_std_range)
        result = squashed_gaussian_gradient(sample, by_actions, by_log_probs)
    torch.testing.assert_close(result, expected, rtol=1e-9, atol=1e-9)
    low, high = log_std_range
    clamped = (raw < low) | (raw > high)
    assert torch.equal(result[..., 3:] == 0.0, clamped)
    assert clamped.double().mean() > 0.3 or log_std_range == RANGES[0]


# ---- bounded Gaussians ---------------------------------------------------------------------------


def test_bounded_gaussian_gradients_are_autograds() -> None:
    generator = _generator(4)

    def randn(*shape: int) -> torch.Tensor:
        return torch.randn(*shape, dtype=torch.float64, generator=generator)

    networks, batch, size = 3, 17, 4
    # raw log-variances below, between and above the bounds
    outputs = torch.cat(
        (randn(networks, batch, size), 4.0 * randn(networks, batch, size) - 1.0), -1
    )
    targets = randn(networks, batch, size)
    low, high = -3.0 + 0.1 * randn(networks, 1, size), 0.5 + 0.1 * randn(networks, 1, size)
    for tensor in (outputs, low, high):
        tensor.requires_grad_()
    mean, raw = outputs.chunk(2, -1)
    log_var = high - torch.log1p((high - raw).exp())
    log_var = low + torch.log1p((log_var - low).exp())
    losses = ((mean - targets).square() / log_var.exp() + log_var).mean((1, 2))
    expected = torch.autograd.grad(losses.sum(), (outputs, high, low))

    with torch.no_grad():
        result = bounded_gaussian_gradients(outputs, targets, low, high)
        torch.testing.assert_close(bounded_log_var(raw, low, high), log_var)
    torch.testing.assert_close(result.loss, losses)
    torch.testing.assert_close(result.outputs, expected[0])
    torch.testing.assert_close(result.max_log_var, expected[1][:, 0])
    torch.testing.assert_close(result.min_log_var, expected[2][:, 0])
    assert all((gradient != 0.0).all() for gradient in expected)
