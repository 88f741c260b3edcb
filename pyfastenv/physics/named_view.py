"""One body, joint, sensor … of all simulations of a batch, by MuJoCo's names."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from pyfastenv.physics.batch_fields import (
    DATA_FIELDS,
    MODEL_FIELDS,
    STATE_FIELDS,
    hint,
    not_writable,
)

# Kinds that MjData has nothing of.
_MODEL_ONLY = ("equality", "keyframe", "material", "numeric", "pair")
# What MjData computes where it is read, and where it would read what nobody has written yet.
_COMPUTED = (("actuator", "moment"),)


class Fields(Protocol):
    """A batch, as far as its views need it."""

    model: Any
    nsim: int

    @property
    def template_data(self) -> Any:
        """An MjData of the model."""

    @property
    def own_models(self) -> list[Any] | None:
        """The caller's model of every simulation, if there are such."""

    def bind(self, name: str) -> NDArray[Any]:
        """A field of MjData of all simulations."""

    def expand(self, name: str) -> NDArray[Any]:
        """A field of MjModel of which every simulation has its own values."""

    def is_expanded(self, name: str) -> bool:
        """Whether it has them by ``expand``."""

    def expanded(self, name: str) -> NDArray[Any] | None:
        """The same, read-only, if it has them."""


class NamedView:
    """A view is one object's slices of a batch's fields, by the names of MuJoCo's own views.

    Reading an attribute of MjData binds its field. Reading one of MjModel expands nothing:
    it is every simulation's value, read-only unless the field was expanded by ``expand``.
    Assigning writes all simulations, and expands a field of the model first.
    """

    id: int
    name: str
    _batch: Fields
    _kind: str
    _of_model: Any
    _of_data: Any

    def __init__(self, batch: Fields, kind: str, key: int | str):
        """``key``: its name or number, as for ``model.body``; KeyError if there is none."""
        of_model = getattr(batch.model, kind)(key)
        of_data = None if kind in _MODEL_ONLY else getattr(batch.template_data, kind)(key)
        self.__dict__.update(
            _batch=batch,
            _kind=kind,
            _of_model=of_model,
            _of_data=of_data,
            id=of_model.id,
            name=of_model.name,
        )

    def __getattr__(self, attribute: str) -> NDArray[Any]:
        if attribute.startswith("__"):
            raise AttributeError(attribute)
        return self._slice(attribute, write=False)

    def __setattr__(self, attribute: str, value: Any) -> None:
        if attribute in self.__dict__:
            raise AttributeError(f"{attribute} is read-only")
        self._slice(attribute, write=True)[...] = value

    def _slice(self, attribute: str, *, write: bool) -> NDArray[Any]:
        known = (self._kind, attribute) in _COMPUTED
        for view, struct, names in (
            (None if known else self._of_data, self._batch.template_data, DATA_FIELDS),
            (self._of_model, self._batch.model, MODEL_FIELDS),
        ):
            part = getattr(view, attribute, None)
            if not isinstance(part, np.ndarray):
                continue
            if part.size == 0:
                return _read_only(np.empty((self._batch.nsim, *part.shape), part.dtype))
            field = _field_of(struct, names, part)
            if field is None:
                known = True
            elif names is DATA_FIELDS:
                if write and field not in STATE_FIELDS:
                    raise not_writable(f"{self._kind} {attribute}")
                return self._cut(self._batch.bind(field), getattr(struct, field), part)
            else:
                return self._of_models(attribute, field, part, write=write)
        if known:
            raise AttributeError(
                f"{self._kind} {attribute} is not a slice of a field that can be bound or expanded"
            )
        meant = hint(attribute, {*dir(self._of_model), *dir(self._of_data)})
        raise AttributeError(f"{attribute} is not a field of a {self._kind}{meant}")

    def _of_models(
        self, attribute: str, field: str, part: NDArray[Any], *, write: bool
    ) -> NDArray[Any]:
        batch = self._batch
        if batch.own_models is not None:
            if write:
                raise ValueError(f"{field} is the caller's models': edit them, then set_models")
            own = [getattr(getattr(m, self._kind)(self.id), attribute) for m in batch.own_models]
            return _read_only(np.stack(own))
        values: NDArray[Any] | None
        if batch.is_expanded(field):
            values = batch.expand(field)
        elif write:
            if _is_structural(field, part):
                raise ValueError(f"{field} is structural: it is the same in every simulation")
            values = batch.expand(field)
        else:
            values = batch.expanded(field)
        if values is None:
            return np.broadcast_to(part, (batch.nsim, *part.shape))
        return self._cut(values, getattr(batch.model, field), part)

    def _cut(self, values: NDArray[Any], whole: NDArray[Any], part: NDArray[Any]) -> NDArray[Any]:
        """The part of every simulation's values that ``part`` is of MuJoCo's array ``whole``."""
        begin = (_address(part) - _address(whole)) // whole.itemsize
        rows = values.reshape(len(values), -1)
        return rows[:, begin : begin + part.size].reshape(len(values), *part.shape)


def _field_of(struct: Any, names: frozenset[str], part: NDArray[Any]) -> str | None:
    """Which field's memory an attribute of a view of MuJoCo's is in."""
    for name in names:
        whole = getattr(struct, name, None)
        if not isinstance(whole, np.ndarray) or whole.dtype != part.dtype:
            continue
        begin = _address(part) - _address(whole)
        if 0 <= begin <= whole.nbytes - part.nbytes:
            return name
    return None


def _address(array: NDArray[Any]) -> int:
    address: int = array.__array_interface__["data"][0]
    return address


def _is_structural(field: str, part: NDArray[Any]) -> bool:
    """Addresses, counts, numbers of other objects and types: what the model is made of."""
    ends = ("adr", "num", "id", "type")
    return part.dtype.kind in "iu" and field.endswith(ends) and not field.endswith("contype")


def _read_only(array: NDArray[Any]) -> NDArray[Any]:
    array.flags.writeable = False
    return array
