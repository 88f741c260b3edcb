"""The interface of optimisers, and what they have in common: how candidates are drawn."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from pyfastenv.vector.arguments import integer

Array = NDArray[np.float64]
# knots (R, K, nu) in [-1, 1] -> costs (R,), infinite where a rollout has none
Evaluate = Callable[[Array], Array]


class Optimizer(Protocol):
    """A strategy that makes a plan better. It has no state; one may serve many planners."""

    @property
    def num_rollouts(self) -> int:
        """How many candidates it asks for at a time."""

    def improve(self, knots: Array, evaluate: Evaluate, rng: np.random.Generator) -> Array:
        """A plan that is hoped to cost less.

        Args:
            knots: (K, nu) in [-1, 1], -1 and 1 standing for the controls' limits.
            evaluate: The costs of candidates.
            rng: Where randomness is from.

        Returns:
            (K, nu) in [-1, 1].
        """


@dataclass(frozen=True, kw_only=True)
class Sampler:
    """Options that all optimisers here have.

    Attributes:
        num_rollouts: Candidates per iteration, R. The first is the plan as it is.
        noise: Standard deviation of the candidates' knots, as a share of half the control range.
        iterations: How often a plan is improved per call.

    Raises:
        ValueError: A number out of range.
    """

    num_rollouts: int = 64
    noise: float = 0.3
    iterations: int = 1

    def __post_init__(self) -> None:
        integer("num_rollouts", self.num_rollouts, minimum=2)
        integer("iterations", self.iterations, minimum=1)
        check_positive("noise", self.noise)

    def draw(self, knots: Array, noise: float | Array, rng: np.random.Generator) -> Array:
        """(R, K, nu) candidates around a plan, within the limits."""
        drawn = knots + noise * rng.standard_normal((self.num_rollouts, *knots.shape))
        drawn[0] = knots
        return np.clip(drawn, -1.0, 1.0)


def check_positive(name: str, value: Any) -> None:
    """Raises ValueError unless a number is finite and above 0."""
    if not (np.isfinite(value) and value > 0):
        raise ValueError(f"{name}: expected a number above 0, got {value!r}")
