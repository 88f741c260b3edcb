"""Predictive sampling: the best of the candidates is the plan."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pyfastenv.planning.optimizer import Array, Evaluate, Sampler


@dataclass(frozen=True, kw_only=True)
class PredictiveSampling(Sampler):
    """Takes the cheapest candidate, so a plan is never worse than the one before.

    Howell et al. 2022, "Predictive Sampling: Real-time Behaviour Synthesis with MuJoCo",
    arXiv:2212.00541, algorithm 1.
    """

    def improve(self, knots: Array, evaluate: Evaluate, rng: np.random.Generator) -> Array:
        """See :class:`pyfastenv.planning.optimizer.Optimizer`."""
        for _ in range(self.iterations):
            candidates = self.draw(knots, self.noise, rng)
            knots = candidates[evaluate(candidates).argmin()]
        return knots
