"""Finds a user's changes of the code that an accelerator would replace.

An accelerator computes what the classes here do as they are written. A subclass that overrides a
method, a method or an optimiser put on the instance, a property where a number stood, a hook, a
frozen parameter or other networks would be passed over without a word: each is found and named.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import FunctionType
from typing import Any, TypeVar

from torch import Tensor, nn

from pyfastenv.nn.networks import MLP, FlatParameters, NetworkStack
from pyfastenv.nn.optim import FlatAdam
from pyfastenv.nn.unit_networks import (
    BoundedLogStd,
    ResidualBlock,
    UnitBatchNorm,
    UnitLinear,
    UnitNetwork,
    UnitRMSNorm,
)

C = TypeVar("C", bound=type)

_FOREIGN = ("abc", "builtins", "torch", "typing")
_HOOKS = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")

# class -> its attributes by name, and of these its methods and properties
_as_written: dict[type, dict[str, Any]] = {}
_methods: dict[type, dict[str, Any]] = {}


def as_written(cls: C) -> C:
    """Remembers a class as its file has it; a decorator."""
    ours = [each for each in cls.__mro__ if each.__module__.split(".")[0] not in _FOREIGN]
    names = {name for each in ours for name in vars(each) if not name.startswith("__")}
    if issubclass(cls, nn.Module):
        names.add("forward")  # which may be torch's
    attributes = {name: getattr(cls, name) for name in names}
    _as_written[cls] = attributes
    _methods[cls] = {
        name: value
        for name, value in attributes.items()
        if isinstance(value, FunctionType | property)
    }
    return cls


for _class in (
    *(FlatAdam, FlatParameters, MLP, NetworkStack, nn.ModuleList, nn.ReLU, nn.Sequential),
    *(BoundedLogStd, ResidualBlock, UnitBatchNorm, UnitLinear, UnitNetwork, UnitRMSNorm),
):
    as_written(_class)


def changed_attributes(learner: Any, names: Iterable[str]) -> list[str]:
    """Those of a learner's methods and numbers that are not as its class was written.

    Args:
        learner: Of a class under :func:`as_written`, or of a subclass.
        names: Methods; and attributes that were plain ones, not computed, when that was written.

    Raises:
        TypeError: No class of it is under :func:`as_written`.
    """
    cls, own = type(learner), vars(learner)
    known = next((each for each in cls.__mro__ if each in _as_written), None)
    if known is None:
        raise TypeError(f"{cls.__name__}: expected a class under @as_written, or of one")
    written = _as_written[known]

    def is_changed(name: str) -> bool:
        if name in written:
            return name in own or getattr(cls, name) is not written[name]
        return name not in own or hasattr(cls, name)

    return [f"{name} of your own" for name in names if is_changed(name)]


def changed_parts(
    learner: Any,
    vectors: Mapping[str, Sequence[str]],
    targets: Mapping[str, Sequence[str]],
    optimizers: Mapping[str, str],
) -> Iterator[str]:
    """The changed parts of a learner's networks, vectors and optimisers.

    Args:
        learner: Which has them as attributes.
        vectors: By the name of :class:`FlatParameters`, whose parameters these are, in order.
        targets: Likewise of networks that only follow.
        optimizers: By the name of a :class:`FlatAdam`, the vector that it moves.
    """
    kinds: dict[type, None] = {FlatParameters: None}  # in order, for the sentence
    if optimizers:
        kinds[FlatAdam] = None
    for vector, names in (*vectors.items(), *targets.items()):
        found: list[Tensor] = []
        for name in names:
            part = getattr(learner, name)
            parameters = _parameters(part)
            yield from _changed_part(name, part, kinds)
            if vector in vectors:
                yield from _not_learned(name, parameters)
            found += parameters
        flat = getattr(learner, vector)
        if _is_own(flat, FlatParameters):
            yield f"{vector} of your own"
        elif len(flat.parts) != len(found) or any(
            ours is not theirs for ours, theirs in zip(flat.parts, found, strict=True)
        ):
            yield f"{vector} with other parameters than those of {' and '.join(names)}"
    for name, vector in optimizers.items():
        optimizer = getattr(learner, name)
        if _is_own(optimizer, FlatAdam) or optimizer.flat is not getattr(learner, vector):
            yield f"{name} of your own"
    for kind in kinds:
        for name, method in _methods[kind].items():
            if getattr(kind, name) is not method:
                yield f"{kind.__name__}.{name} of your own"


def _is_own(part: Any, kind: type) -> bool:
    """Whether it is no plain instance of that class."""
    return type(part) is not kind or not _methods[kind].keys().isdisjoint(vars(part))


def _parameters(part: Any) -> list[Any]:
    if type(part) is MLP:  # ten times as fast as parameters()
        return [*part.weight_list, *part.bias_list, *part.norm_list]
    return list(part.parameters()) if isinstance(part, nn.Module) else [part]


def _changed_part(name: str, part: Any, kinds: dict[type, None]) -> Iterator[str]:
    """Names what is changed in a network; the classes that it is made of go into ``kinds``."""
    if not isinstance(part, nn.Module):
        return
    modules = (part,) if type(part) is MLP else part.modules()
    for module in modules:
        kind, own = type(module), vars(module)
        if kind not in _as_written or not _methods[kind].keys().isdisjoint(own):
            yield f"{name} of your own"
            return
        if any(own[hooks] for hooks in _HOOKS):
            yield f"hooks on {name}"
            return
        kinds[kind] = None


def _not_learned(name: str, parameters: Iterable[Any]) -> Iterator[str]:
    """Names parameters without gradients, and gradients that somebody changes or watches."""
    for parameter in parameters:
        if not parameter.requires_grad:
            yield f"frozen parameters in {name}"
            return
        if parameter._backward_hooks or parameter._post_accumulate_grad_hooks:
            yield f"hooks on {name}"
            return
