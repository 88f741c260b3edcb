"""LearnerConfig: the options that all algorithms with networks and gradients share."""

from __future__ import annotations

import pkgutil
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from operator import attrgetter
from typing import Any, Literal

from pyfastenv.nn.networks import checked_network
from pyfastenv.runs.config import RunConfig
from pyfastenv.runs.options import MAY_DIFFER
from pyfastenv.tasks.language.importing import absolute_place, import_place
from pyfastenv.training import distributed
from pyfastenv.training.actor_critic import NetworkFactory

_FACTORIES = ("policy_factory", "critic_factory")


@dataclass(kw_only=True)
class LearnerConfig(RunConfig):
    """The options of an algorithm that learns by gradients."""

    amp: bool = False
    """Mixed precision: products of bfloat16 numbers, of all layers in compiled steps, else of those
    between hidden layers; parameters and optimisers stay in float32. Without a GPU, AMX or
    AVX512-BF16 all stays in float32, and the output says so."""
    accelerate: Literal["auto", "none", "compile", "native"] = field(
        default="auto", metadata=MAY_DIFFER
    )
    """Who computes gradient steps: plain PyTorch (none), torch.compile, or written-out gradients
    and compiled kernels (native); auto: native where it can."""
    policy_factory: str | None = None
    """An own policy network: my_networks:function or path/to/my_networks.py:function of (inputs,
    outputs), which makes a torch module."""
    critic_factory: str | None = None
    """An own critic or value network, likewise."""

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in _FACTORIES:
            given: Any = getattr(self, name)
            if callable(given):
                setattr(self, name, _place_of(name, given))
            elif isinstance(given, str):
                setattr(self, name, absolute_place(given))

    def check(self) -> None:
        super().check()
        for name in _FACTORIES:
            self.factory(name)

    def _check_shared_out(self, name: str) -> None:
        """Checks that the processes can share a number evenly."""
        if getattr(self, name) % distributed.world_size() != 0:
            raise ValueError(
                f"{name}: {getattr(self, name)} is not a multiple of the number of processes, "
                f"{distributed.world_size()}"
            )

    def factory(self, name: str) -> NetworkFactory | None:
        """The function that ``policy_factory`` or ``critic_factory`` names, imported now; what it
        makes is tried once (:func:`pyfastenv.nn.networks.checked_network`).

        Raises:
            ValueError: It cannot be imported.
        """
        where = getattr(self, name)
        if where is None:
            return None
        place, colon, function = where.rpartition(":")
        try:
            if not colon:
                raise ImportError("expected package.module:function or path/to/file.py:function")
            if place == "__main__":
                raise ImportError(
                    "a script's own functions are not found again: put it into a module beside it"
                )
            found: NetworkFactory = attrgetter(function)(import_place(place, where))
        except (ImportError, AttributeError, OSError) as error:
            raise ValueError(f"{name}: {where!r} cannot be imported ({error})") from error
        return partial(checked_network, f"{name}: {where}", found)


def _place_of(name: str, function: Callable[..., Any]) -> str:
    """``"module:function"``, by which a run folder's policy finds the network again."""
    place = f"{function.__module__}:{getattr(function, '__qualname__', '')}"
    try:
        found = pkgutil.resolve_name(place)
    except (ImportError, AttributeError, ValueError):
        found = None
    if found is not function:
        raise ValueError(
            f"{name}: expected a function that stands in a module, by which its name in the run "
            f"folder finds it again, got {function!r}"
        )
    return place
