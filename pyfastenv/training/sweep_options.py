"""A sweep's command line: ``--learning-rate 1e-4 3e-4 --hidden-sizes 64,64 256,256``.

One value fixes an option, several sweep it. Types are those of the algorithm's Config.
"""

from __future__ import annotations

import ast
import types
from collections.abc import Sequence
from typing import Any, Union, get_args, get_origin, get_type_hints

from pyfastenv.runs.config import RunConfig
from pyfastenv.tasks.language.spelling import did_you_mean

_SWEEP = ("seeds", "output")  # its own options


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
            name = argument.removeprefix("--").replace("-", "_")
            if not {name, name.removeprefix("no_"), f"no_{name}"}.isdisjoint(found):
                raise ValueError(f"{argument}: given twice; several values stand behind one option")
            values = found[name] = []
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
        if name in _SWEEP:
            raise ValueError(f"--{name}: given twice")
        if name not in hints:
            known = [f"--{option.replace('_', '-')}" for option in (*hints, *_SWEEP)]
            option = f"--{name.replace('_', '-')}"
            near = did_you_mean(option, known)
            raise ValueError(f"{config_class.algorithm} has no option {option}{near}")
        if not texts:
            raise ValueError(f"--{name.replace('_', '-')}: expected a value")
        parsed = [_value(text, hints[name]) for text in texts]
        if len(parsed) == 1:
            fixed[name] = parsed[0]
        else:
            grid[name] = parsed
    return fixed, grid


def _value(text: str, hint: Any) -> Any:
    """A value of a field's type; tuples are written with commas."""
    options = get_args(hint) if get_origin(hint) in (Union, types.UnionType) else (hint,)
    for option in options:
        if get_origin(option) is tuple and text.lower() != "none":
            items = [item for item in text.strip("()").replace(" ", "").split(",") if item]
            kinds = get_args(option)
            if kinds[1:] == (...,):
                kinds = kinds[:1] * len(items)
            more = (Any,) * (len(items) - len(kinds))  # check() finds them too many
            return tuple(map(_item, items, (*kinds, *more)))
    return _item(text, *options)


def _item(text: str, *kinds: Any) -> Any:
    """A value of one of these types, or what check() finds wrong."""
    if text.lower() == "none" and types.NoneType in kinds:
        return None
    if str in kinds:
        return text
    try:
        value = ast.literal_eval(text.title() if text.lower() in ("true", "false") else text)
    except (ValueError, SyntaxError):
        return text
    whole = int in kinds and isinstance(value, float) and value.is_integer()
    return int(value) if whole else value
