"""Where things stand in the user's files: as messages show it, and where it has moved since.

Compiled code has files and lines in it, and is kept for as long as it would be the same code: a
file may have been moved since, and lines put in above. Syntax trees that are alike but for their
places are walked in the same order, so a node's number says where its line is now.
"""

from __future__ import annotations

import ast
import inspect
import os
import textwrap
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import cache as once
from importlib.util import find_spec
from pathlib import Path
from typing import Any

Place = tuple[str, int]  # file, line
Places = dict[Place, int]  # of a function: the number of the first node that stands there


def show_place(filename: str, line: int) -> str:
    """``file:line``; the file as seen from the current folder if it is in there."""
    full, here = os.path.abspath(filename), os.path.join(os.getcwd(), "")
    return f"{full.removeprefix(here)}:{line}"


def place_in_class(cls: type, name: str = "") -> str:
    """``file:line: `` of what a class says of a name, or of the class; empty if that is unknown."""
    for owner in cls.__mro__:
        if name and name not in vars(owner):
            continue
        try:
            lines, first = inspect.getsourcelines(owner)
            body = ast.parse(textwrap.dedent("".join(lines))).body[0]
            filename = inspect.getfile(owner)
        except (OSError, TypeError, SyntaxError):
            return ""
        at = [node.lineno for node in getattr(body, "body", []) if name and name in _says(node)]
        return f"{show_place(filename, first - 1 + (at[-1] if at else 1))}: "
    return place_in_class(cls) if name else ""


def place_in_function(function: Any, text: str) -> str:
    """``file:line: `` where a function has this text in quotes, or begins; empty if unknown."""
    try:
        lines, first = inspect.getsourcelines(function)
        tree = ast.parse(textwrap.dedent("".join(lines)))
    except (OSError, TypeError, SyntaxError):
        return ""
    at = [n.lineno for n in ast.walk(tree) if isinstance(n, ast.Constant) and n.value == text]
    return f"{show_place(inspect.getfile(function), first - 1 + (at[-1] if at else 1))}: "


@contextmanager
def placed(cls: type, name: str) -> Iterator[None]:
    """Puts the place where a class says a name before what is wrong with it."""
    try:
        yield
    except (TypeError, ValueError) as error:
        raise type(error)(f"{place_in_class(cls, name)}{error}") from None


def _says(node: Any) -> list[str]:
    """The names to which a statement of a class's body gives a value."""
    if isinstance(node, ast.Assign):
        return [target.id for target in node.targets if isinstance(target, ast.Name)]
    if isinstance(node, ast.AnnAssign):
        return [node.target.id] if isinstance(node.target, ast.Name) else []
    return [node.name] if isinstance(node, ast.FunctionDef) else []


def is_users(filename: str) -> bool:
    """Whether a file may be the user's: none of ours but tasks', nor of what runs them, nor made
    up."""
    full = os.path.abspath(filename)
    if filename.endswith((".pyx", ".pxd")):  # what raises in NumPy's random
        return False
    return not filename.startswith("<") and (is_suites(full) or not full.startswith(_foreign()))


def is_suites(filename: str) -> bool:
    """Whether a file is one of the tasks that come with us."""
    return os.path.abspath(filename).startswith(_SUITES)


def runs_tasks(filename: str) -> bool:
    """Whether a file is one of those that call what users write."""
    return os.path.abspath(filename).startswith(_TASKS)


_PACKAGE = os.path.join(Path(os.path.abspath(__file__)).parents[2], "")
_TASKS = os.path.join(_PACKAGE, "tasks", "")
_SUITES = os.path.join(_PACKAGE, "suites", "")


@once
def _foreign() -> tuple[str, ...]:
    """The folders of those packages."""
    found = (find_spec(name) for name in ("gymnasium", "mujoco", "numpy", "numba"))
    others = (os.path.dirname(spec.origin) for spec in found if spec and spec.origin)
    return _PACKAGE, *(os.path.join(folder, "") for folder in others)


def places_of(tree: ast.FunctionDef, filename: str) -> Places:
    """Every line on which something of a function stands."""
    places: Places = {}
    for number, node in enumerate(ast.walk(tree)):
        if isinstance(node, ast.expr | ast.stmt):
            places.setdefault((filename, node.lineno), number)
    return places


def moved_places(
    then: Iterable[Places], now: Iterable[tuple[ast.FunctionDef, str]]
) -> dict[Place, Place]:
    """Where each place of some functions is now; the same functions, in the same order."""
    found: dict[Place, Place] = {}
    for places, (tree, filename) in zip(then, now, strict=True):
        nodes = list(ast.walk(tree))
        for place, number in places.items():
            node = nodes[number]
            assert isinstance(node, ast.expr | ast.stmt)
            found[place] = filename, node.lineno
    return found
