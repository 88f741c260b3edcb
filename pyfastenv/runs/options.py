"""Metadata of a Config's fields: bounds of their values, and which runs may differ in them.

A field has them as ``field(default=…, metadata=at_least(1) | MAY_DIFFER)``; one that a subclass
declares again keeps what it does not replace. :func:`check_bounds` is the loop over them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any, NamedTuple


class Bound(NamedTuple):
    """A condition on an option's value; NaN must not satisfy it."""

    expected: str
    holds: Callable[[Any], bool]


def at_least(minimum: float) -> dict[str, Any]:
    """Metadata of a number with a smallest value."""
    return {"bound": Bound(f"at least {minimum}", lambda value: value >= minimum)}


POSITIVE = {"bound": Bound("more than 0", lambda value: 0.0 < value < math.inf)}
POSITIVE_OR_INFINITE = {"bound": Bound("more than 0", lambda value: value > 0.0)}
FINITE = {"bound": Bound("a finite number", math.isfinite)}
FINITE_AT_LEAST_0 = {
    "bound": Bound("a finite number of at least 0", lambda value: 0.0 <= value < math.inf)
}
FRACTION = {"bound": Bound("0 to 1", lambda value: 0.0 <= value <= 1.0)}
WIDTHS = {"bound": Bound("widths >= 1", lambda sizes: min(sizes, default=1) >= 1)}

MAY_DIFFER = {"may_differ": True}
"""A resumed run may have another value; it must have the saved one of all other options."""
NO_SETTING = {"no_setting": True}
"""Runs that differ in nothing else are runs of the same experiment."""
BOOKKEEPING = MAY_DIFFER | NO_SETTING


def metadata_of(config_class: type) -> dict[str, dict[str, Any]]:
    """The metadata of a dataclass's fields by name, its bases' included."""
    found: dict[str, dict[str, Any]] = {field.name: {} for field in fields(config_class)}
    for base in reversed(config_class.__mro__):
        for name, field in vars(base).get("__dataclass_fields__", {}).items():
            if name in found:
                found[name] |= field.metadata
    return found


def marked(config_class: type, mark: str) -> frozenset[str]:
    """The names of a dataclass's fields whose metadata has this key."""
    return frozenset(name for name, facts in metadata_of(config_class).items() if mark in facts)


def check_fixed(config: Any, *options: tuple[str, Any, str]) -> None:
    """Checks options that have one value only here: each one's name, that value, and why.

    Raises:
        ValueError: Which field, what was expected, what was given, and why.
    """
    for name, only, why in options:
        if (given := getattr(config, name)) != only:
            raise ValueError(f"{name}: expected {only!r}, got {given!r}: {why}")


def check_bounds(config: Any) -> None:
    """Checks every field that has a bound and is not None.

    Raises:
        ValueError: Which field, what was expected, what was given.
    """
    for name, facts in metadata_of(type(config)).items():
        value, bound = getattr(config, name), facts.get("bound")
        if bound is not None and value is not None and not bound.holds(value):
            raise ValueError(f"{name}: expected {bound.expected}, got {value}")


def merged(given: Any, others: Any) -> Any:
    """``others``; of two mappings one with the keys of both, whose values are merged likewise."""
    if not (isinstance(given, Mapping) and isinstance(others, Mapping)):
        return others
    return {**given} | {key: merged(given.get(key), value) for key, value in others.items()}
