"""Names and sizes of a task's observations and infos, found by running it once in plain Python."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pyfastenv.vector.obs_views import ObsView, ObsViews

# what an info must be whose first value is whole
WHOLE = (
    "expected whole numbers, as in the first run; where others may follow, it is a float from the "
    "beginning: max(0.0, x) for max(0, x), 0.0 for 0, or float(…)"
)


@dataclass(frozen=True)
class Part:
    """Where a named group of numbers stands in a flat vector."""

    offset: int
    shape: tuple[int, ...]
    dtype: str = "float64"
    always: bool = True  # an info: reset reports it too

    @property
    def size(self) -> int:
        """How many numbers."""
        return math.prod(self.shape)

    @property
    def is_whole(self) -> bool:
        """Whether they are whole numbers."""
        return self.dtype == "int64"


@dataclass(frozen=True)
class Layout:
    """Names, places and shapes of what a task writes."""

    obs: Mapping[str, Part] = field(default_factory=dict)
    infos: Mapping[str, Part] = field(default_factory=dict)

    @property
    def obs_size(self) -> int:
        """Length of the flat observation."""
        return sum(part.size for part in self.obs.values())


class Field(NamedTuple):
    """Where an attribute of the task stands: ``offset`` in numbers of eight bytes."""

    section: str  # of the TaskFrame: "params", "memory" or "command"
    offset: int
    shape: tuple[int, ...] | None  # None: one number
    kind: str  # "float64", "int64" or "bool"


class Writer(Mapping[str, Any]):
    """``obs`` or ``info`` in plain Python: a dict that is only written to, and says what is wrong.

    Args:
        what: ``"obs"`` or ``"info"``.
        parts: What may be written; None in the first run, which finds out.
    """

    def __init__(self, what: str, parts: Mapping[str, Part] | None):
        self._what = what
        self._parts = parts
        self._values: dict[str, Any] = {}

    def __setitem__(self, name: str, value: Any) -> None:
        where = f"{self._what}[{name!r}]"
        if not isinstance(name, str):
            raise TypeError(f"{where}: expected a name")
        array = np.array(value)  # a copy: views of mjData change
        if array.dtype.kind not in "biuf":
            raise TypeError(f"{where}: expected numbers, got {value!r}")
        if array.size == 0:
            raise ValueError(f"{where}: expected numbers, got an empty array")
        if self._parts is not None:
            if name not in self._parts:
                raise KeyError(
                    f"{where} was not written in the first run: write it always, 0 where it has no "
                    f"meaning"
                )
            part = self._parts[name]
            if array.size != part.size:
                raise ValueError(
                    f"{where}: expected {part.size} numbers, as in the first run, got {array.size}"
                )
            if part.is_whole and array.dtype.kind == "f" and (array != np.trunc(array)).any():
                raise TypeError(f"{where}: {WHOLE}, got {array}")
        self._values[name] = array

    def __getitem__(self, name: str) -> Any:
        raise TypeError(f"{self._what}[{name!r}] is only written to: keep the value in a variable")

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """The arrays that were written."""
        return dict(self._values)


def obs_parts(written: Mapping[str, NDArray[Any]]) -> dict[str, Part]:
    """The layout of an observation, in the order in which it was written."""
    parts, offset = {}, 0
    for name, array in written.items():
        parts[name] = Part(offset, array.shape)
        offset += array.size
    return parts


def obs_views(parts: Mapping[str, Part], wanted: Any, owner: str) -> ObsViews | None:
    """The entries of a task's ``observation_dict`` as places in its flat observation; None: flat.

    Raises:
        TypeError: ``wanted`` is none of what Task says. ValueError: An entry of unknown names, or
            of names that are not written one behind the other.
    """
    if wanted is None or wanted is False:
        return None
    entries = {name: name for name in parts} if wanted is True else wanted
    if not isinstance(entries, Mapping) or not entries:
        raise TypeError(
            f"{owner}.observation_dict: expected True, or a dict such as "
            f"{{'policy': ('joints', 'gyro')}}, got {wanted!r}"
        )
    return ObsViews({name: _view(name, names, parts, owner) for name, names in entries.items()})


def _view(entry: Any, names: Any, parts: Mapping[str, Part], owner: str) -> ObsView:
    place = f"{owner}.observation_dict[{entry!r}]"
    if not isinstance(entry, str):
        raise TypeError(f"{place}: expected a name")
    if isinstance(names, str):
        names = (names,)
    if not isinstance(names, tuple | list) or not names:
        raise TypeError(f"{place}: expected a name or several, got {names!r}")
    order = list(parts)
    for name in names:
        if name not in parts:
            raise ValueError(f"{place}: no obs[{name!r}]; observation writes {', '.join(order)}")
    start = order.index(names[0])
    if order[start : start + len(names)] != list(names):
        raise ValueError(
            f"{place}: expected names that observation writes one behind the other, got "
            f"{', '.join(names)}; it writes {', '.join(order)}"
        )
    first = parts[names[0]]
    if len(names) == 1:
        return ObsView(first.offset, first.shape or (1,))
    return ObsView(first.offset, (sum(parts[name].size for name in names),))


def info_parts(
    of_reset: Mapping[str, NDArray[Any]], of_step: Mapping[str, NDArray[Any]], owner: str
) -> dict[str, Part]:
    """The layout of the infos: those of a step, among them those of a reset.

    Raises:
        ValueError: Reset reports one that step does not, or of another size.
    """
    for name, array in of_reset.items():
        if name not in of_step:
            raise ValueError(f"{owner}: info[{name!r}] is written by reset and not by step")
        if array.size != of_step[name].size:
            raise ValueError(
                f"{owner}: info[{name!r}] has {array.size} numbers in reset and "
                f"{of_step[name].size} in step"
            )
    parts, offset = {}, 0
    for name in [*of_reset, *(n for n in of_step if n not in of_reset)]:
        array = of_step[name]
        if array.ndim > 1:
            raise ValueError(
                f"{owner}: info[{name!r}]: expected a number or a vector, got shape {array.shape}"
            )
        kinds = {"b": "int64", "i": "int64", "u": "int64", "f": "float64"}
        dtype = "float32" if array.dtype == np.float32 else kinds[array.dtype.kind]
        parts[name] = Part(offset, array.shape, dtype, always=name in of_reset)
        offset += array.size
    return parts
