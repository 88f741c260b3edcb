"""Pure tensor functions of the algorithms: no environment, no network, no I/O.

Shapes: T steps, N environments, B samples of a minibatch, A action dimensions.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor

from pyfastenv import _core

LOG_TWO_PI = math.log(2.0 * math.pi)


def linear_scan(values: Tensor, decays: Tensor) -> Tensor:
    """Solves ``x[t] = values[t] + decays[t] * x[t + 1]`` (x[T] = 0) for all t.

    Float32 on the CPU in one compiled pass. Elsewhere all t at once: each of log2(T) passes doubles
    the reach.

    Args:
        values: ``(T, …)``.
        decays: ``(T, …)``.
    """
    if values.device.type == "cpu" and values.dtype == decays.dtype == torch.float32:
        rows = [x.detach().reshape(len(x), -1).numpy() for x in (values, decays)]
        return torch.from_numpy(_core.linear_scan(*rows)).view_as(values)
    x = values.clone()
    decay = decays.clone()
    reach = 1
    while reach < len(x):
        x[:-reach] += decay[:-reach] * x[reach:]
        decay[:-reach] = decay[:-reach] * decay[reach:]
        decay[-reach:] = 0.0
        reach *= 2
    return x


def gae(
    rewards: Tensor,
    values: Tensor,
    next_values: Tensor,
    ended: Tensor,
    *,
    gamma: float,
    gae_lambda: float,
) -> Tensor:
    """Generalised advantage estimates (Schulman et al. 2016, arXiv:1506.02438, eq. 16).

    Args:
        rewards: ``(T, N)``.
        values: ``(T, N)`` of ``obs[t]``.
        next_values: ``(T, N)`` of the observation the step led to: 0 where it was terminal, the
            value of the episode's last observation where it was truncated.
        ended: ``(T, N)`` bool: the episode ended with this step, in whichever way.
        gamma: Discount.
        gae_lambda: λ.

    Returns:
        Advantages ``(T, N)``.
    """
    deltas = rewards + gamma * next_values - values
    return linear_scan(deltas, gamma * gae_lambda * (~ended).to(deltas.dtype))


def discounted_returns(rewards: Tensor, ended: Tensor, start: Tensor, gamma: float) -> Tensor:
    """Running discounted sums, ``x[t] = gamma * x[t - 1] * (not ended[t - 1]) + rewards[t]``.

    What gymnasium's NormalizeReward divides by the standard deviation of.

    Args:
        rewards: ``(T, N)``.
        ended: ``(T, N)`` bool.
        start: ``(N,)``: x before the first step, 0 where an episode has just ended.
        gamma: Discount.
    """
    decays = gamma * (~ended).to(rewards.dtype)
    first = rewards[:1] + gamma * start
    values = torch.cat((first, rewards[1:])).flip(0)
    # decay of x[t - 1] into x[t], in reversed time
    shifted = torch.cat((torch.zeros_like(decays[:1]), decays[:-1])).flip(0)
    return linear_scan(values, shifted).flip(0)


PPO_METRICS = (
    "loss/policy",
    "loss/value",
    "policy/entropy",
    "policy/kl",
    "policy/clip_fraction",
)


def gaussian_log_prob(actions: Tensor, mean: Tensor, log_std: Tensor) -> Tensor:
    """Log-probability of independent Gaussians, summed over the last axis.

    Args:
        actions: ``(…, A)``.
        mean: ``(…, A)``.
        log_std: ``(A,)`` or ``(…, A)``.
    """
    z = (actions - mean) * torch.exp(-log_std)
    constant = log_std.sum(-1) + 0.5 * LOG_TWO_PI * actions.shape[-1]
    return -0.5 * z.square().sum(-1) - constant


class SquashedGaussian(NamedTuple):
    """Samples of a Gaussian squashed by tanh, and what their gradient needs."""

    actions: Tensor  # (…, A) in (-1, 1)
    log_probs: Tensor  # (…) of the actions
    spread: Tensor  # (…, A) std * noise: the derivative of the sample before tanh by log_std
    inside: Tensor  # (…, A) bool: log_std was within its range


def squashed_gaussian(
    outputs: Tensor, noise: Tensor, log_std_range: tuple[float, float]
) -> SquashedGaussian:
    """Draws actions (Haarnoja et al. 2018, arXiv:1801.01290, appendix C).

    The logarithm of tanh's slope is computed as ``2 (log 2 - u - softplus(-2 u))``, which stays
    exact where tanh is 1 in float32.

    Args:
        outputs: ``(…, 2 A)``: means, then log-stds.
        noise: ``(…, A)`` standard normal.
        log_std_range: Where the log-stds are clamped.
    """
    mean, raw = outputs.chunk(2, -1)
    log_std = raw.clamp(*log_std_range)
    spread = log_std.exp() * noise
    before = mean + spread
    log_slope = 2.0 * (math.log(2.0) - before - torch.nn.functional.softplus(-2.0 * before))
    log_probs = -(0.5 * noise.square() + log_std + log_slope).sum(-1)
    constant = 0.5 * LOG_TWO_PI * noise.shape[-1]
    return SquashedGaussian(before.tanh(), log_probs - constant, spread, log_std == raw)


def squashed_gaussian_gradient(
    sample: SquashedGaussian, by_actions: Tensor, by_log_probs: Tensor
) -> Tensor:
    """The gradient of a loss by the ``outputs`` that :func:`squashed_gaussian` was given.

    Args:
        sample: Its result.
        by_actions: ``(…, A)`` the loss's derivatives by the actions …
        by_log_probs: ``(…)`` … and by the log-probabilities.

    Returns:
        ``(…, 2 A)``.
    """
    weight = by_log_probs.unsqueeze(-1)
    actions = sample.actions
    # the log-probability's derivative by the sample before tanh is 2 tanh
    by_mean = by_actions * (1.0 - actions.square()) + 2.0 * weight * actions
    by_log_std = torch.where(sample.inside, by_mean * sample.spread - weight, 0.0)
    return torch.cat((by_mean, by_log_std), -1)


def onto_bins(probs: Tensor, values: Tensor, bins: Tensor) -> Tensor:
    """A distribution over values as one over bins of the same mean, within their range
    (Bellemare et al. 2017, arXiv:1707.06887, eq. 7).

    Args:
        probs: ``(…, n)``.
        values: ``(…, n)`` of what they are the probabilities.
        bins: ``(m,)``, ascending, at equal distances.

    Returns:
        ``(…, m)``; NaN in the place of a value that is.
    """
    first, last = bins[0], bins[-1]
    places = (values.clamp(first, last) - first) * ((len(bins) - 1) / (last - first))  # (…, n)
    lower = places.floor().clamp_(max=len(bins) - 2)
    share = places - lower
    index = lower.nan_to_num().long()  # of NaN the first bin, whose share is NaN
    found = torch.zeros(*probs.shape[:-1], len(bins), dtype=probs.dtype, device=probs.device)
    found.scatter_add_(-1, index, probs * (1.0 - share))
    return found.scatter_add_(-1, index + 1, probs * share)


class GaussianLossGradients(NamedTuple):
    """The results of :func:`bounded_gaussian_gradients`."""

    outputs: Tensor  # (M, B, 2 D)
    max_log_var: Tensor  # (M, D)
    min_log_var: Tensor  # (M, D)
    loss: Tensor  # (M,) the negative log-likelihood, without its constant


def bounded_log_var(raw: Tensor, low: Tensor, high: Tensor) -> Tensor:
    """Log-variances kept softly within bounds (Chua et al. 2018, arXiv:1805.12114, appendix A.1).

    Args:
        raw: ``(M, B, D)``.
        low: ``(M, 1, D)``.
        high: ``(M, 1, D)``.
    """
    below = high - torch.nn.functional.softplus(high - raw)
    return low + torch.nn.functional.softplus(below - low)


def bounded_gaussian_gradients(
    outputs: Tensor, targets: Tensor, low: Tensor, high: Tensor
) -> GaussianLossGradients:
    """The likelihood loss of M probabilistic networks and its gradients, written out.

    The loss of a network is the mean over samples and components of
    ``(mean - target)^2 exp(-log_var) + log_var``, with log-variances of :func:`bounded_log_var`
    (Chua et al. 2018, eq. 1; MBPO takes means where that has sums).

    Args:
        outputs: ``(M, B, 2 D)``: means, then raw log-variances.
        targets: ``(M, B, D)``.
        low: ``(M, 1, D)`` lower bounds.
        high: ``(M, 1, D)`` upper bounds.
    """
    mean, raw = outputs.chunk(2, -1)
    from_high = high - raw
    below = high - torch.nn.functional.softplus(from_high)
    from_low = below - low
    log_var = low + torch.nn.functional.softplus(from_low)
    inverse_var = torch.exp(-log_var)
    error = mean - targets
    weighted = error * inverse_var
    share = 1.0 / (error.shape[1] * error.shape[2])
    by_log_var = (1.0 - weighted * error) * share
    by_below = by_log_var * torch.sigmoid(from_low)
    by_raw = by_below * torch.sigmoid(from_high)
    return GaussianLossGradients(
        outputs=torch.cat((weighted * (2.0 * share), by_raw), -1),
        max_log_var=(by_below - by_raw).sum(1),
        min_log_var=(by_log_var - by_below).sum(1),
        loss=(weighted * error + log_var).mean((1, 2)),
    )


def random_shift(pictures: Tensor, offsets: Tensor, pad: int) -> Tensor:
    """Pictures moved by whole pixels; what comes in at an edge is the edge's (Yarats et al. 2021,
    arXiv:2107.09645, section 3.1; their bilinear interpolation is at whole pixels too).

    Args:
        pictures: ``(N, channels, height, width)``.
        offsets: ``(N, 2)`` int64 from 0 to ``2 * pad``, rows and columns; ``pad`` moves nothing.
        pad: Pixels by which a picture moves at most, in each direction.
    """
    top, bottom = pictures[:, :, :1], pictures[:, :, -1:]
    wide = torch.cat((*[top] * pad, pictures, *[bottom] * pad), 2)
    wide = torch.cat((*[wide[..., :1]] * pad, wide, *[wide[..., -1:]] * pad), 3)
    height, width = pictures.shape[2:]
    windows = wide.unfold(2, height, 1).unfold(3, width, 1)  # (N, C, 2 pad + 1, 2 pad + 1, H, W)
    each = torch.arange(len(pictures), device=pictures.device)
    return windows.movedim(1, 3)[each, offsets[:, 0], offsets[:, 1]]
