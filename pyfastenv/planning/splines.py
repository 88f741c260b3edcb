"""Splines of controls over time, as weights of their knots: controls = weights @ knots."""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Kind = Literal["zero", "linear", "cubic"]
KINDS: tuple[Kind, ...] = get_args(Kind)
FEWEST_KNOTS: dict[Kind, int] = {"zero": 1, "linear": 2, "cubic": 2}


def num_segments(kind: Kind, num_knots: int) -> int:
    """How many parts of equal length the knots divide a plan into.

    A knot of order zero stands for the steps up to the next knot; the others' last knot is at the
    plan's end.
    """
    return num_knots if kind == "zero" else num_knots - 1


def weights(kind: Kind, num_knots: int, times: Array) -> Array:
    """The share that each knot has in a spline's values.

    ``"zero"`` holds the latest knot, ``"linear"`` joins knots by lines, ``"cubic"`` by Hermite
    polynomials whose slope in a knot is that between its neighbours (one-sided at the ends), which
    passes through the knots without a bend. Behind the last knot its value is held.

    Args:
        kind: Which spline.
        num_knots: K.
        times: (T,) >= 0, in segments.

    Returns:
        (T, K), each row of which sums to 1.
    """
    last = num_knots - 1
    rows = np.arange(len(times))
    t = np.minimum(times, last)
    if kind == "zero":
        w = np.zeros((len(t), num_knots))
        w[rows, t.astype(int)] = 1.0
        return w
    left = np.minimum(t.astype(int), last - 1)
    s = t - left
    at, slope_at = np.eye(num_knots), np.gradient(np.eye(num_knots), axis=0)
    s = s[:, None]
    if kind == "linear":
        lines: Array = (1 - s) * at[left] + s * at[left + 1]
        return lines
    curves: Array = (
        (1 + 2 * s) * (1 - s) ** 2 * at[left]
        + s * (1 - s) ** 2 * slope_at[left]
        + s**2 * (3 - 2 * s) * at[left + 1]
        + s**2 * (s - 1) * slope_at[left + 1]
    )
    return curves
