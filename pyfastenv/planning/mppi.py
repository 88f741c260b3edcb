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
        temperature: In units of the standard deviation of the candidates' costs, so that it need
            not follow a cost's scale. Small: only the best count; large: all alike.
    """

    temperature: float = 0.1

    def __post_init__(self) -> None:
        super().__post_init__()
        check_positive("temperature", self.temperature)

    def improve(self, knots: Array, evaluate: Evaluate, rng: np.random.Generator) -> Array:
        """See :class:`pyfastenv.planning.optimizer.Optimizer`."""
        for _ in range(self.iterations):
            candidates = self.draw(knots, self.noise, rng)
            costs = evaluate(candidates)
            costs -= costs.min()
            scale = self.temperature * costs[np.isfinite(costs)].std()
            if scale > 0:  # else all that count cost the same
                costs /= scale
            weights = np.exp(-costs)
            knots = np.tensordot(weights / weights.sum(), candidates, 1)
        return knots
