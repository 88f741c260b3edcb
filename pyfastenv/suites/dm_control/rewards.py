"""Soft "x is within bounds": dm_control's ``rewards.tolerance`` with NumPy's bits.

Formulas: dm_control/utils/rewards.py, version 1.0.50 (Tassa et al. 2018, arXiv:1801.00690, fig. 4).
"""

import numpy as np

GAUSSIAN, LINEAR, QUADRATIC, LONG_TAIL, RECIPROCAL = range(5)


def tolerance(x, bounds=(0.0, 0.0), margin=0.0, sigmoid=GAUSSIAN, value_at_margin=0.1):
    """1 within the bounds, falling to ``value_at_margin`` at a distance of ``margin``.

    Args:
        x: A number.
        bounds: The least and the greatest; either may be infinite.
        margin: 0 means that everything outside is worth 0.
        sigmoid: How it falls: one of the constants of this module.
        value_at_margin: Above 0; with LINEAR and QUADRATIC it may be 0.
    """
    lower, upper = bounds
    if lower <= x <= upper:
        return 1.0
    if margin == 0:
        return 0.0
    scaled = (lower - x if x < lower else x - upper) / margin * scale(sigmoid, value_at_margin)
    return fall(sigmoid, scaled, scaled**2)


def tolerances(x, bounds=(0.0, 0.0), margin=0.0, sigmoid=GAUSSIAN, value_at_margin=0.1):
    """The same for each number of a vector, which NumPy squares by multiplying, not by ``pow``."""
    lower, upper = bounds
    values = np.zeros(x.size)
    factor = scale(sigmoid, value_at_margin)
    for i in range(x.size):
        if lower <= x[i] <= upper:
            values[i] = 1.0
        elif margin != 0:
            scaled = (lower - x[i] if x[i] < lower else x[i] - upper) / margin * factor
            values[i] = fall(sigmoid, scaled, scaled * scaled)
    return values


def scale(sigmoid, value_at_margin):
    """The factor by which a distance, in margins, is multiplied."""
    if sigmoid == GAUSSIAN:
        return np.sqrt(-2.0 * np.log(value_at_margin))
    if sigmoid == LINEAR:
        return 1.0 - value_at_margin
    if sigmoid == QUADRATIC:
        return np.sqrt(1.0 - value_at_margin)
    if sigmoid == LONG_TAIL:
        return np.sqrt(1.0 / value_at_margin - 1.0)
    return 1.0 / value_at_margin - 1.0


def fall(sigmoid, scaled, square):
    """The value at a scaled distance, whose square is given too."""
    if sigmoid == GAUSSIAN:
        return np.exp(-0.5 * square)
    if sigmoid == LINEAR:
        return 1.0 - scaled if abs(scaled) < 1.0 else 0.0
    if sigmoid == QUADRATIC:
        return 1.0 - square if abs(scaled) < 1.0 else 0.0
    if sigmoid == LONG_TAIL:
        return 1.0 / (square + 1.0)
    return 1.0 / (abs(scaled) + 1.0)
