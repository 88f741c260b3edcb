"""Constants that ``mj_setConst`` derives, for every simulation from its own model fields."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping
from typing import Any

import mujoco
import numpy as np
from numpy.typing import NDArray

from pyfastenv import _core
from pyfastenv.physics.batch_fields import MODEL_FIELDS

_INTEGERS = {1: np.uint8, 4: np.int32, 8: np.int64}


def write_fields(model: Any, fields: Mapping[str, NDArray[Any]], sim: int) -> None:
    """Writes a simulation's own values into a model.

    Args:
        model: MjModel.
        fields: (nsim, …) by name of MjModel's field, as :func:`repeated` gives them.
        sim: The simulation.
    """
    for name, values in fields.items():
        _core.write_model_field(model._address, name, values[sim : sim + 1])


class Constants:
    """Derives constants from the own fields of one simulation after the other.

    Attributes:
        values: (nsim, …) by field of MjModel, of those in which some simulation differs from the
            model.
    """

    def __init__(self, model: Any, nsim: int):
        self._model = model
        self._nsim = nsim
        self.values: dict[str, NDArray[Any]] = {}

    def derive(
        self, sims: Iterable[int], expanded: Mapping[str, NDArray[Any]]
    ) -> list[tuple[int, str]]:
        """Runs ``mj_setConst`` on the models of these simulations.

        Args:
            sims: Which.
            expanded: (nsim, …) by field, which simulations have their own of; what is derived of
                these is written into them.

        Returns:
            Simulation and message of those in which MuJoCo raised, whose constants stay.
        """
        arrays, counts = derived_names(self._model)
        derived = {name: self._values(name) for name in (*arrays, *counts) if name not in expanded}
        wanted = {**derived, **{name: expanded[name] for name in arrays if name in expanded}}
        # the last simulation's constants are in the scratch model, and some are read as well
        own = {name: wanted[name] for name in arrays} | dict(expanded)
        failures = []
        scratch = data = None
        for sim in sims:
            if scratch is None:
                scratch = copy.copy(self._model)
                data = mujoco.MjData(scratch)
            write_fields(scratch, own, sim)
            try:
                mujoco.mj_setConst(scratch, data)
            except mujoco.FatalError as error:
                failures.append((sim, str(error)))
                scratch = None
                continue
            for name, values in wanted.items():
                result = getattr(scratch, name)
                values[sim] = result[: values.shape[1]] if values.ndim > 1 else result
        self.values = {
            name: values for name, values in derived.items() if self._differs(name, values)
        }
        return failures

    def _values(self, name: str) -> NDArray[Any]:
        """Simulations' values of a field, or the model's for all of them."""
        return self.values[name] if name in self.values else repeated(self._model, name, self._nsim)

    def _differs(self, name: str, values: NDArray[Any]) -> bool:
        shared = np.asarray(getattr(self._model, name))
        return bool((values != (shared[: values.shape[1]] if shared.ndim else shared)).any())


def repeated(model: Any, name: str, nsim: int) -> NDArray[Any]:
    """The model's value of a field for every simulation, (nsim, …), to be written.

    Of ``bvh_aabb`` these are the volumes of bodies alone; options are float64 or int32.
    """
    size = _core.model_field_size(model._address, name)
    assert size is not None
    value = getattr(model.opt, name[4:]) if name.startswith("opt.") else getattr(model, name)
    array = np.asarray(value)
    if not isinstance(value, np.ndarray):
        array = array.astype(np.float64 if array.dtype.kind == "f" else _INTEGERS[size])
    if name == "bvh_aabb":
        array = array[: size // array[:1].nbytes if len(array) else 0]
    return np.array(np.broadcast_to(array, (nsim, *array.shape)), order="C")


def derived_names(model: Any) -> tuple[list[str], list[str]]:
    """Arrays and counts that ``mj_setConst`` derives; before MuJoCo 4.0 that may be any array."""
    told = getattr(mujoco.MjModel, "_setconst_outputs", None)
    arrays = told or sorted(name for name in MODEL_FIELDS if not name.startswith("opt."))
    counts = getattr(mujoco.MjModel, "_setconst_scalars", ())
    return [name for name in arrays if getattr(model, name).size], list(counts)
