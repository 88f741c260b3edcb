"""Checks of arguments, with messages that name them."""

from __future__ import annotations

import difflib
import operator
import os
from collections.abc import Collection, Iterable, Mapping
from typing import Any

import numpy as np
from gymnasium.vector import AutoresetMode


def integer(name: str, value: Any, *, minimum: int | None = None, below: int = 2**31) -> int:
    """A whole number from ``minimum`` on, less than ``below``, or an error that names it."""
    try:
        number = operator.index(value)
    except TypeError:
        raise TypeError(f"{name}: expected an integer, got {value!r}") from None
    if minimum is not None and number < minimum:
        raise ValueError(f"{name}: expected at least {minimum}, got {number}")
    if number >= below:
        raise ValueError(f"{name}: expected less than {below}, got {number}")
    return number


def note_near_names(error: Exception, names: Iterable[str], known: Collection[str]) -> None:
    """Adds a line to an error about names: which of the known ones may have been meant."""
    for name in names:
        for near in difflib.get_close_matches(name, known, n=1, cutoff=0.8):
            error.add_note(f"Was {near} meant by {name}?")


def autoreset_mode(value: Any) -> AutoresetMode:
    """gymnasium's mode, of itself or of its string."""
    try:
        return AutoresetMode(value)
    except ValueError:
        modes = ", ".join(repr(mode.value) for mode in AutoresetMode)
        raise ValueError(
            f"autoreset_mode: expected {modes} or gymnasium's AutoresetMode, got {value!r}"
        ) from None


def obs_dtype(value: Any) -> str:
    """The name of a type of numbers; None, the environment's own: empty."""
    try:
        return "" if value is None else np.dtype(value).name
    except TypeError:
        message = f"obs_dtype: expected 'float64', 'float32' or None, got {value!r}"
        raise TypeError(message) from None


def engine(value: Any) -> str:
    """``"auto"``, ``"mujoco"`` or ``"lanes"``; PYFASTENV_ENGINE says what ``"auto"`` means."""
    engines = ("auto", "mujoco", "lanes")
    if value not in engines:
        raise ValueError(f"engine: expected one of {engines}, got {value!r}")
    default = os.environ.get("PYFASTENV_ENGINE", "auto")
    if default not in ("auto", "mujoco"):
        raise ValueError(f"PYFASTENV_ENGINE: expected auto or mujoco, got {default!r}")
    return default if value == "auto" else str(value)


def reset_options(value: Any) -> dict[str, Any]:
    """A copy of a reset's options; None means none."""
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise TypeError(f"options: expected a dict or None, got {type(value).__name__}")
    return dict(value)


def plain_id(value: Any) -> str:
    """An environment's id without ``pyfastenv/``; the core says whether there is one."""
    if not isinstance(value, str):
        raise TypeError(f"env_id: expected a string such as 'HalfCheetah-v5', got {value!r}")
    return value.removeprefix("pyfastenv:").removeprefix("pyfastenv/")
