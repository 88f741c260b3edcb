"""Functions as their definitions in the user's files, parsed once per file."""

from __future__ import annotations

import ast
import copy
import functools
import linecache
import types

from pyfastenv.errors import TaskCodeError


def definition_of(function: types.FunctionType) -> tuple[ast.FunctionDef, str]:
    """A copy of a function's definition, without what is there for readers, and its file."""
    code = function.__code__
    found = _definitions(code.co_filename).get((code.co_firstlineno, code.co_name))
    if found is None:
        raise TaskCodeError(
            f"{function.__qualname__}: its source cannot be read: tasks are compiled from files, "
            f"and from functions that are written with def"
        )
    definition = copy.deepcopy(found)
    definition.decorator_list = []
    definition.returns = None
    for argument in definition.args.args:
        argument.annotation = None
    return definition, code.co_filename


def _definitions(filename: str) -> dict[tuple[int, str], ast.FunctionDef]:
    """All functions of a file by first line, of a decorator if there is one, and name."""
    linecache.checkcache(filename)
    return _definitions_in("".join(linecache.getlines(filename)))


@functools.lru_cache(maxsize=8)
def _definitions_in(text: str) -> dict[tuple[int, str], ast.FunctionDef]:
    return {
        (
            min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)]),
            node.name,
        ): node
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.FunctionDef)
    }
