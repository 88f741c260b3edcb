"""Random numbers that are not the environment's own, and which of ``rng``'s stand in for them."""

from __future__ import annotations

import random
import types
from typing import Any

import numpy as np

from pyfastenv.tasks.frontend import vocabulary as words
from pyfastenv.tasks.language.task import METHODS

# names that numpy.random and random have for what a Generator calls otherwise
_SYNONYMS = {
    "rand": "random",
    "random_sample": "random",
    "ranf": "random",
    "sample": "random",
    "randn": "standard_normal",
    "gauss": "normal",
    "normalvariate": "normal",
    "randint": "integers",
    "randrange": "integers",
    "random_integers": "integers",
}


def is_foreign(value: Any) -> bool:
    """Whether a value is ``numpy.random`` or ``random``, or something of theirs."""
    if isinstance(value, types.ModuleType):
        return value in (np.random, random)
    owner = getattr(value, "__self__", None)  # of np.random.uniform: NumPy's global stream
    module = getattr(value, "__module__", None) or ""
    return (
        isinstance(owner, np.random.RandomState | random.Random)
        or module == "random"
        or module.startswith("numpy.random")
    )


def instead(value: Any, method: str) -> str:
    """The expression to write in a method in the place of such a value.

    Args:
        value: For which :func:`is_foreign` holds.
        method: The name of the function in which it is used.
    """
    name = getattr(value, "__name__", "")
    name = _SYNONYMS.get(name, name)
    known = [name] if name in words.GENERATOR else words.GENERATOR
    said = "use rng, the environment's own stream, which seeds and snapshots know: "
    said += ", ".join(f"rng.{each}(…)" for each in known)
    asked = METHODS.get(method)
    if asked is None:
        return f"{said}; {method} is handed rng by the method that calls it"
    if "rng" in asked:
        return f"{said}; the method asks for it, def {method}(self, …, rng)"
    return f"{said}; it is for reset and step, {method} reads what they keep in a memory()"
