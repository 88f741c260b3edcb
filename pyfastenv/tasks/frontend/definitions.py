"""Functions as their definitions in the user's files."""

from __future__ import annotations

import ast
import linecache
import os
import time
import types
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from pyfastenv.errors import TaskCodeError
from pyfastenv.tasks.language.spelling import nested_codes

_BEGUN = time.time()  # before any task was imported


@dataclass
class Function:
    """One function, rewritten."""

    name: str  # by which the others call it
    tree: ast.FunctionDef
    filename: str
    constants: dict[str, Any] = field(default_factory=dict)  # numbers, tuples, arrays
    calls: dict[str, str] = field(default_factory=dict)  # name -> "numpy:sum", "mujoco:mj_ray", …

    def text(self) -> str:
        """Everything that compiled code depends on."""
        constants = {
            name: (value.dtype.str, value.shape, value.tobytes())
            if isinstance(value, np.ndarray)
            else value
            for name, value in sorted(self.constants.items())
        }
        return f"{ast.dump(self.tree)}{constants!r}{sorted(self.calls.items())!r}"


class Definitions:
    """Syntax trees of functions, given away: they are the caller's to change."""

    def __init__(self) -> None:
        self._files: dict[str, dict[tuple[int, str], ast.FunctionDef]] = {}

    def of(self, function: types.FunctionType) -> tuple[ast.FunctionDef, str]:
        """A function's definition, without what is there for readers, and its file."""
        code = function.__code__
        filename, key = code.co_filename, (code.co_firstlineno, code.co_name)
        definition = self._files.get(filename, {}).pop(key, None)
        if definition is None:  # not parsed yet, or asked for again: another closure of it
            linecache.checkcache(filename)
            self._files[filename] = _definitions_in("".join(linecache.getlines(filename)))
            definition = self._files[filename].pop(key, None)
        if definition is None:
            raise TaskCodeError(
                f"{function.__qualname__}: its source cannot be read in {filename}: tasks are "
                f"compiled from files as they were imported, and from functions that are written "
                f"with def"
            )
        # (tools that rewrite code as it is imported, pytest's assert say, leave the file alone)
        if not _is_still_there(code, filename):
            raise TaskCodeError(
                f"{function.__qualname__}: {filename} has been changed since it was imported: "
                f"start Python anew, or reload the module (importlib.reload)"
            )
        definition.decorator_list = []
        definition.returns = None
        for argument in definition.args.args:
            argument.annotation = None
        return definition, filename


def _definitions_in(text: str) -> dict[tuple[int, str], ast.FunctionDef]:
    """All functions by first line, of a decorator if there is one, and name."""
    return {
        (
            min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)]),
            node.name,
        ): node
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.FunctionDef)
    }


def _is_still_there(code: types.CodeType, filename: str) -> bool:
    """Whether a file has a function as it was imported, whatever its comments."""
    with suppress(OSError):
        if os.stat(filename).st_mtime > _BEGUN:
            text = "".join(linecache.getlines(filename))
            found = nested_codes(compile(text, filename, "exec", dont_inherit=True))
            return _without_places(code) in map(_without_places, found)
    return True


def _without_places(code: types.CodeType) -> types.CodeType:
    return code.replace(co_linetable=b"")
