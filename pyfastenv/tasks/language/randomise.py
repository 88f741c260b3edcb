"""Domain randomisation: physics that every episode draws anew, inside the workers.

    from pyfastenv.tasks.language.randomise import scale, shift, uniform

    class Quadruped(pyfastenv.Task):
        randomise = {
            "body_mass": scale(0.8, 1.2),
            "geom_friction": uniform(0.5, 1.0, of=("FL", "FR", "RL", "RR"), columns=0),
            "site_pos": shift(-0.01, 0.01, of="imu"),
            "dof_frictionloss": scale(0.5, 2.0, every=(3, 8)),
        }

A field is a real-valued array of mjModel. What is drawn comes from the environment's own stream,
before ``reset`` draws anything, and is part of its snapshots; ``envs.get_model_field`` reads it.
A field may have several draws, in a list: of these elements one, of those another.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from pyfastenv.tasks.language.commands import finite_numbers
from pyfastenv.tasks.language.spelling import did_you_mean

# fields of 32-bit numbers, which stand behind the others in a row
NARROW: dict[str, type] = {"hfield_data": np.float32, "geom_type": np.int32}
# whose names the rows of a field have, by how it begins
_OWNERS = {
    "actuator_": "actuator",
    "body_": "body",
    "cam_": "camera",
    "dof_": "joint",
    "eq_": "equality",
    "geom_": "geom",
    "jnt_": "joint",
    "light_": "light",
    "qpos": "joint",
    "sensor_": "sensor",
    "site_": "site",
    "tendon_": "tendon",
}


class Draw(NamedTuple):
    """How a field's numbers are drawn from the model's own."""

    kind: str  # "scale", "shift" …; "own": the model's, until methods write others
    low: Any  # of observation_noise also a tuple, a number for each element
    high: Any
    together: bool
    of: tuple[str, ...] = ()
    columns: tuple[int, ...] = ()
    every: tuple[float, float] | None = None

    @property
    def is_of_parts(self) -> bool:
        """Whether it is more than the core draws: a whole field, once per episode."""
        of_some = bool(self.of or self.columns)
        return of_some or self.every is not None or self.kind == "log_uniform"


class Part(NamedTuple):
    """A draw of some of a field's numbers."""

    field: str
    draw: Draw
    places: tuple[tuple[int | float, ...], ...]  # of each number: row, column if any, the model's
    until: str  # the memory of the time when it is drawn again


def scale(
    low: float,
    high: float,
    *,
    together: bool = False,
    of: str | Sequence[str] = (),
    columns: int | Sequence[int] = (),
    every: Any = None,
) -> Draw:
    """The model's numbers, each times a factor of its own.

    Args:
        low: The least factor.
        high: The greatest.
        together: One factor for all.
        of: Names of bodies, joints, geoms …, whose rows alone are drawn (of ``dof_…`` and
            ``qpos0``: joints); one or several.
        columns: Those alone; of ``geom_friction`` 0 is sliding, 1 torsion, 2 rolling.
        every: Seconds after which they are drawn again, at the end of a step; a pair: drawn from
            this range, too.

    Raises:
        TypeError: ``of`` has no names, or ``columns`` no whole numbers. ValueError: An empty range.
    """
    return _draw("scale", low, high, together, of, columns, every)


def shift(
    low: float,
    high: float,
    *,
    together: bool = False,
    of: str | Sequence[str] = (),
    columns: int | Sequence[int] = (),
    every: Any = None,
) -> Draw:
    """The model's numbers, to each of which one of its own is added; see :func:`scale`."""
    return _draw("shift", low, high, together, of, columns, every)


def uniform(
    low: float,
    high: float,
    *,
    together: bool = False,
    of: str | Sequence[str] = (),
    columns: int | Sequence[int] = (),
    every: Any = None,
) -> Draw:
    """Numbers that have nothing to do with the model's; see :func:`scale`."""
    return _draw("uniform", low, high, together, of, columns, every)


def log_uniform(
    low: float,
    high: float,
    *,
    together: bool = False,
    of: str | Sequence[str] = (),
    columns: int | Sequence[int] = (),
    every: Any = None,
) -> Draw:
    """Numbers whose logarithms are uniform, from ``low`` above 0 to ``high``; see :func:`scale`."""
    if not low > 0.0:
        raise ValueError(f"log_uniform: expected low above 0, got {low}")
    return _draw("log_uniform", low, high, together, of, columns, every)


def _draw(
    kind: str,
    low: float,
    high: float,
    together: bool,
    of: str | Sequence[str],
    columns: int | Sequence[int],
    every: Any,
) -> Draw:
    if not -math.inf < low <= high < math.inf:
        raise ValueError(f"{kind}: expected low <= high, got {low} and {high}")
    names = (of,) if isinstance(of, str) else tuple(of)
    if not all(isinstance(name, str) for name in names):
        raise TypeError(f"{kind}: of: expected names, got {of!r}")
    which = (columns,) if isinstance(columns, int) else tuple(columns)
    if not all(isinstance(column, int) for column in which):
        raise TypeError(f"{kind}: columns: expected whole numbers, got {columns!r}")
    seconds = None
    if every is not None:
        pair = finite_numbers(every, 2, f"{kind}: every", "the least and the most").tolist()
        if not 0.0 < pair[0] <= pair[1]:
            raise ValueError(
                f"{kind}: every: expected seconds above 0, or the least and the most of them, got "
                f"{every!r}"
            )
        seconds = pair[0], pair[1]
    return Draw(kind, float(low), float(high), bool(together), names, which, seconds)


def check_randomise(given: Any, own: Any, model: Any, owner: str) -> dict[str, Draw]:
    """A task's ``randomise`` (None and False: nothing) and ``model_fields``, by field.

    A field of which parts are drawn is there as the model's own: :func:`parts_drawn` has the rest.

    Raises:
        TypeError: Not a dict of draws. ValueError: No such field.
    """
    if given is None or given is False:
        given = {}
    if not isinstance(given, Mapping) or not all(
        isinstance(draw, Draw) for name in given for draw in _draws(given[name])
    ):
        raise TypeError(
            f"{owner}.randomise: expected a dict such as {{'body_mass': scale(0.8, 1.2)}}, "
            f"got {given!r}"
        )
    if isinstance(own, str) or not all(isinstance(name, str) for name in own):
        raise TypeError(
            f"{owner}.model_fields: expected names such as ('site_pos', 'geom_pos'), got {own!r}"
        )
    fields: dict[str, Draw] = {
        **{name: Draw("own", 1.0, 1.0, False) for name in own if name not in NARROW},
        **{name: _of_core(_draws(given[name])) for name in given},
        **{name: Draw("own", 1.0, 1.0, False) for name in NARROW if name in own},
    }
    if both := sorted({*own} & {*given}):
        raise ValueError(f"{owner}: {both[0]} is in model_fields and in randomise")
    if "dof_M0" not in own:
        _warn_of_inertia(given, model, owner)
    for name in fields:
        array = getattr(model, name, None)
        dtype = NARROW.get(name, np.float64) if name in own else np.float64
        if not isinstance(array, np.ndarray) or array.dtype != dtype or array.size == 0:
            raise ValueError(
                f"{owner}: {name!r}, of randomise or model_fields, is no real-valued array of the "
                f"model (mjModel){did_you_mean(name, _real_fields(model))}"
            )
    return fields


def _warn_of_inertia(given: Mapping[str, Any], model: Any, owner: str) -> None:
    """Warns of bodies whose inertia MuJoCo has kept apart: it does not follow what is drawn."""
    bodies = (model.body_simple * model.body_dofnum, range(model.nbody))
    for field, (is_simple, body_of) in {
        "body_mass": bodies,
        "body_inertia": bodies,
        "dof_armature": (model.dof_simplenum, model.dof_bodyid),
    }.items():
        for draw in _draws(given.get(field, [])):
            where = f"{owner}.randomise[{field!r}]"
            rows = _rows(model, field, draw.of, where) if draw.of else range(len(is_simple))
            simple = dict.fromkeys(int(body_of[row]) for row in rows if is_simple[row])
            names = [model.body(body).name or f"body {body}" for body in simple]
            if names:
                warnings.warn(
                    f"{where}: MuJoCo takes the inertia of {', '.join(names)} from "
                    "dof_M0, which does not follow: give it in model_fields and set it in reset "
                    "(docs/howto/randomise.md)",
                    stacklevel=2,
                )


def _draws(given: Any) -> Sequence[Any]:
    return given if isinstance(given, list) else [given]


def _of_core(draws: Sequence[Draw]) -> Draw:
    """The draw of a field that the core makes; its own numbers where parts are drawn."""
    if len(draws) == 1 and not draws[0].is_of_parts:
        return draws[0]
    return Draw("own", 1.0, 1.0, False)


def _real_fields(model: Any) -> list[str]:
    arrays = ((name, getattr(model, name)) for name in dir(model) if name[0] != "_")
    return [n for n, a in arrays if isinstance(a, np.ndarray) and a.dtype == np.float64 and a.size]


def parts_drawn(given: Any, model: Any, owner: str) -> list[Part]:
    """The draws of a task's ``randomise`` that are of parts of a field.

    Args:
        given: What :func:`check_randomise` has found right.
        model: After ``setup``, which may have changed it.
        owner: The task's name.

    Raises:
        ValueError: A name or a column that is not there.
    """
    found: list[Part] = []
    for field, draws in (given or {}).items():
        draws = _draws(draws)
        if _of_core(draws).kind != "own":
            continue
        array, where = getattr(model, field), f"{owner}.randomise[{field!r}]"
        for draw in draws:
            rows = _rows(model, field, draw.of, where) if draw.of else range(len(array))
            until = f"_{field}_{len(found)}_until"
            found.append(Part(field, draw, _places(array, rows, draw.columns, where), until))
    return found


def _rows(model: Any, field: str, names: Sequence[str], where: str) -> list[int]:
    kind = next((kind for prefix, kind in _OWNERS.items() if field.startswith(prefix)), None)
    if kind is None:
        raise ValueError(f"{where}: of: the rows of {field} have no names")
    rows: list[int] = []
    for name in names:
        try:
            named = getattr(model, kind)(name)
        except KeyError:
            count = {"camera": model.ncam, "equality": model.neq, "joint": model.njnt}
            known = [
                getattr(model, kind)(i).name
                for i in range(count.get(kind, getattr(model, f"n{kind}", 0)))
            ]
            raise ValueError(
                f"{where}: of: no {kind} {name!r}; there are "
                f"{', '.join(filter(None, known)) or 'none with names'}{did_you_mean(name, known)}"
            ) from None
        if field.startswith("dof_"):
            rows += range(named.dofadr[0], named.dofadr[0] + len(named.damping))
        elif field.startswith("qpos"):
            rows += range(named.qposadr[0], named.qposadr[0] + len(named.qpos0))
        else:
            rows.append(int(named.id))
    return rows


def _places(
    array: Any, rows: Sequence[int], columns: Sequence[int], where: str
) -> tuple[tuple[int | float, ...], ...]:
    if array.ndim > 2 or (columns and array.ndim < 2):
        raise ValueError(f"{where}: columns: it has none")
    if array.ndim == 1:
        return tuple((int(row), float(array[row])) for row in rows)
    if beyond := [column for column in columns if not 0 <= column < array.shape[1]]:
        raise ValueError(f"{where}: columns: expected 0 to {array.shape[1] - 1}, got {beyond[0]}")
    return tuple(
        (int(row), int(column), float(array[row, column]))
        for row in rows
        for column in columns or range(array.shape[1])
    )


def draw_parts(parts: Sequence[Part], *, again: bool) -> str:
    """The code that draws parts when an episode begins, or (``again``) when they are due."""
    text = ""
    for part in parts:
        code, every = _drawing(part), part.draw.every
        if every is not None:
            code += f"self.{part.until} = data.time + rng.uniform({every[0]!r}, {every[1]!r})\n"
        if again and every is not None:
            lines = "".join(f"    {line}\n" for line in code.splitlines())
            code = f"if data.time + 0.5 * self.dt >= self.{part.until}:\n{lines}"
        text += "" if again and every is None else code
    return text


def _drawing(part: Part) -> str:
    draw, index = part.draw, "at, column" if len(part.places[0]) == 3 else "at"
    call = f"rng.uniform({draw.low!r}, {draw.high!r})"
    if draw.kind == "log_uniform":
        call = f"exp(rng.uniform({math.log(draw.low)!r}, {math.log(draw.high)!r}))"
    number = "number" if draw.together else call
    value = {"scale": f"base * {number}", "shift": f"base + {number}"}.get(draw.kind, number)
    return (f"number = {call}\n" if draw.together else "") + (
        f"for {index}, base in {part.places!r}:\n    self.model.{part.field}[{index}] = {value}\n"
    )


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
