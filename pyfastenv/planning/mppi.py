"""MPPI: the candidates' mean, weighted by how little they cost."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pyfastenv.planning.optimizer import Array, Evaluate, Sampler, check_positive


@dataclass(frozen=True, kw_only=True)
class MPPI(Sampler):
    """Model predictive path integral control over a spline's knots.

    Williams et al. 2018, "Information-Theoretic Model Predictive Control", IEEE T-RO 34(6),
    algorithm 2 without the control cost: weights are exp(-(cost - least) / temperature).

    Attributes:
        temperature: In units of how far the candidates' median is above the least cost, so that it
            need not follow a cost's scale, and a rollout that diverges does not count. Small: only
            the best count; large: all alike.
    """

    temperature: float = 0.05

    def __post_init__(self) -> None:
        super().__post_init__()
        check_positive("temperature", self.temperature)

    def improve(self, knots: Array, evaluate: Evaluate, rng: np.random.Generator) -> Array:
        """See :class:`pyfastenv.planning.optimizer.Optimizer`."""
        for _ in range(self.iterations):
            candidates = self.draw(knots, self.noise, rng)
            weights = self._weights(evaluate(candidates))
            knots = np.tensordot(weights, candidates, 1)
        return knots

    def _weights(self, costs: Array) -> Array:
        """(R,), which sum to 1."""
        above = costs - costs.min()
        spread = self.temperature * np.median(above[np.isfinite(above)])
        shares: Array = np.exp(-above / spread) if spread > 0 else 1.0 * (above == 0)
        shares /= shares.sum()
        return shares
