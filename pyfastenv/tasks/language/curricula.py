"""Curricula, numbers that make a task harder: their settings, and code (:mod:`.around`) that
starts, moves, checks and shows them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from pyfastenv.tasks.language.commands import finite_numbers, setting_name
from pyfastenv.tasks.language.fields import Curriculum, count_name

Curricula = Mapping[str, Curriculum]


def curriculum_settings(curriculum: Curriculum) -> tuple[str, ...]:
    """The names of a curriculum's parameters, without its own in front."""
    return ("low", "high", "start" if curriculum.over is None else "over")


def check_curriculum(
    name: str, curriculum: Curriculum, given: Mapping[str, Any], owner: str
) -> dict[str, Any]:
    """The parameters of a curriculum: ``low`` and ``high`` numbers, ``start`` or ``over`` two.

    Integers stay integers where all of ``low``, ``high`` and ``start`` are.

    Raises:
        ValueError: One is not what :func:`pyfastenv.curriculum` says.
    """

    def numbers(setting: str, expected: int) -> Any:
        where = f"{owner}.{setting_name(name, setting)}"
        return finite_numbers(given[setting], expected, where, "the first and the last")

    low, high = (float(numbers(each, 1)[0]) for each in ("low", "high"))
    if curriculum.over is not None:
        over = numbers("over", 2).astype(np.float64)
        if np.ndim(given["over"]) == 0:
            over[0] = 0.0
        if not 0.0 <= over[0] <= over[1]:
            raise ValueError(
                f"{owner}.{setting_name(name, 'over')}: expected steps from 0 on, or the first "
                f"and the last of them, got {given['over']}"
            )
        return {"low": low, "high": high, "over": over}
    start = numbers("start", 2)
    if not low <= start[0] <= start[1] <= high:
        raise ValueError(
            f"{owner}.{name}: expected low <= start <= high, got {given['low']}, {given['start']} "
            f"and {given['high']}"
        )
    whole = all(float(given[each]).is_integer() for each in ("low", "high"))
    kind = np.int64 if whole and start.dtype.kind == "i" else np.float64
    return {"low": low, "high": high, "start": start.astype(kind)}


def values_of(name: str, task: Any, *, first: bool = False) -> tuple[float, float]:
    """The least and the greatest value of a task's curriculum; ``first``: of those it begins at."""
    low, high = (float(getattr(task, setting_name(name, each))) for each in ("low", "high"))
    if not first:
        return min(low, high), max(low, high)
    if task.curricula()[name].over is None:
        start = getattr(task, setting_name(name, "start"))
        return float(start[0]), float(start[1])
    begun = high if getattr(task, setting_name(name, "over"))[1] == 0.0 else low
    return begun, begun


def begin(curricula: Curricula, starts: Mapping[str, Any]) -> str:
    """The code before ``reset``: an environment's first one starts what episodes move."""
    code = ""
    for name, each in curricula.items():
        if each.over is not None:
            code += _move(name)
            continue
        start = f"self.{setting_name(name, 'start')}"
        drawn = (
            f"rng.integers({start}[0], {start}[1] + 1)"
            if starts[name].dtype.kind == "i"
            else f"rng.uniform({start}[0], {start}[1])"
        )
        code += (
            f"if self.{count_name(name)} == 0.0:\n"
            f"    self.{count_name(name)} = 1.0\n"
            f"    self.{name} = {drawn}\n"
        )
    return code


def show_and_check(curricula: Curricula) -> str:
    """The code behind methods that may have moved them."""
    return "".join(
        _check(name) * (each.over is None) + f"info[{info_name(name)!r}] = self.{name}\n"
        for name, each in curricula.items()
    )


def count_steps(curricula: Curricula) -> str:
    """The code at the end of ``step``: moves what steps move."""
    return "".join(
        f"self.{count_name(name)} += 1.0\n{_move(name)}"
        for name, each in curricula.items()
        if each.over is not None
    )


def info_name(curriculum: str) -> str:
    """The info that a curriculum is shown in, and averaged over episodes."""
    return f"episode_{curriculum}"


def range_error(name: str, value: Any, low: float, high: float) -> ValueError:
    """The error of a value that a method has written."""
    return ValueError(f"self.{name}: expected {low:g} to {high:g}, its curriculum, got {value:g}")


def _check(name: str) -> str:
    low, high = (f"self.{setting_name(name, each)}" for each in ("low", "high"))
    return (
        f"if not ({low} <= self.{name} <= {high}):\n"
        f"    raise ValueError('self.{name} is outside of its curriculum')\n"
    )


def _move(name: str) -> str:
    low, high, over = (f"self.{setting_name(name, each)}" for each in ("low", "high", "over"))
    count = f"self.{count_name(name)}"
    share = f"({count} - {over}[0]) / ({over}[1] - {over}[0])"
    return (
        f"if {count} >= {over}[1]:\n    self.{name} = {high}\n"
        f"elif {count} > {over}[0]:\n    self.{name} = {low} + ({high} - {low}) * ({share})\n"
        f"else:\n    self.{name} = {low}\n"
    )
