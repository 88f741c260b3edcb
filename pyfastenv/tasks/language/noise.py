"""Noise of observations, by name, that environments draw for themselves.

    from pyfastenv.tasks.language.noise import normal, uniform

    class Quadruped(pyfastenv.Task):
        observation_noise = {"gyro": uniform(-0.2, 0.2), "joints": normal(0.01)}

It is drawn from the environment's own stream after ``reset`` and after each ``step``, and kept
until the next one: an observation may be asked for more than once. What ``observation`` writes
under another name has none, such as what a critic sees.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from pyfastenv.tasks.language.layout import Part
from pyfastenv.tasks.language.randomise import Draw
from pyfastenv.tasks.language.randomise import uniform as _uniform
from pyfastenv.tasks.language.spelling import did_you_mean

NOISE = "_observation_noise"  # the memory in which it is kept
_KINDS = ("uniform", "normal")


def uniform(low: Any, high: Any, *, together: bool = False) -> Draw:
    """Uniform noise; bounds may be one for each element: ``uniform((-0.1, -0.2), (0.1, 0.2))``.

    Args:
        low: A number, or ``(n,)`` where the observation has as many elements.
        high: Likewise, not below ``low``.
        together: One number is drawn for all elements; not with bounds for each.

    Raises:
        ValueError: A bound below the other, or other bounds than these.
    """
    if np.ndim(low) == np.ndim(high) == 0:
        return _uniform(low, high, together=together)
    lows, highs = np.asarray(low, np.float64), np.asarray(high, np.float64)
    if lows.ndim != 1 or lows.shape != highs.shape or together or not (lows <= highs).all():
        raise ValueError(
            f"uniform: expected low <= high, numbers or one of each for every element, drawn "
            f"apart, got {low} and {high}{' together' if together else ''}"
        )
    return Draw("uniform", tuple(lows.tolist()), tuple(highs.tolist()), False)


def normal(deviation: float, *, together: bool = False) -> Draw:
    """Gaussian noise around zero; ``together``: one number for all elements of an observation.

    Raises:
        ValueError: A standard deviation below zero, or none at all.
    """
    if not 0.0 <= deviation < math.inf:
        raise ValueError(f"normal: expected a standard deviation from 0 on, got {deviation}")
    return Draw("normal", 0.0, float(deviation), bool(together))


def noise_parts(
    given: Any, written: Mapping[str, Part], owner: str
) -> dict[str, tuple[Draw, Part]]:
    """A task's ``observation_noise`` (None and False: none), with where its observations stand.

    Raises:
        TypeError: Not a dict of draws. ValueError: No such observation, or bounds for elements of
            another one.
    """
    if given is None or given is False:
        return {}
    if not isinstance(given, Mapping) or not all(
        isinstance(draw, Draw) and draw.kind in _KINDS for draw in given.values()
    ):
        raise TypeError(
            f"{owner}.observation_noise: expected a dict such as {{'gyro': normal(0.1)}}, of "
            f"normal and uniform, got {given!r}"
        )
    for name in given:
        if name not in written:
            raise ValueError(
                f"{owner}.observation_noise: no obs[{name!r}]; observation writes "
                f"{', '.join(written)}{did_you_mean(name, written)}"
            )
    for name, draw in given.items():
        if isinstance(draw.low, tuple) and len(draw.low) != written[name].size:
            raise ValueError(
                f"{owner}.observation_noise: expected bounds for the {written[name].size} elements "
                f"of {name!r}, got {len(draw.low)}"
            )
    return {name: (draw, written[name]) for name, draw in given.items()}


def noise_size(parts: Mapping[str, tuple[Draw, Part]]) -> int:
    """How many numbers are drawn."""
    return sum(1 if draw.together else part.size for draw, part in parts.values())


def noise_code(parts: Mapping[str, tuple[Draw, Part]]) -> tuple[str, str]:
    """The code that draws noise, and the code that adds it to a flat observation, ``row``."""
    draws, adds, at = "", "", 0
    for draw, part in parts.values():
        drawn = 1 if draw.together else part.size
        if isinstance(draw.low, tuple):
            for i, (low, high) in enumerate(zip(draw.low, draw.high, strict=True), start=at):
                draws += f"self.{NOISE}[{i}] = rng.uniform({low!r}, {high!r})\n"
        else:
            call = f"rng.{draw.kind}({draw.low!r}, {draw.high!r})"
            draws += f"for i in range({at}, {at + drawn}):\n    self.{NOISE}[i] = {call}\n"
        noise = f"self.{NOISE}[{at}]" if draw.together else f"self.{NOISE}[{at} + i]"
        adds += f"for i in range({part.size}):\n    row[{part.offset} + i] += {noise}\n"
        at += drawn
    return draws, adds
