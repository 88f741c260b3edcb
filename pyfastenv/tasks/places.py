"""Where things stand in the user's files: as messages show it, and where it has moved since.

Compiled code has files and lines in it, and is kept for as long as it would be the same code: a
file may have been moved since, and lines put in above. Syntax trees that are alike but for their
places are walked in the same order, so a node's number says where its line is now.
"""

from __future__ import annotations

import ast
import os
from collections.abc import Iterable
from functools import cache as once
from importlib.util import find_spec

Place = tuple[str, int]  # file, line
Places = dict[Place, int]  # of a function: the number of the first node that stands there


def show_place(filename: str, line: int) -> str:
    """``file:line``; the file as seen from the current folder if it is in there."""
    full, here = os.path.abspath(filename), os.path.join(os.getcwd(), "")
    return f"{full.removeprefix(here)}:{line}"


def is_users(filename: str) -> bool:
    """Whether a file may be the user's: none of ours, nor of what runs tasks, nor made up."""
    return not filename.startswith("<") and not os.path.abspath(filename).startswith(_foreign())


@once
def _foreign() -> tuple[str, ...]:
    """The folders of those packages."""
    found = (find_spec(name) for name in ("gymnasium", "mujoco", "numpy", "numba"))
    others = (os.path.dirname(spec.origin) for spec in found if spec and spec.origin)
    return os.path.dirname(os.path.abspath(__file__)), *others


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
