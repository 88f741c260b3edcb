"""Checks of arguments, with messages that name them."""

from __future__ import annotations

import operator
from typing import Any


def integer(name: str, value: Any, *, minimum: int | None = None) -> int:
    """A whole number below 2**31 and not below ``minimum``, or an error that names the argument."""
    try:
        number = operator.index(value)
    except TypeError:
        raise TypeError(f"{name}: expected an integer, got {value!r}") from None
    if minimum is not None and number < minimum:
        raise ValueError(f"{name}: expected at least {minimum}, got {number}")
    if number >= 2**31:
        raise ValueError(f"{name}: expected less than {2**31}, got {number}")
    return number
