"""The table of calls."""

import random
from collections.abc import Callable
from typing import Any, NamedTuple

from session import Plan, Session


class Kind(NamedTuple):
    """A sort of call."""

    plan: Callable[[Session, random.Random, str | None], Plan]
    faults: tuple[str, ...]
    weight: float
    possible: Callable[[Session], bool]


KINDS: dict[str, Kind] = {}


def kind(
    weight: float,
    faults: str = "",
    possible: Callable[[Session], bool] = lambda s: True,
) -> Callable[[Any], Any]:
    """Registers a call under its function's name; ``faults`` are words."""

    def register(plan: Any) -> Any:
        KINDS[plan.__name__] = Kind(plan, tuple(faults.split()), weight, possible)
        return plan

    return register


def own_reference(s: Session) -> bool:
    return not s.settings.against_gymnasium
