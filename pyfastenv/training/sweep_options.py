"""A sweep's command line: ``--learning-rate 1e-4 3e-4 --hidden-sizes 64,64 256,256``.

One value fixes an option, several sweep it. Types are those of the algorithm's Config.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Any, get_args, get_origin, get_type_hints

from pyfastenv.training.config import RunConfig


def parse_options(
    config_class: type[RunConfig], arguments: Sequence[str]
) -> tuple[dict[str, Any], dict[str, list[Any]]]:
    """The options that all runs have, and those that are swept with their values.

    Args:
        config_class: Of the algorithm.
        arguments: ``--name value …``; ``--flag`` and ``--no-flag``.

    Raises:
        ValueError: An unknown option, or a value that is not of its type.
    """
    found: dict[str, list[str]] = {}
    values: list[str] | None = None
    for argument in arguments:
        if argument.startswith("--"):
            values = found.setdefault(argument.removeprefix("--").replace("-", "_"), [])
        elif values is None:
            raise ValueError(f"expected --option value …, got {argument!r}")
        else:
            values.append(argument)
    hints = get_type_hints(config_class)
    fixed: dict[str, Any] = {}
    grid: dict[str, list[Any]] = {}
    for name, texts in found.items():
        flag = name.removeprefix("no_")
        if not texts and hints.get(flag) is bool:
            fixed[flag] = name == flag
            continue
        if name not in hints:
            raise ValueError(f"{config_class.algorithm} has no option --{name.replace('_', '-')}")
        if not texts:
            raise ValueError(f"--{name.replace('_', '-')}: expected a value")
        parsed = [_value(name, text, hints[name]) for text in texts]
        if len(parsed) == 1:
            fixed[name] = parsed[0]
        else:
            grid[name] = parsed
    return fixed, grid


def _value(name: str, text: str, hint: Any) -> Any:
    """A value of a field's type; tuples are written with commas."""
    if hint is str:
        return text
    try:
        value = ast.literal_eval(
            text.title() if text.lower() in ("true", "false", "none") else text
        )
    except (ValueError, SyntaxError):
        return text  # a word, which check() finds wrong if it is
    if get_origin(hint) is tuple and not isinstance(value, tuple):
        return (value,)
    whole = hint is int or int in get_args(hint)
    if whole and isinstance(value, float) and value.is_integer():
        return int(value)
    return value
