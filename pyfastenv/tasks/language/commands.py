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


def finite_numbers(value: Any, count: int, where: str, others: str) -> Any:
    """A number, for all of them, or so many, as an array ``(count,)``; integers stay such.

    Raises:
        ValueError: They are others; ``where`` and ``others`` are words of the message.
    """
    try:
        array = np.array(np.broadcast_to(np.asarray(value), (count,)))
        array = array.astype(np.int64 if array.dtype.kind == "i" else np.float64)
    except (TypeError, ValueError):
        array = np.full(1, np.nan)
    if not np.isfinite(array).all():
        what = "a number" + (f", or {others}" if count > 1 else "")
        raise ValueError(f"{where}: expected {what}, got {value!r}")
    return array


def check_command(
    name: str, command: Drawn, given: Mapping[str, Any], owner: str
) -> dict[str, Any]:
    """The parameters of a drawn command as arrays, ``(size,)``, or of two; ``standing`` a number,
    or ``(size,)`` where it was declared so.

    Raises:
        ValueError: One is not what :func:`pyfastenv.command` says.
    """
    count, each = command.size or 1, np.ndim(command.standing) > 0

    def numbers(setting: str, expected: int) -> Any:
        where, others = f"{owner}.{setting_name(name, setting)}", f"{expected} of them"
        return finite_numbers(given[setting], expected, where, others).astype(np.float64)

    low, high, every = numbers("low", count), numbers("high", count), numbers("every", 2)
    standing = numbers("standing", count if each else 1)
    if not (low <= high).all():
        raise ValueError(
            f"{owner}.{name}: expected low <= high, got {given['low']} and {given['high']}"
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
    """The code that writes commands into the infos."""
    return "".join(f"info[{name!r}] = self.{name}\n" for name in commands)


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
    if command.size is None:
        zero = f"self.{name} = 0.0\n"
        draw = f"self.{name} = rng.uniform({low}[0], {high}[0])\n"
    else:
        zero = f"self.{name}[:] = 0.0\n"
        draw = (
            f"for i in range({command.size}):\n"
            f"    self.{name}[i] = rng.uniform({low}[i], {high}[i])\n"
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
