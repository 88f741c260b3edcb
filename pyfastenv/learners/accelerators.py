"""What computes an algorithm's gradient steps faster than its readable program, and who may.

An algorithm's file is the specification: plain PyTorch, a function for each loss, autograd. An
accelerator computes the same steps in another way. It says which of those functions it stands for,
so that whoever changes one of them gets the plain program, and a test holds it against that.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Literal, NamedTuple, Protocol

from torch import Tensor

Kind = Literal["compile", "native"]


class Accelerator(Protocol):
    """Gradient steps of one learner.

    Attributes:
        name: What the run folder records.
        kind: By which option it is chosen: ``"compile"`` or ``"native"``.
        functions: Of the algorithm's file, those that it stands for.
    """

    name: ClassVar[str]
    kind: ClassVar[Kind]
    functions: ClassVar[tuple[str, ...]]

    @classmethod
    def why_not(cls, learner: Any) -> str | None:
        """Why it cannot compute this learner's steps; None: it can."""
        ...

    def __init__(self, learner: Any): ...

    def run(self, rows: Tensor, noise: Tensor, metrics: Tensor) -> None:
        """Gradient steps one after another.

        Args:
            rows: ``(U, K, B, width)`` transitions.
            noise: ``(U, K, *noise_shape(B))`` standard normal.
            metrics: Where the last step's metrics are written.
        """
        ...


class Choice(NamedTuple):
    """Of an accelerator."""

    accelerator: Any  # None: the plain program
    name: str  # for config.json and result.json
    note: str  # a line for the log


PLAIN = "plain PyTorch"


def changed_functions(functions: Any) -> dict[str, Any]:
    """Those of an algorithm's functions that the user has replaced, by name.

    Args:
        functions: A NamedTuple of an algorithm's file, whose defaults are its own functions.

    Raises:
        TypeError: It is none.
    """
    defaults = getattr(functions, "_field_defaults", None)
    if defaults is None or isinstance(functions, type):
        raise TypeError(
            "functions: expected a NamedTuple such as sac.Functions(critic_loss=…), got "
            f"{functions!r}"
        )
    return {name: f for name, f in functions._asdict().items() if f is not defaults[name]}


def choose(
    candidates: Sequence[type[Any]],
    wanted: str,
    learner: Any,
    *,
    changed: Sequence[str] = (),
    own_networks: bool = False,
) -> Choice:
    """The first accelerator that is wanted and can, or the plain program.

    Args:
        candidates: :class:`Accelerator` classes, the fastest first.
        wanted: ``"auto"``, ``"none"``, ``"compile"`` or ``"native"``.
        learner: Whose steps.
        changed: Functions of the algorithm's file that the user has replaced.
        own_networks: Whether the user has brought any.
    """
    if wanted == "none":
        return Choice(None, PLAIN, "")
    kind = "native" if wanted == "auto" else wanted
    reasons = ["networks of your own"] if own_networks else []
    for candidate in candidates:
        if candidate.kind != kind:
            continue
        replaced = [name for name in changed if name in candidate.functions]
        if replaced:
            reasons.append(f"{', '.join(replaced)} of your own")
        elif not own_networks:
            reason = candidate.why_not(learner)
            if reason is None:
                return Choice(candidate(learner), candidate.name, "")
            reasons.append(f"{candidate.name}: {reason}")
    why = "; ".join(dict.fromkeys(reasons)) or f"nothing here is of kind {kind}"
    return Choice(None, PLAIN, f"Gradient steps in plain PyTorch ({why})")
