"""Whether a dataclass's values are what its annotations say."""

from __future__ import annotations

import types
from collections.abc import Sequence
from dataclasses import fields
from numbers import Integral, Real
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints


def check_field_types(config: Any) -> None:
    """Checks that every field of a dataclass is of its type, and that whole numbers have 64 bits.

    NumPy's numbers count as Python's, whole numbers as floats, lists as tuples, and strings as
    paths; bools are not numbers.

    Raises:
        TypeError: Which field, what was expected, what was given.
        ValueError: Likewise, of a name that is none of those there are, or too large a number.
    """
    hints = get_type_hints(type(config))
    for field in fields(config):
        value = getattr(config, field.name)
        if not _fits(value, hints[field.name]):
            expected = _name(hints[field.name])
            a_name = get_origin(hints[field.name]) is Literal and isinstance(value, str)
            error = ValueError if a_name else TypeError
            raise error(f"{field.name}: expected {expected}, got {value!r}")
        for number in value if isinstance(value, list | tuple) else (value,):
            if isinstance(number, Integral) and int(number) >= 2**63:
                raise ValueError(f"{field.name}: expected less than 2**63, got {number}")


def _fits(value: Any, hint: Any) -> bool:
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        return any(_fits(value, option) for option in arguments)
    if origin is Literal:
        return value in arguments
    if origin is dict:
        key, item = arguments
        return isinstance(value, dict) and all(
            _fits(k, key) and _fits(v, item) for k, v in value.items()
        )
    if hint is Any:
        return True
    if origin is tuple:
        if not isinstance(value, Sequence) or isinstance(value, str):
            return False
        if arguments[1:] == (...,):
            return all(_fits(item, arguments[0]) for item in value)
        return len(value) == len(arguments) and all(map(_fits, value, arguments))
    if hint in (int, float):
        kind = Integral if hint is int else Real
        return isinstance(value, kind) and not isinstance(value, bool)
    if hint is Path:
        return isinstance(value, str | Path)
    return isinstance(value, hint)


def _name(hint: Any) -> str:
    """As in the source: ``int``, ``float | None``, ``tuple[int, ...]``, ``'a' or 'b'``."""
    if get_origin(hint) is Literal:
        return " or ".join(map(repr, get_args(hint)))
    return hint.__name__ if isinstance(hint, type) and not get_args(hint) else str(hint)
