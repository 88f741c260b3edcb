"""A planner: it keeps a plan, makes it better from the present state, and moves on with time."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pyfastenv.planning import splines
from pyfastenv.planning.optimizer import Optimizer
from pyfastenv.planning.predictive_sampling import PredictiveSampling
from pyfastenv.vector.arguments import integer

Array = NDArray[np.float64]


class Rollouts(Protocol):
    """The interface to costs of plans: :class:`ModelRollouts`, :class:`EnvRollouts`."""

    low: Array  # (nu,)
    high: Array

    def costs(self, state: Any, controls: Array) -> Array:
        """Costs (R,) of controls (R, T, nu) from a state."""


class Planner:
    """Plans from the present state at every call, beginning with the plan of the call before.

    A plan is a spline of the controls over the horizon. Its knots stand at fixed times; as time
    goes on (:meth:`advance`) the first is dropped and the last one repeated. What is left of a plan
    is the same controls as before (of a cubic one up to its first and last segments, whose outer
    slopes change). Equal seeds, states and calls give equal controls.

    Args:
        rollouts: What candidates cost.
        optimizer: Which strategy draws and chooses them; by default ``PredictiveSampling()``.
        horizon: T, steps of the rollouts that a plan covers.
        num_knots: K.
        spline: ``"zero"``, ``"linear"`` or ``"cubic"`` (see ``planning.splines.weights``).
        start: (nu,), what all knots are at first; None: 0, or the limit that is next to it.
        seed: Of the random numbers.

    Attributes:
        cost: Of the best candidate of the latest call's last iteration; NaN before.

    Raises:
        ValueError: A number out of range, or a start of another shape or beyond the limits.
    """

    def __init__(
        self,
        rollouts: Rollouts,
        optimizer: Optimizer | None = None,
        *,
        horizon: int,
        num_knots: int = 6,
        spline: splines.Kind = "cubic",
        start: ArrayLike | None = None,
        seed: int = 0,
    ):
        if spline not in splines.KINDS:
            raise ValueError(f"spline: expected {', '.join(splines.KINDS)}, got {spline!r}")
        self.rollouts = rollouts
        self.optimizer = PredictiveSampling() if optimizer is None else optimizer
        self.horizon = integer("horizon", horizon, minimum=1)
        self.num_knots = integer("num_knots", num_knots, minimum=splines.FEWEST_KNOTS[spline])
        self.spline: splines.Kind = spline
        self.seed = integer("seed", seed, minimum=0)
        self._segments = splines.num_segments(spline, self.num_knots)
        self._center = (rollouts.low + rollouts.high) / 2
        self._half = (rollouts.high - rollouts.low) / 2
        self._start = self._checked_start(start)
        self.reset(seed=self.seed)

    def _checked_start(self, start: ArrayLike | None) -> Array:
        low, high = self.rollouts.low, self.rollouts.high
        if start is None:
            return np.clip(np.zeros_like(low), low, high)
        given = np.array(start, np.float64)
        if given.shape != low.shape or not ((low <= given) & (given <= high)).all():
            raise ValueError(
                f"start: expected {low.shape} from {low.tolist()} to {high.tolist()}, "
                f"got {given.tolist()}"
            )
        return given

    def reset(self, seed: int | None = None) -> None:
        """Forgets the plan.

        Args:
            seed: Begins the random stream anew, too; None: it goes on.
        """
        if seed is not None:
            self._rng = np.random.default_rng(seed)
        knot = np.zeros_like(self._half)  # of a control that cannot move
        np.divide(self._start - self._center, self._half, out=knot, where=self._half > 0.0)
        self._knots = np.tile(knot, (self.num_knots, 1))
        self._phase = 0  # since the first knot, in steps / segments
        self.cost = np.nan

    def controls(self) -> Array:
        """The present plan, (T, nu), from now on."""
        return self._controls(self._knots)

    def plan(self, state: Any) -> Array:
        """Improves the plan from a state.

        Args:
            state: What the rollouts begin from: an MjData, a row, a snapshot.

        Returns:
            (T, nu) float64, within the limits.

        Raises:
            ValueError: No candidate has a finite cost (the plan is as before), or a state that does
                not fit.
        """

        best = np.inf

        def evaluate(knots: Array) -> Array:
            nonlocal best
            costs = self.rollouts.costs(state, self._controls(knots))
            costs = np.where(np.isfinite(costs), costs, np.inf)
            best = costs.min()
            if best == np.inf:
                raise ValueError(f"cost: none of {len(costs)} candidates has a finite one")
            return costs

        self._knots = self.optimizer.improve(self._knots, evaluate, self._rng)
        self.cost = float(best)
        return self.controls()

    def advance(self, num_steps: int = 1) -> None:
        """Moves on in time: the plan's first ``num_steps`` controls are in the past."""
        self._phase += integer("num_steps", num_steps, minimum=0) * self._segments
        passed, self._phase = divmod(self._phase, self.horizon)
        later = np.minimum(np.arange(self.num_knots) + passed, self.num_knots - 1)
        self._knots = self._knots[later]

    def act(self, state: Any) -> Array:
        """Plans from a state, moves on by a step, and returns the control for it, (nu,)."""
        control: Array = self.plan(state)[0]
        self.advance()
        return control

    def _controls(self, knots: Array) -> Array:
        """(…, T, nu) of knots (…, K, nu)."""
        times = (self._phase + self._segments * np.arange(self.horizon)) / self.horizon
        shares = splines.weights(self.spline, self.num_knots, times)
        controls = self._center + self._half * np.clip(shares @ knots, -1.0, 1.0)
        # the sum may be off by a rounding
        return np.clip(controls, self.rollouts.low, self.rollouts.high)
