"""Results that should be equal and are not: where they differ, and the likely cause."""

from __future__ import annotations

import ast
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pyfastenv.tasks.compiler.native import NativeTask
from pyfastenv.tasks.frontend.sources import Sources
from pyfastenv.tasks.language.batch import has_batch_functions
from pyfastenv.tasks.language.places import show_place
from pyfastenv.tasks.language.task import Task

_UNINITIALISED = ("plain:empty", "plain:empty_like")


def first_difference(ours: Any, theirs: Any) -> str | None:
    """The first number that differs, with its index and both values to the bit; None if none does.

    Args:
        ours: A number or an array.
        theirs: Of the same shape; NaN equals NaN.
    """
    ours, theirs = np.asarray(ours), np.asarray(theirs)
    if ours.shape != theirs.shape:
        return f"shapes {ours.shape} and {theirs.shape}"
    differs = differing(ours, theirs)
    if not differs.any():
        return None
    index = tuple(int(i) for i in np.argwhere(differs)[0])
    place = f"[{', '.join(map(str, index))}]" if index else ""
    count = f" ({differs.sum()} of {differs.size} differ)" if differs.size > 1 else ""
    values = f"{_exact(ours[index])} and {_exact(theirs[index])}"
    return f"{place} {values}{count}".strip()


def differing(ours: NDArray[Any], theirs: NDArray[Any]) -> NDArray[np.bool_]:
    """Where two arrays differ; NaN equals NaN."""
    different: NDArray[np.bool_] = np.asarray(
        ~((ours == theirs) | ((ours != ours) & (theirs != theirs)))
    )
    return different


def _exact(number: Any) -> str:
    """A number in decimals that tell it apart from its neighbours, and a float's bits."""
    value = number.item()
    if not isinstance(value, float):
        return str(value)
    bits = number.view(f"u{number.dtype.itemsize}")
    return f"{value!r} (0x{bits:0{2 * number.dtype.itemsize}x})"


def likely_cause(task: Task) -> str:
    """The likely cause of results that change from run to run, or with the number of threads.

    Args:
        task: An instance.
    """
    if isinstance(task, NativeTask):
        return (
            "likely: a global or static variable of the file, which all environments share, or a "
            "variable that is read before it has a value"
        )
    if has_batch_functions(type(task)):
        return (
            "likely: batch_step or batch_observation keeps something from one call to the next "
            "(an attribute, a global, a random generator)"
        )
    places = _uninitialised(Sources(task))
    if places:
        return (
            f"likely: np.empty, which holds whatever the memory held, is read before it is "
            f"written: {', '.join(places)}; write np.zeros"
        )
    return (
        "nothing in the task's methods explains this, so it is likely pyfastenv's: please report "
        "it, with what pyfastenv doctor says"
    )


def _uninitialised(sources: Sources) -> list[str]:
    """Where a task's functions make arrays without values."""
    found = []
    for function in sources.functions.values():
        names = [name for name, target in function.calls.items() if target in _UNINITIALISED]
        found += [
            show_place(function.filename, node.lineno)
            for node in ast.walk(function.tree)
            if isinstance(node, ast.Name) and node.id in names
        ]
    return found
