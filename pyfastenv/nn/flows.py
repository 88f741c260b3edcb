"""Normalising flows with a leading axis of flows: exact densities, and ratios of two of them.

K flows of the same shape are one batched computation, like :mod:`pyfastenv.nn.networks`, of which
the conditioners are made. Differentiable by autograd (once), no host synchronisation outside
:meth:`RealNVP.set_standardisation`. Knows no environment and no optimiser.

Shapes: K flows, B samples.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from pyfastenv.nn.functional import LOG_TWO_PI
from pyfastenv.nn.networks import MLP


class _Coupling(nn.Module):
    """One affine coupling layer: a part of the components, scaled and shifted given the others.

    Args:
        size: Components.
        start: First transformed component.
        stop: One past the last; the components outside are those it is conditioned on, if any.
        hidden_sizes: The conditioner's, where there is something to condition on.
        scale_limit: Of the logarithms of the scales.
        activation: The conditioner's.
        num_flows: K.
    """

    def __init__(
        self,
        size: int,
        start: int,
        stop: int,
        *,
        hidden_sizes: Sequence[int],
        scale_limit: float,
        activation: str,
        num_flows: int,
    ):
        super().__init__()
        self.start, self.stop = start, stop
        self.scale_limit = scale_limit
        self.num_conditions = size - (stop - start)
        # nothing to condition on: an input of zeros and no hidden layer, so only a bias is learned
        inputs = (self.num_conditions, *hidden_sizes) if self.num_conditions else (1,)
        self.conditioner = MLP(
            (*inputs, 2 * (stop - start)),
            activation=activation,
            num_networks=num_flows,
            last_gain=0.01,
        )

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        before, part, after = self._split(x)
        log_scale, shift = self._coefficients(before, part, after)
        y = part * log_scale.exp() + shift
        return torch.cat((before, y, after), -1), log_scale.sum(-1)

    def inverse(self, y: Tensor) -> Tensor:
        before, part, after = self._split(y)
        log_scale, shift = self._coefficients(before, part, after)
        x = (part - shift) * (-log_scale).exp()
        return torch.cat((before, x, after), -1)

    def _split(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        return x[..., : self.start], x[..., self.start : self.stop], x[..., self.stop :]

    def _coefficients(self, before: Tensor, part: Tensor, after: Tensor) -> tuple[Tensor, Tensor]:
        if self.num_conditions == 0:
            conditions = part.new_zeros(*part.shape[:-1], 1)
        else:  # one of the two is empty
            conditions = after if self.start == 0 else before
        raw, shift = self.conditioner(conditions).chunk(2, -1)
        return self.scale_limit * torch.tanh(raw / self.scale_limit), shift


def _batched(name: str, x: Tensor, num_flows: int, size: int) -> Tensor:
    """To ``(K, B, size)``."""
    one_for_all = x.dim() == 2
    if x.shape[-1:] != (size,) or not (one_for_all or (x.dim() == 3 and len(x) == num_flows)):
        raise ValueError(
            f"{name}: expected ({num_flows}, B, {size}) or (B, {size}), got {tuple(x.shape)}"
        )
    return x.expand(num_flows, -1, -1)


class RealNVP(nn.Module):
    """K flows of affine coupling layers (Dinh et al. 2017, arXiv:1605.08803, section 3).

    A layer leaves one half of the components alone and maps the other, ``x2 * exp(s(x1)) + t(x1)``;
    the next one does it the other way round. With one layer the first ``size // 2`` components are
    never transformed. With size 1 there is nothing to condition on: ``s`` and ``t`` are learned
    constants and the density is a Gaussian.

    Starts near the identity (of the standardised components).

    Args:
        size: Components of a sample.
        num_flows: K.
        num_couplings: Layers.
        hidden_size: Of the networks behind ``s`` and ``t`` (one for both).
        num_hidden: Their hidden layers.
        activation: Theirs: one of :data:`pyfastenv.nn.policy_spec.ACTIVATIONS`.
        scale_limit: ``s`` is ``limit * tanh(s / limit)``, so that a layer scales by at most
            ``exp(limit)``, 148 by default: enough for components that nearly determine each other
            (an observation and the next), little enough to be inverted in float32.

    Raises:
        ValueError: A size or number below 1, a ``scale_limit`` not above 0, an unknown activation.
    """

    mean: Tensor  # (K, size)
    std: Tensor  # (K, size)

    def __init__(
        self,
        size: int,
        *,
        num_flows: int = 1,
        num_couplings: int = 2,
        hidden_size: int = 256,
        num_hidden: int = 2,
        activation: str = "relu",
        scale_limit: float = 5.0,
    ):
        super().__init__()
        for name, value in (
            ("size", size),
            ("num_flows", num_flows),
            ("num_couplings", num_couplings),
            ("hidden_size", hidden_size),
            ("num_hidden", num_hidden),
        ):
            if value < 1:
                raise ValueError(f"{name}: expected a positive integer, got {value}")
        if not 0.0 < scale_limit < math.inf:
            raise ValueError(f"scale_limit: expected a positive number, got {scale_limit}")
        self.size = size
        self.num_flows = num_flows
        half = size // 2
        parts = [(half, size), (0, half or size)]
        self.couplings = nn.ModuleList(
            _Coupling(
                size,
                *parts[i % 2],
                hidden_sizes=[hidden_size] * num_hidden,
                scale_limit=scale_limit,
                activation=activation,
                num_flows=num_flows,
            )
            for i in range(num_couplings)
        )
        self.register_buffer("mean", torch.zeros(num_flows, size))
        self.register_buffer("std", torch.ones(num_flows, size))

    @torch.no_grad()
    def set_standardisation(self, mean: Tensor, std: Tensor) -> None:
        """Fixes what is done first: ``(x - mean) / std``. Densities remain those of ``x``.

        Synchronises with the device.

        Args:
            mean: ``(K, size)``.
            std: ``(K, size)``, positive.

        Raises:
            ValueError: Another shape, a value that is not finite, a ``std`` not above 0.
        """
        shape = (self.num_flows, self.size)
        for name, value in (("mean", mean), ("std", std)):
            if value.shape != shape:
                raise ValueError(f"{name}: expected {shape}, got {tuple(value.shape)}")
            if not bool(value.isfinite().all()):
                raise ValueError(f"{name}: expected finite values, got {value}")
        if not bool((std > 0.0).all()):
            raise ValueError(f"std: expected positive values, got {std}")
        self.mean.copy_(mean)
        self.std.copy_(std)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """From data to the base distribution (the paper's eq. 4 to 6, and the standardisation).

        Args:
            x: ``(K, B, size)``, or ``(B, size)``, the same for all flows.

        Returns:
            ``z (K, B, size)``, and the logarithm of the Jacobian's determinant, ``(K, B)``.

        Raises:
            ValueError: Another shape.
        """
        x = _batched("x", x, self.num_flows, self.size)
        x = (x - self.mean[:, None]) / self.std[:, None]  # (K, B, size)
        log_det = -self.std.log().sum(-1, keepdim=True).expand(x.shape[:-1])  # (K, B)
        for coupling in self.couplings:
            x, change = coupling(x)
            log_det = log_det + change
        return x, log_det

    def inverse(self, z: Tensor) -> Tensor:
        """From the base distribution to data (the paper's eq. 7 and 8).

        Args:
            z: ``(K, B, size)``, or ``(B, size)``, the same for all flows.

        Returns:
            ``x (K, B, size)``.

        Raises:
            ValueError: Another shape.
        """
        z = _batched("z", z, self.num_flows, self.size)
        for coupling in reversed(self.couplings):
            assert isinstance(coupling, _Coupling)
            z = coupling.inverse(z)
        return z * self.std[:, None] + self.mean[:, None]

    def log_prob(self, x: Tensor) -> Tensor:
        """Logarithm of the density under a standard normal base (the paper's eq. 3).

        Args:
            x: ``(K, B, size)``, or ``(B, size)``, the same for all flows.

        Returns:
            ``(K, B)``.

        Raises:
            ValueError: Another shape.
        """
        z, log_det = self(x)
        log_prob: Tensor = log_det - 0.5 * (z.square().sum(-1) + self.size * LOG_TWO_PI)
        return log_prob

    @torch.no_grad()
    def sample(self, n: int, generator: torch.Generator | None = None) -> Tensor:
        """Draws from the flows, without gradients.

        Args:
            n: Samples of each flow.
            generator: On the flows' device; None: PyTorch's own.

        Returns:
            ``(K, n, size)``.

        Raises:
            ValueError: ``n`` below 1.
        """
        if n < 1:
            raise ValueError(f"n: expected a positive integer, got {n}")
        shape = (self.num_flows, n, self.size)
        z = torch.randn(shape, generator=generator, device=self.mean.device, dtype=self.mean.dtype)
        return self.inverse(z)


class CoupledFlow(nn.Module):
    """Ratios of two densities, each a flow (Freund et al. 2023, arXiv:2305.00303).

    Trained together through :func:`donsker_varadhan_loss` the two determine their ratio, but not
    each other: either may be off by a factor that the other one shares.

    Args:
        size: Components of a sample.
        num_networks: K pairs: flow 2k is p1 of the k-th, flow 2k + 1 its p2.
        **options: As for :class:`RealNVP`.

    Raises:
        ValueError: As :class:`RealNVP`.
    """

    def __init__(self, size: int, *, num_networks: int = 1, **options: Any):
        super().__init__()
        if num_networks < 1:
            raise ValueError(f"num_networks: expected a positive integer, got {num_networks}")
        self.num_networks = num_networks
        self.flows = RealNVP(size, num_flows=2 * num_networks, **options)

    def set_standardisation(self, mean: Tensor, std: Tensor) -> None:
        """:meth:`RealNVP.set_standardisation`, the same for both flows of a pair.

        Args:
            mean: ``(K, size)``.
            std: ``(K, size)``, positive.
        """
        self.flows.set_standardisation(mean.repeat_interleave(2, 0), std.repeat_interleave(2, 0))

    def log_ratio(self, x: Tensor) -> Tensor:
        """``log p1(x) - log p2(x)``.

        Args:
            x: ``(K, B, size)``, or ``(B, size)``, the same for all pairs.

        Returns:
            ``(K, B)``.

        Raises:
            ValueError: Another shape.
        """
        x = _batched("x", x, self.num_networks, self.flows.size)
        both = x[:, None].expand(-1, 2, -1, -1).flatten(0, 1)  # (2K, B, size)
        log_prob = self.flows.log_prob(both)  # (2K, B)
        return log_prob[::2] - log_prob[1::2]


def donsker_varadhan_loss(log_ratio_model: Tensor, log_ratio_env: Tensor) -> Tensor:
    """``log mean_env exp(x) - mean_model x``, whose least value is ``-KL(model || env)``.

    The Donsker-Varadhan representation as ValueDICE uses it (Kostrikov et al. 2020,
    arXiv:1912.05032, section 4): smallest where x is ``log p_model / p_env`` plus any constant.
    That is of expectations; the logarithm of a minibatch's mean is a biased estimate.

    Args:
        log_ratio_model: ``(K, B)``: x of samples of the model's.
        log_ratio_env: ``(K, B')``: x of the environment's samples.

    Returns:
        ``(K,)``.
    """
    # the mean goes first: all ratios may be large and alike, and float32 keeps their differences
    differences = log_ratio_env - log_ratio_model.mean(-1, keepdim=True)
    return torch.logsumexp(differences, -1) - math.log(differences.shape[-1])
