"""Losses of a user's own, by name: a run goes on with those that it began with."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from pyfastenv.training.accelerators import changed_functions


def own_losses(algorithm: Any) -> dict[str, str]:
    """The functions of an algorithm's file that its ``functions`` replaces, and what by.

    Returns:
        ``{"critic_loss": "module:function"}``; of a script, its name stands for the module, of a
        ``functools.partial`` its arguments behind it.
    """
    functions = getattr(algorithm, "functions", None)
    if not hasattr(functions, "_field_defaults"):  # another package's
        return {}
    return {name: _place(f) for name, f in changed_functions(functions).items()}


def check_losses(mine: Mapping[str, str], saved: Mapping[str, Any], run: Path) -> None:
    """Checks that a run goes on with the losses of its config.json or checkpoint.

    Args:
        mine: :func:`own_losses` of what goes on.
        saved: What the run has written; earlier versions did not write ``"own_losses"``.
        run: Where that is.

    Raises:
        ValueError: Others; the message says how to go on.
    """
    its: Mapping[str, str] = saved.get("own_losses", mine)
    differences = [
        f"{name} was {its.get(name, 'the standard one')}, is {mine.get(name, 'the standard one')}"
        for name in sorted({*its, *mine})
        if not _alike(its.get(name), mine.get(name))
    ]
    if differences:
        way_on = f"pyfastenv resume {run}" if not its else resuming_call("its class", run)
        raise ValueError(
            f"resume: the run had other losses: {'; '.join(differences)}; go on with: {way_on}"
        )


def resuming_call(algorithm: str, run: Path) -> str:
    """How a run with losses of one's own goes on, in Python."""
    call = f"loop.run({algorithm}, saved.resumed_config('{run}'))"
    return f"{call} (pyfastenv.training.loop, pyfastenv.runs.saved)"


def _alike(one: str | None, other: str | None) -> bool:
    """Whether they may be the same: what a prompt or notebook defined has a name but no module."""
    if one is None or other is None or "__main__" not in (one.split(":")[0], other.split(":")[0]):
        return one == other
    return one.partition(":")[2] == other.partition(":")[2]


def _place(function: Any) -> str:
    if isinstance(function, partial):
        keywords = [f"{name}={_said(value)}" for name, value in function.keywords.items()]
        return f"{_place(function.func)}({', '.join([*map(_said, function.args), *keywords])})"
    named = function if hasattr(function, "__qualname__") else type(function)
    module = named.__module__
    if module == "__main__":
        main = sys.modules[module]
        spec, file = getattr(main, "__spec__", None), getattr(main, "__file__", None)
        module = spec.name if spec else Path(file).stem if file else module  # python -m, a script
    return f"{module}:{named.__qualname__}"


def _said(argument: Any) -> str:
    """An argument that says the same in another process."""
    simple = bool | int | float | str | None
    return repr(argument) if isinstance(argument, simple) else type(argument).__qualname__
