"""Domain randomisation: physics that every episode draws anew, inside the workers.

    from pyfastenv.tasks.language.randomise import scale, shift, uniform

    class Quadruped(pyfastenv.Task):
        randomise = {"body_mass": scale(0.8, 1.2), "geom_friction": uniform(0.5, 1.0)}

A field is a real-valued array of mjModel. What is drawn comes from the environment's own stream,
before ``reset`` draws anything, and is part of its snapshots.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np


class Draw(NamedTuple):
    """How a field's numbers are drawn from the model's own."""

    kind: str  # "scale", "shift" or "uniform"; "own": the model's, until methods write others
    low: Any  # of observation_noise also a tuple, a number for each element
    high: Any
    together: bool


def scale(low: float, high: float, *, together: bool = False) -> Draw:
    """The model's numbers, each times a factor of its own (``together``: one factor for all)."""
    return _draw("scale", low, high, together)


def shift(low: float, high: float, *, together: bool = False) -> Draw:
    """The model's numbers, to each of which one of its own is added."""
    return _draw("shift", low, high, together)


def uniform(low: float, high: float, *, together: bool = False) -> Draw:
    """Numbers that have nothing to do with the model's."""
    return _draw("uniform", low, high, together)


def _draw(kind: str, low: float, high: float, together: bool) -> Draw:
    if not low <= high:
        raise ValueError(f"{kind}: expected low <= high, got {low} and {high}")
    return Draw(kind, float(low), float(high), bool(together))


def check_randomise(given: Any, own: Any, model: Any, owner: str) -> dict[str, Draw]:
    """A task's ``randomise`` (None and False: nothing) and ``model_fields``, by field.

    Raises:
        TypeError: Not a dict of draws. ValueError: No such field.
    """
    if given is None or given is False:
        given = {}
    if not isinstance(given, Mapping) or not all(isinstance(d, Draw) for d in given.values()):
        raise TypeError(
            f"{owner}.randomise: expected a dict such as {{'body_mass': scale(0.8, 1.2)}}, "
            f"got {given!r}"
        )
    if isinstance(own, str) or not all(isinstance(name, str) for name in own):
        raise TypeError(
            f"{owner}.model_fields: expected names such as ('site_pos', 'geom_pos'), got {own!r}"
        )
    heights = "hfield_data"  # the one of floats, which stands behind the others
    fields: dict[str, Draw] = {
        **{name: Draw("own", 1.0, 1.0, False) for name in own if name != heights},
        **given,
    }
    if heights in own:
        fields[heights] = Draw("own", 1.0, 1.0, False)
    if both := sorted({*own} & {*given}):
        raise ValueError(f"{owner}: {both[0]} is in model_fields and in randomise")
    for name in fields:
        array = getattr(model, name, None)
        dtype = np.float32 if name in own and name == heights else np.float64
        if not isinstance(array, np.ndarray) or array.dtype != dtype or array.size == 0:
            raise ValueError(
                f"{owner}: {name!r}, of randomise or model_fields, is no real-valued array of the "
                f"model (mjModel)"
            )
    return fields


def apply(draws: Mapping[str, Draw], model: Any, bases: Mapping[str, Any], rng: Any) -> None:
    """Draws a model's fields, in plain Python; ``bases``: the model's own numbers."""
    for name, draw in draws.items():
        base = bases[name]
        if draw.kind == "own":
            getattr(model, name)[:] = base
            continue
        drawn = rng.uniform(draw.low, draw.high, None if draw.together else base.size)
        drawn = np.full(base.size, drawn) if draw.together else drawn
        flat = base.ravel()
        values = {"scale": flat * drawn, "shift": flat + drawn, "uniform": drawn}[draw.kind]
        getattr(model, name)[:] = values.reshape(base.shape)
