"""Commands that environments draw for themselves: their settings, and code (:mod:`.around`) that
draws, holds and shows them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from pyfastenv.tasks.language.fields import Command, Drawn, given_name, held_name, until_name

COMMAND_SETTINGS = ("low", "high", "every", "standing")
# elements of a commanded velocity [m/s, m/s, rad/s], which films show
MOTION = ("forward", "sideways", "turning")


def setting_name(command: str, setting: str) -> str:
    """The parameter of a drawn command, ``velocity_low``."""
    return f"{command}_{setting}"


def finite_numbers(value: Any, shape: int | tuple[int, ...], where: str, others: str) -> Any:
    """A number, for all of them, or so many, as an array of a shape; integers stay such.

    Raises:
        ValueError: They are others; ``where`` and ``others`` are words of the message.
    """
    try:
        array = np.array(np.broadcast_to(np.asarray(value), shape))
        array = array.astype(np.int64 if array.dtype.kind == "i" else np.float64)
    except (TypeError, ValueError):
        array = np.full(1, np.nan)
    if not np.isfinite(array).all():
        what = "a number" + (f", or {others}" if np.prod(shape) > 1 else "")
        raise ValueError(f"{where}: expected {what}, got {value!r}")
    return array


def check_command(
    name: str,
    command: Drawn,
    given: Mapping[str, Any],
    owner: str,
    values: tuple[float, float] | None = None,
) -> dict[str, Any]:
    """The parameters of a drawn command as arrays, ``(size,)``, or of two; ``standing`` a number,
    or ``(size,)`` where it was declared so; bounds that a curriculum moves ``(stages, size)``.

    Args:
        values: The least and the greatest value of its curriculum.

    Raises:
        ValueError: One is not what :func:`pyfastenv.command` says.
    """
    count, each = command.size or 1, np.ndim(command.standing) > 0

    def numbers(setting: str, expected: int) -> Any:
        where, others = f"{owner}.{setting_name(name, setting)}", f"{expected} of them"
        return finite_numbers(given[setting], expected, where, others).astype(np.float64)

    if values is None:
        low, high = numbers("low", count), numbers("high", count)
    else:
        low, high = _stages(name, command, given, owner, values)
    every, standing = numbers("every", 2), numbers("standing", count if each else 1)
    if not (low <= high).all():
        stage = "" if values is None else f" at stage {np.argwhere(low > high)[0, 0]}"
        raise ValueError(
            f"{owner}.{name}: expected low <= high{stage}, got {given['low']} and {given['high']}"
        )
    if not 0.0 < every[0] <= every[1]:
        raise ValueError(
            f"{owner}.{setting_name(name, 'every')}: expected seconds above 0, or the least and "
            f"the most of them, got {given['every']}"
        )
    if not ((standing >= 0.0) & (standing <= 1.0)).all():
        raise ValueError(
            f"{owner}.{setting_name(name, 'standing')}: expected a probability, got "
            f"{given['standing']}"
        )
    shown = standing if each else float(standing[0])
    return {"low": low, "high": high, "every": every, "standing": shown}


def _stages(
    name: str, command: Drawn, given: Mapping[str, Any], owner: str, values: tuple[float, float]
) -> tuple[Any, Any]:
    """The bounds of a command that a curriculum moves, ``(stages, size)``."""
    vector, count = command.size is not None, command.size or 1
    rows = [len(given[side]) for side in ("low", "high") if np.ndim(given[side]) == 1 + vector]
    stages = max(rows, default=1 + int(values[1]))
    if not 0.0 <= values[0] <= values[1] < stages:
        raise ValueError(
            f"{owner}.{name}: expected its curriculum {command.curriculum} from 0 to "
            f"{stages - 1}, since low or high have {stages} rows, got {values[0]:g} to "
            f"{values[1]:g}"
        )
    found = []
    for side in ("low", "high"):
        of_one = vector or np.ndim(given[side]) != 1
        bound = given[side] if of_one else np.reshape(given[side], (-1, 1))
        others = f"{count} of them, or {stages} rows of {count}" if vector else f"{stages} of them"
        where = f"{owner}.{setting_name(name, side)}"
        found.append(finite_numbers(bound, (stages, count), where, others).astype(np.float64))
    return found[0], found[1]


def range_infos(name: str, command: Drawn) -> dict[str, tuple[str, int]]:
    """The infos that show the range of a command that a curriculum moves: side and element."""
    elements = command.names or ([""] if command.size is None else range(command.size))
    return {
        f"episode_{'_'.join(filter(None, (name, str(element), side)))}": (side, i)
        for i, element in enumerate(elements)
        for side in ("low", "high")
    }


def check_command_name(fields: Mapping[str, Any], name: str, owner: str) -> None:
    """Checks that a task has a command of this name.

    Raises:
        ValueError: It has not; the message has those that there are.
    """
    known = [n for n, each in fields.items() if isinstance(each, Command | Drawn) and n[0] != "_"]
    if name not in known:
        raise ValueError(f"{owner} has no command {name!r}; there are {', '.join(known) or 'none'}")


def command_values(values: Any, shape: tuple[int, ...], count: int | None = None) -> Any:
    """Values of a command as an array ``(*shape)``, or ``(count, *shape)``.

    Raises:
        ValueError: They are of another shape, or no numbers.
    """
    full = shape if count is None else (count, *shape)
    try:
        return np.array(np.broadcast_to(np.asarray(values, np.float64), full))
    except (TypeError, ValueError):
        expected = f"{full}" if full == shape else f"{full} or {shape}"
        got = np.shape(values) if np.ndim(values) else repr(values)
        raise ValueError(f"values: expected numbers of shape {expected}, got {got}") from None


Commands = Mapping[str, Drawn]


def hold_and_draw(commands: Commands) -> str:
    """The code that begins an episode."""
    return "".join(_draw(name, each) + _hold(name, each) for name, each in commands.items())


def hold_commands(commands: Commands) -> str:
    """The code that takes what is held."""
    return "".join(_hold(name, each) for name, each in commands.items())


def show(commands: Commands) -> str:
    """The code that writes commands into the infos, and the ranges that curricula move."""
    code = "".join(f"info[{name!r}] = self.{name}\n" for name in commands)
    for name, each in commands.items():
        if each.curriculum:
            code += _stage(name, each)
            for info, (side, i) in range_infos(name, each).items():
                code += f"info[{info!r}] = self.{setting_name(name, side)}[stage, {i}]\n"
    return code


def _stage(name: str, command: Drawn) -> str:
    rows = f"len(self.{setting_name(name, 'low')})"
    return f"stage = min(max(int(self.{command.curriculum}), 0), {rows} - 1)\n"


def draw_when_due(commands: Commands) -> str:
    """The code that draws anew, after the step whose end is nearest to when that is due."""
    return "".join(
        f"if data.time + 0.5 * self.dt >= self.{until_name(name)}:\n"
        + _indented(_draw(name, each))
        + _hold(name, each)
        for name, each in commands.items()
    )


def _draw(name: str, command: Drawn) -> str:
    low, high, every, standing = (f"self.{setting_name(name, s)}" for s in COMMAND_SETTINGS)
    until = f"self.{until_name(name)} = data.time + rng.uniform({every}[0], {every}[1])\n"
    row = ""
    if command.curriculum:
        row, until = "stage, ", _stage(name, command) + until
    if command.size is None:
        zero = f"self.{name} = 0.0\n"
        draw = f"self.{name} = rng.uniform({low}[{row}0], {high}[{row}0])\n"
    else:
        zero = f"self.{name}[:] = 0.0\n"
        draw = (
            f"for i in range({command.size}):\n"
            f"    self.{name}[i] = rng.uniform({low}[{row}i], {high}[{row}i])\n"
        )
    if np.ndim(command.standing) > 0:
        still = f"    if rng.random() < {standing}[i]:\n        self.{name}[i] = 0.0\n"
        return until + draw + still
    return until + f"if rng.random() < {standing}:\n{_indented(zero)}else:\n{_indented(draw)}"


def _hold(name: str, command: Drawn) -> str:
    target = f"self.{name}" if command.size is None else f"self.{name}[:]"
    return f"if self.{held_name(name)} > 0.0:\n    {target} = self.{given_name(name)}\n"


def _indented(text: str) -> str:
    return "".join(f"    {line}\n" for line in text.splitlines())
