"""Methods that stay plain Python, as text that changes with what they do."""

from __future__ import annotations

import dis
import types
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from pyfastenv.tasks.language.places import is_users
from pyfastenv.tasks.language.spelling import nested_codes


def plain_code(owner: type, names: Iterable[str]) -> str:
    """Describes methods of a class, and the user's functions that these call.

    Bytecode, constants, defaults, closures, and the numbers and functions that are globals or the
    class's are in it; places in files, documentation, and what lists, dicts, other objects and
    globals that the functions assign hold, which may move as they run, are not. It is the same in
    another process of the same Python.

    Args:
        owner: The class.
        names: Of its methods; those that it does not have are left out.
    """
    seen: set[types.FunctionType] = set()
    waiting = [method for name in names for method in _methods(owner, name)]
    texts = []
    while waiting:
        function = waiting.pop()
        if function in seen:
            continue
        seen.add(function)
        codes = list(nested_codes(function.__code__))
        used = [name for code in codes for name in code.co_names]
        cells = [cell.cell_contents for cell in function.__closure__ or ()]
        values = [*cells, *(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()]
        assigned = {name for code in codes for name in _assigned(code)}
        values += [function.__globals__.get(name) for name in used if name not in assigned]
        texts += [f"{code.co_code!r}{code.co_names}{_constants(code, function)}" for code in codes]
        texts += map(_text, values)
        called = [each for each in values if isinstance(each, types.FunctionType)]
        called += [method for name in used for method in _methods(owner, name)]
        waiting += [each for each in called if is_users(each.__code__.co_filename)]
    return "".join(texts)


def _methods(owner: type, name: str) -> Iterator[types.FunctionType]:
    """A class's method and those of its bases, which ``super()`` calls."""
    for base in owner.__mro__:
        member = vars(base).get(name)
        function = getattr(member, "__func__", member)  # of a static or a class method
        if isinstance(function, types.FunctionType):
            yield function


def _assigned(code: types.CodeType) -> Iterator[str]:
    """The globals that a function's code assigns."""
    return (each.argval for each in dis.get_instructions(code) if each.opname == "STORE_GLOBAL")


def _constants(code: types.CodeType, function: types.FunctionType) -> str:
    return "".join(_text(each) for each in code.co_consts if each != function.__doc__)


def _text(value: Any) -> str:
    """A value in text: numbers, tuples and arrays of them; of other objects the type."""
    if isinstance(value, np.ndarray):
        return repr((value.dtype.str, value.shape, value.tobytes()))
    if isinstance(value, tuple):
        return f"({','.join(map(_text, value))})"
    if isinstance(value, frozenset):
        return f"({','.join(sorted(map(_text, value)))})"
    if isinstance(value, bool | int | float | complex | str | bytes | np.generic | None):
        return repr(value)
    return type(value).__qualname__
