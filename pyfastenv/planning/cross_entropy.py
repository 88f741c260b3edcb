"""The cross-entropy method: a Gaussian is fitted to the best candidates again and again."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pyfastenv.planning.optimizer import Array, Evaluate, Sampler, check_positive
from pyfastenv.vector.arguments import integer


@dataclass(frozen=True, kw_only=True)
class CrossEntropy(Sampler):
    """Takes the elites' mean as the plan, and their spread for the next iteration's noise.

    De Boer et al. 2005, "A Tutorial on the Cross-Entropy Method". Every call begins with ``noise``.

    Attributes:
        num_elites: How many of the candidates are fitted.
        least_noise: Below which the noise does not fall, in the units of ``noise``.
    """

    iterations: int = 2
    num_elites: int = 8
    least_noise: float = 0.02

    def __post_init__(self) -> None:
        super().__post_init__()
        integer("num_elites", self.num_elites, minimum=1, below=self.num_rollouts + 1)
        check_positive("least_noise", self.least_noise)

    def improve(self, knots: Array, evaluate: Evaluate, rng: np.random.Generator) -> Array:
        """See :class:`pyfastenv.planning.optimizer.Optimizer`."""
        noise = np.full(knots.shape, self.noise)
        for _ in range(self.iterations):
            candidates = self.draw(knots, noise, rng)
            costs = evaluate(candidates)
            num_elites = min(self.num_elites, np.count_nonzero(np.isfinite(costs)))
            elites = candidates[np.argsort(costs, kind="stable")[:num_elites]]
            knots, noise = elites.mean(0), np.maximum(elites.std(0), self.least_noise)
        return knots
