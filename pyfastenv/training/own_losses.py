"""Losses of a user's own, by name: a run goes on with those that it began with."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any


def own_losses(algorithm: Any) -> dict[str, str]:
    """The functions of an algorithm's file that its ``functions`` replaces, and what by.

    Returns:
        ``{"critic_loss": "module:function"}``; of a script, its name stands for the module.
    """
    functions = getattr(algorithm, "functions", None)
    defaults = getattr(functions, "_field_defaults", {})
    given = {name: getattr(functions, name) for name in defaults}
    return {name: _place(f) for name, f in given.items() if f is not defaults[name]}


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
        if its.get(name) != mine.get(name)
    ]
    if differences:
        way_on = f"pyfastenv resume {run}" if not its else resuming_call("its class", run)
        raise ValueError(
            f"resume: the run had other losses: {'; '.join(differences)}; go on with: {way_on}"
        )


def resuming_call(algorithm: str, run: Path) -> str:
    """How a run with losses of one's own goes on, in Python."""
    return f"loop.run({algorithm}, saved.resumed_config('{run}')) (pyfastenv.training)"


def _place(function: Any) -> str:
    named = function if hasattr(function, "__qualname__") else type(function)
    module = named.__module__
    if module == "__main__" and (file := getattr(sys.modules[module], "__file__", None)):
        module = Path(file).stem
    return f"{module}:{named.__qualname__}"
