"""Memories and commands declare what each environment keeps for itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Memory:
    """Numbers that an environment keeps from step to step; made by :func:`memory`.

    ``lasting``: from episode to episode, too.
    """

    size: int | None
    _: KW_ONLY
    lasting: bool = False


@dataclass(frozen=True)
class Command:
    """Numbers that an environment is given by ``reset_task``; made by :func:`command`."""

    size: int | None
    low: float
    high: float
    names: tuple[str, ...] = ()


@dataclass(frozen=True)
class Drawn(Memory):
    """Numbers that an environment draws for itself, again and again; made by :func:`command`."""

    low: Any
    high: Any
    every: Any
    standing: Any
    names: tuple[str, ...] = ()
    curriculum: str | None = None


@dataclass(frozen=True)
class Curriculum(Memory):
    """A number that moves from episode to episode; made by :func:`curriculum`."""

    low: Any
    high: Any
    start: Any
    over: Any


def memory(size: int | None = None, *, lasting: bool = False) -> Any:
    """Declares numbers of each environment's own that outlive a step and are zero at each reset.

    They are part of its snapshots. ``self.name[:] = …`` writes a vector, ``self.name = …`` a
    number.

    Args:
        size: Of a vector; None means one number.
        lasting: They outlive episodes too, and are zero again where ``reset`` is given a seed.
    """
    return Memory(_size("memory", size), lasting=bool(lasting))


def curriculum(low: float, high: float, *, start: Any = None, over: Any = None) -> Any:
    """Declares a number of each environment's own that makes a task harder as training goes on.

    It lasts from episode to episode, is part of snapshots, and stands in ``info["episode_name"]``,
    so that metrics have its mean. ``low``, ``high``, ``start`` and ``over`` are parameters: keyword
    arguments ``level_low`` … of ``make_vec``. By success, methods move it as ``self.name = …``::

        level = pyfastenv.curriculum(0, 9, start=(0, 3))

        def reset(self, data, rng):
            up, down = self.walked > 4.0, self.walked < 0.5 * self.commanded
            self.level = move_level(self.level, up, down, self.level_low, self.level_high, rng)

    By steps, it moves by itself, from ``low`` after ``over[0]`` steps that the environment has
    made to ``high`` after ``over[1]``, and methods read it alone::

        effort = pyfastenv.curriculum(0.0, 1.0, over=(1000, 20000))

    Before the first step after a reset with a seed it is ``low``, or drawn from ``start``. Other
    environments, those of evaluations too, have values of their own.

    Args:
        low: The least; with ``over`` the first.
        high: The greatest; with ``over`` the last. What methods write must be in between, else
            there is an ``EnvError``.
        start: Where it starts; a pair: drawn uniformly from this range, an integer if ``low``,
            ``high`` and both are. None means ``low``.
        over: The first and the last of the environment's steps between which it moves, episodes
            added up; a number: from 0 on.

    Raises:
        ValueError: ``start`` beside ``over``, an empty range, or a start outside of it.
    """
    if over is not None and start is not None:
        raise ValueError("curriculum: expected start, or over, not both: over begins at low")
    return Curriculum(None, low, high, low if start is None else start, over, lasting=True)


def command(
    size: int | None = None,
    *,
    low: Any,
    high: Any,
    every: Any = None,
    standing: Any = 0.0,
    names: Sequence[str] = (),
    curriculum: str | None = None,
) -> Any:
    """Declares numbers of each environment's own that tell it what to do: a velocity, a goal.

    Without ``every``, ``reset_task`` sets them and ``sample_tasks`` draws them uniformly from
    ``low`` to ``high``; before the first ``reset_task`` they are zero, or as near to it as may be.

    With ``every``, each environment draws them from its own stream, when an episode starts
    (before ``reset`` draws anything) and after so many seconds again, at the end of a step: its
    reward is for the command that the policy has seen. They are in the infos, under their name.
    ``low``, ``high``, ``every`` and ``standing`` are parameters: keyword arguments
    ``velocity_low`` … of ``make_vec``. ``envs.set_command("velocity", values)`` holds a command
    and ``envs.get_command("velocity")`` reads those that are in force::

        velocity = pyfastenv.command(low=(-0.5, -0.3, -1), high=(1, 0.3, 1), every=(3, 8))

    With ``curriculum``, the name of one, the range moves with it: ``low`` and ``high`` have a row
    for each of its values 0, 1, 2 … (a number: of a command that is one number), or one row for
    all, and what is drawn is of the whole part of its value. Infos have the range in force, by
    element: ``episode_speed_low``, ``episode_velocity_forward_high``::

        stage = pyfastenv.curriculum(0, 2, over=(0, 20000))  # 1 from 10000 steps on, then 2
        speed = pyfastenv.command(low=0, high=(1, 2, 3), every=5, curriculum="stage")

    Args:
        size: Of a vector; None means one number, or as many as ``low`` and ``high`` have.
        low: The least, of every element; with ``every`` a number for each may be given.
        high: The greatest, likewise.
        every: Seconds between two draws; a pair: drawn from this range, too.
        standing: Probability that a drawn command is zero, all of it; or of each element, that it
            is: ``standing=(0.1, 0.7, 0.5)`` draws many commands along one axis.
        names: What its numbers are called, for who reads them: ``("forward", "turning")``.
        curriculum: That which moves the range of a command that is drawn, by its name.

    Raises:
        TypeError: Bounds for each element, or a curriculum, without ``every``. ValueError: A range
            that is empty, a probability that is none, or not as many names as numbers.
    """
    if every is not None:
        one = low, high
        if curriculum is not None:
            rows = size is not None or any(np.ndim(bound) > 1 for bound in one)
            one = tuple(bound[0] if np.ndim(bound) == 1 + rows else bound for bound in one)
        sizes = {np.size(bound) for bound in (*one, standing) if np.ndim(bound) > 0}
        if len(sizes | ({size} if size and sizes else set())) > 1:
            raise ValueError(
                f"command: low, high and standing: expected as many numbers of each, or one, got "
                f"{low!r}, {high!r} and {standing!r}{f' of size {size}' if size else ''}"
            )
        size = sizes.pop() if size is None and sizes else size
        drawn = low, high, every, standing, _names(names, size), curriculum
        return Drawn(_size("command", size), *drawn)
    if curriculum is not None:
        raise TypeError("command: curriculum is for commands that are drawn: expected every, too")
    if np.any(standing):
        raise ValueError("command: standing is for commands that are drawn: expected every, too")
    for name, bound in (("low", low), ("high", high)):
        if np.ndim(bound) > 0:
            raise TypeError(
                f"command: {name}: expected one number, for all elements alike, got {bound!r}; "
                f"elements with bounds of their own are commands of their own, "
                f"name = pyfastenv.command(low=…, high=…)"
            )
        if not isinstance(bound, int | float | np.number):
            raise TypeError(f"command: {name}: expected a number, got {bound!r}")
    if not low <= high:
        raise ValueError(f"command: expected low <= high, got {low} and {high}")
    return Command(_size("command", size), float(low), float(high), _names(names, size))


def _names(names: Sequence[str], size: int | None) -> tuple[str, ...]:
    if isinstance(names, str) or (names and len(names) != (size or 1)):
        raise ValueError(f"command: names: expected {size or 1} of them, or none, got {names!r}")
    return tuple(names)


def _size(what: str, size: Any) -> int | None:
    if size is None or (isinstance(size, int) and size >= 1):
        return size
    raise ValueError(f"{what}: expected a size of at least 1, or none for a number, got {size!r}")


def parts_of(name: str, field: Memory | Command) -> dict[str, Memory | Command]:
    """A field of a task, and what stands beside it where the environment draws it."""
    if isinstance(field, Curriculum):
        return {name: field, count_name(name): Memory(None, lasting=True)}
    if not isinstance(field, Drawn):
        return {name: field}
    return {
        name: field,
        until_name(name): Memory(None),
        held_name(name): Command(None, 0.0, 1.0),
        given_name(name): Command(field.size, 0.0, 0.0),
    }


def in_row(fields: Mapping[str, Memory | Command]) -> dict[str, Memory | Command]:
    """A task's fields in the order of an environment's row: memories, lasting ones, commands."""

    def section(item: tuple[str, Memory | Command]) -> int:
        return (1 + item[1].lasting) if isinstance(item[1], Memory) else 3

    return dict(sorted(fields.items(), key=section))


def count_name(curriculum: str) -> str:
    """The memory of how many steps a curriculum has had, and one for having started."""
    return f"_{curriculum}_count"


def until_name(command: str) -> str:
    """The memory of the time when a command is drawn again [s]."""
    return f"_{command}_until"


def held_name(command: str) -> str:
    """The command that says whether a drawn one is held: not zero where it is."""
    return f"_{command}_held"


def given_name(command: str) -> str:
    """The command that is in force then."""
    return f"_{command}_given"
