"""Accelerators: they compute gradient steps faster than the readable program, where they may.

An algorithm's file is the specification: plain PyTorch, a function for each loss, autograd. An
accelerator computes the same steps in another way. It says which functions, methods, networks and
optimisers it stands for, so that whoever changes one of them gets the plain program, and a test
holds it against that.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, ClassVar, Generic, Literal, NamedTuple, TypeVar

import torch

from pyfastenv import _core
from pyfastenv.training.changes import changed_attributes, changed_parts

Kind = Literal["compile", "native"]
L = TypeVar("L")


class Accelerator:
    """Gradient steps of one learner, with which an instance is made.

    Attributes:
        name: What the run folder records.
        kind: By which option it is chosen: ``"compile"`` or ``"native"``.
        functions: Of the algorithm's file, those that it stands for.
        methods: Of the learner, those that it stands for or calls with arguments of its own.
        reads: A protocol of the learner, by whose attributes it computes: none may be a property of
            a user's. None: it computes by functions alone.
        targets: Vectors of networks that follow, as :meth:`vectors` has those that learn.
    """

    name: ClassVar[str]
    kind: ClassVar[Kind] = "native"
    functions: ClassVar[tuple[str, ...]] = ()
    methods: ClassVar[tuple[str, ...]]
    reads: ClassVar[type | None] = None
    targets: ClassVar[Mapping[str, tuple[str, ...]]] = {}

    def __init__(self, learner: Any):
        self._learner = learner

    @classmethod
    def why_not(cls, learner: Any) -> str | None:
        """Why it cannot compute this learner's steps; None: it can."""
        return None

    @classmethod
    def vectors(cls, learner: Any) -> Mapping[str, tuple[str, ...]]:
        """Whose passes it computes: a vector's parameters are those of these networks, in order."""
        return {}

    @classmethod
    def optimizers(cls, learner: Any) -> Mapping[str, str]:
        """Whose steps it makes without calling them: the vector that each moves."""
        return {}


class Choice(NamedTuple):
    """Which accelerator computes the steps, and why no other does."""

    accelerator: Any  # None: the plain program
    name: str  # for config.json and result.json
    note: str  # a line for the log
    changes: tuple[str, ...] = ()  # of the user's, for which accelerators were refused


PLAIN = "plain PyTorch"
ONLY_WITH_AMP = "only with amp"  # why_not's answer that needs no note
IN_BFLOAT16 = f"in bfloat16 ({_core.bfloat16_unit()})" if _core.bfloat16_unit() else "in bfloat16"


def in_bfloat16(amp: bool, device: torch.device) -> bool:
    """Whether mixed precision means bfloat16 there, or float32 all the same.

    A CPU without a unit for such products makes them in software: SAC's gradient steps then take
    some twelve times as long as in float32.
    """
    return amp and (device.type != "cpu" or bool(_core.bfloat16_unit()))


def autocast(amp: bool, device: torch.device) -> torch.autocast:
    """The context in which networks that are not ours compute in mixed precision."""
    return torch.autocast(device.type, torch.bfloat16, enabled=in_bfloat16(amp, device))


def why_not_bfloat16(amp: bool, device: torch.device) -> str | None:
    """Why products are not computed in bfloat16 by the core; None: they are."""
    if not amp:
        return ONLY_WITH_AMP
    if device.type != "cpu":
        return "only on the CPU"
    return None if in_bfloat16(amp, device) else "neither AMX nor AVX512-BF16, so in float32"


class InBfloat16(Accelerator):
    """The base, before a compiled one in float32, of the same with products of bfloat16 numbers."""

    name: ClassVar[str] = f"compiled {IN_BFLOAT16}"
    bfloat16: ClassVar[bool] = True

    @classmethod
    def why_not(cls, learner: Any) -> str | None:
        """It needs amp and a CPU with AMX or AVX512-BF16, and what the other needs."""
        reason = why_not_bfloat16(learner.options.bfloat16, learner.device)
        return reason or super().why_not(learner)


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


def _replaced_functions(accelerator: type[Accelerator], learner: Any) -> list[str]:
    if not accelerator.functions:
        return []
    changed = changed_functions(getattr(learner, "functions", None))
    replaced = [name for name in changed if name in accelerator.functions]
    return [f"{', '.join(replaced)} of your own"] if replaced else []


@cache
def _attributes(protocol: type | None) -> tuple[str, ...]:
    """The names of a protocol's attributes; functions are looked at one by one."""
    if protocol is None:
        return ()
    properties = [name for name, each in vars(protocol).items() if isinstance(each, property)]
    return (*protocol.__annotations__, *properties)


def changes_of(accelerator: type[Accelerator], learner: Any) -> list[str]:
    """The user's changes, in words, of the parts that the accelerator stands for."""
    return [
        *_replaced_functions(accelerator, learner),
        *changed_attributes(learner, (*accelerator.methods, *_attributes(accelerator.reads))),
        *changed_parts(
            learner,
            accelerator.vectors(learner),
            accelerator.targets,
            accelerator.optimizers(learner),
        ),
    ]


class Chooser(Generic[L]):
    """The first accelerator that is wanted and can, or the plain program, at any time.

    Args:
        learner: Whose steps, once its networks and optimisers stand.
        candidates: The fastest first.
        wanted: ``"auto"``, ``"none"``, ``"compile"`` or ``"native"``.
        own_networks: Whether the user has brought any.
        what: Is said in the note.
    """

    def __init__(
        self,
        learner: L,
        candidates: Sequence[type[Accelerator]],
        wanted: str,
        *,
        own_networks: bool = False,
        what: str = "Gradient steps",
    ):
        self._learner = learner
        self._candidates = candidates
        self._wanted = wanted
        self._own_networks = own_networks
        self._what = what
        self._choice = self._choose()

    @property
    def choice(self) -> Choice:
        """The choice of before, or another where the user has changed something since."""
        accelerator = self._choice.accelerator
        if accelerator is not None:
            kind = type(accelerator)
            reason = kind.why_not(self._learner)
            if reason or changes_of(kind, self._learner):
                self._choice = self._choose([f"why not {kind.name}: {reason}"] if reason else [])
        return self._choice

    @choice.setter
    def choice(self, choice: Choice) -> None:
        self._choice = choice

    def _choose(self, since: Sequence[str] = ()) -> Choice:
        """Chooses; ``since`` says why an accelerator that could cannot any more."""
        if self._wanted == "none":
            return Choice(None, PLAIN, "")
        kind = "native" if self._wanted == "auto" else self._wanted
        learner = self._learner
        changes = ["networks of your own"] if self._own_networks else list(since)
        reasons = list(changes)
        for candidate in self._candidates:
            if candidate.kind != kind:
                continue
            # passes of own networks no accelerator knows
            look = _replaced_functions if self._own_networks else changes_of
            changed = look(candidate, learner)
            changes += changed
            reasons += changed
            if self._own_networks or changed:
                continue
            reason = candidate.why_not(learner)
            if reason is None:
                note = self._note(candidate.name, reasons) if reasons else ""
                return Choice(candidate(learner), candidate.name, note, tuple(changes))
            if reason != ONLY_WITH_AMP:
                reasons.append(f"why not {candidate.name}: {reason}")
        reasons = reasons or [f"nothing here is of kind {kind}"]
        return Choice(None, PLAIN, self._note(PLAIN, reasons), tuple(dict.fromkeys(changes)))

    def _note(self, by: str, reasons: Sequence[str]) -> str:
        return f"{self._what}: {by} ({'; '.join(dict.fromkeys(reasons))})"
