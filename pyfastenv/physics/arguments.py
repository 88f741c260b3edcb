"""From the arguments of ``mujoco.rollout.rollout`` to those of one call of the core.

What can be inferred is inferred as there: an axis of 1 stands for all rollouts, or all steps. What
is refused there is refused in the same words.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import mujoco
import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[Any]
_USER_INPUTS = int(mujoco.mjtState.mjSTATE_USER)
_FULL_PHYSICS = int(mujoco.mjtState.mjSTATE_FULLPHYSICS)


@dataclass
class Call:
    """Rollouts to run.

    Attributes:
        models: One per rollout.
        data: One per thread.
        nstep: Steps per rollout.
        control_spec: What ``control`` has, bits of mjSTATE_USER.
        initial_state: (num_rollouts or 1, nstate) float64.
        initial_warmstart: (num_rollouts or 1, nv) float64.
        control: (num_rollouts or 1, nstep or 1, ncontrol) float64.
        state: (num_rollouts, nstep, nstate) float64, written.
        sensordata: (num_rollouts, nstep, nsensordata) float64, written; None: not computed.
        copies: Arrays of the caller's that cannot be written in place, and what is to be copied
            into them.
    """

    models: list[Any]
    data: list[Any]
    nstep: int
    control_spec: int
    initial_state: Array
    initial_warmstart: Array | None
    control: Array | None
    state: Array | None
    sensordata: Array | None
    copies: list[tuple[Array, Array]]

    def __post_init__(self) -> None:
        _check_instances("data", self.data, mujoco.MjData)
        if not self.data:
            raise ValueError("The list of data instances is empty")


def as_list(name: str, value: Any, kind: type) -> list[Any]:
    """One instance, or a sequence of them, as a list."""
    if isinstance(value, kind):
        return [value]
    if isinstance(value, (str, bytes)) or not hasattr(value, "__iter__"):
        raise TypeError(
            f"{name}: expected {kind.__name__} or a sequence of them, got {type(value).__name__}"
        )
    return list(value)


def infer_call(
    model: Any,
    data: list[Any],
    initial_state: Any,
    control: Any,
    *,
    control_spec: Any,
    nstep: Any,
    initial_warmstart: Any,
    state: Any,
    sensordata: Any,
) -> Call:
    """Infers the number of rollouts and steps, and makes what is missing.

    Raises:
        ValueError: Shapes that do not fit, an unknown ``control_spec``, a number of steps that is
            none.
        TypeError: Others than MjModel and MjData.
    """
    several = not isinstance(model, mujoco.MjModel)
    models = as_list("model", model, mujoco.MjModel)
    if not models:
        raise ValueError("model: expected at least one MjModel, got none")
    _check_instances("model", models, mujoco.MjModel)
    spec = check_control_spec(control_spec)
    if nstep is not None:
        nstep = check_count("nstep", nstep, least=0)

    inputs: dict[str, Array | None] = {
        "initial_state": _as_array("initial_state", initial_state, 2),
        "initial_warmstart": _as_array("initial_warmstart", initial_warmstart, 2),
        "control": _as_array("control", control, 3),
    }
    outputs: dict[str, Array | None] = {}
    copies = []
    wanted = {"state": state, "sensordata": sensordata}
    if sensordata is False:
        del wanted["sensordata"]
    for name, given in wanted.items():
        outputs[name] = written = _as_output(name, given)
        if written is None or not isinstance(given, np.ndarray):
            continue
        if not np.may_share_memory(given, written):
            copies.append((given, written))

    num_rollouts = _common_size(0, 1, inputs | outputs)
    if several and num_rollouts == 1:
        num_rollouts = len(models)
    if several and len(models) not in (1, num_rollouts):
        raise ValueError(f"nbatch inferred as {num_rollouts} but model is length {len(models)}")
    stepped = {"control": inputs["control"]} | outputs
    nstep = _common_size(1, 1 if nstep is None else nstep, stepped)

    nstate = mujoco.mj_stateSize(models[0], _FULL_PHYSICS)
    sizes = {
        "initial_state": nstate,
        "initial_warmstart": models[0].nv,
        "control": mujoco.mj_stateSize(models[0], spec),
        "state": nstate,
        "sensordata": models[0].nsensordata,
    }
    for name, array in (inputs | outputs).items():
        if array is not None and array.shape[-1] != sizes[name]:
            raise ValueError(
                f"trailing dimension of {name} must be {sizes[name]}, got {array.shape[-1]}"
            )
    for name, array in outputs.items():
        shape = (num_rollouts, nstep, sizes[name])
        if array is None:
            outputs[name] = np.empty(shape)
        elif array.size != np.prod(shape, dtype=int) and nstep > 0:
            raise ValueError(f"{name}: expected shape {shape}, got {array.shape}")
    for name, read in inputs.items():
        # written before all rollouts have read it: a view of the outputs, tiled in mujoco.rollout
        if read is not None and any(np.may_share_memory(read, x) for x in outputs.values()):
            inputs[name] = read.copy()
    initial = inputs["initial_state"]
    if initial is None:
        raise ValueError("initial_state: expected an array, got None")
    return Call(
        models=models * num_rollouts if len(models) == 1 else models,
        data=data,
        nstep=nstep,
        control_spec=spec,
        initial_state=initial,
        initial_warmstart=inputs["initial_warmstart"],
        control=inputs["control"],
        state=outputs["state"],
        sensordata=outputs.get("sensordata"),
        copies=copies,
    )


def trusted_call(
    model: Any,
    data: list[Any],
    initial_state: Any,
    control: Any,
    *,
    control_spec: Any,
    nstep: Any,
    initial_warmstart: Any,
    state: Any,
    sensordata: Any,
) -> Call:
    """``skip_checks=True``: nothing is inferred, repeated or allocated.

    Outputs that are None are not computed. The sizes are compared all the same.

    Raises:
        ValueError: Sizes that do not fit, outputs that cannot be written in place.
        TypeError: ``model`` is not a list, ``nstep`` is missing, arguments are not what they
            should be.
    """
    if not isinstance(model, list):
        raise TypeError(
            f"model: expected a list of MjModel with skip_checks, got {type(model).__name__}"
        )
    if nstep is None:
        raise TypeError("nstep: expected an integer with skip_checks, got None")
    nstep = check_count("nstep", nstep, least=0)
    initial_state = np.ascontiguousarray(initial_state, np.float64)
    num_rollouts = len(initial_state)
    if len(model) < num_rollouts:
        raise ValueError(f"model: expected {num_rollouts} models, got {len(model)}")
    spec = check_control_spec(control_spec)
    models = model[:num_rollouts]
    _check_instances("model", models, mujoco.MjModel)
    nstate = ncontrol = nv = nsensordata = 0
    if models:
        nstate = mujoco.mj_stateSize(models[0], _FULL_PHYSICS)
        ncontrol = mujoco.mj_stateSize(models[0], spec)
        nv, nsensordata = models[0].nv, models[0].nsensordata
    return Call(
        models=models,
        data=data,
        nstep=nstep,
        control_spec=spec,
        initial_state=_reshaped("initial_state", initial_state, (num_rollouts, nstate)),
        initial_warmstart=_input("initial_warmstart", initial_warmstart, (num_rollouts, nv)),
        control=_input("control", control, (num_rollouts, nstep, ncontrol)),
        state=_in_place("state", state, (num_rollouts, nstep, nstate)),
        sensordata=_in_place(
            "sensordata",
            None if sensordata is False else sensordata,
            (num_rollouts, nstep, nsensordata),
        ),
        copies=[],
    )


def check_count(name: str, value: Any, *, least: int) -> int:
    """An integer of at least ``least``, 0 or 1; ValueError for anything else."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
        raise ValueError(f"{name} must be an integer, got {value!r}")
    if value < least:
        what = "a positive integer" if least else "non-negative"
        raise ValueError(f"{name} must be {what}, got {value}")
    return int(value)


def check_control_spec(value: Any) -> int:
    """Bits of mjSTATE_USER."""
    try:
        spec = operator.index(value)
    except TypeError:
        raise TypeError(f"control_spec: expected bits of mjtState, got {value!r}") from None
    if spec & ~_USER_INPUTS:
        raise ValueError("control_spec can only contain bits in mjSTATE_USER")
    return spec


def _check_instances(name: str, values: Sequence[Any], kind: type) -> None:
    for i, value in enumerate(values):
        if not isinstance(value, kind):
            raise TypeError(f"{name}[{i}]: expected {kind.__name__}, got {type(value).__name__}")


def _as_array(name: str, value: Any, ndim: int) -> Array | None:
    """C-contiguous float64 with ``ndim`` axes, new ones in front; a view where it can be."""
    array = _with_axes(name, value, ndim)
    return None if array is None else np.ascontiguousarray(array, dtype=np.float64)


def _as_output(name: str, value: Any) -> Array | None:
    """The same of what will be written; where it cannot be a view, its contents do not matter."""
    array = _with_axes(name, value, 3)
    if array is None:
        return None
    if not array.flags.writeable:
        raise ValueError(f"{name}: expected a writeable array, got a read-only one")
    if array.dtype.kind not in "fiubcO":
        raise ValueError(f"{name}: expected an array of numbers, got {array.dtype}")
    in_place = array.dtype == np.float64 and array.flags.carray
    return array if in_place else np.empty(array.shape)


def _with_axes(name: str, value: Any, ndim: int) -> Array | None:
    if value is None:
        return None
    if not isinstance(value, (np.ndarray, float)):
        raise ValueError(f"{name} must be a numpy array or float")
    array = np.asarray(value)
    if array.ndim > ndim:
        raise ValueError(f"{name} can have at most {ndim} dimensions")
    if array.ndim < ndim:  # else the caller's array itself, if it is fit
        array = array.reshape((1,) * (ndim - array.ndim) + array.shape)
    return array


def _common_size(axis: int, size: int, arrays: dict[str, Array | None]) -> int:
    """The size of an axis that is 1 or the same everywhere; ``size`` is a guess, 1: none."""
    for name, array in arrays.items():
        if array is None or array.shape[axis] == size:
            continue
        if size == 1:
            size = array.shape[axis]
        elif array.shape[axis] != 1:
            raise ValueError(
                f"dimension {axis} inferred as {size} but {name} has {array.shape[axis]}"
            )
    return size


def _input(name: str, value: Any, shape: tuple[int, ...]) -> Array | None:
    if value is None:
        return None
    return _reshaped(name, np.ascontiguousarray(value, np.float64), shape)


def _in_place(name: str, value: Any, shape: tuple[int, ...]) -> Array | None:
    if value is None:
        return None
    if not isinstance(value, np.ndarray) or value.dtype != np.float64 or not value.flags.carray:
        raise ValueError(
            f"{name}: expected a writeable C-contiguous float64 array with skip_checks, got "
            + (f"{value.dtype}" if isinstance(value, np.ndarray) else type(value).__name__)
        )
    return _reshaped(name, value, shape)


def _reshaped(name: str, array: Array, shape: tuple[int, ...]) -> Array:
    if array.size != np.prod(shape, dtype=int):
        raise ValueError(f"{name}: expected shape {shape}, got {array.shape}")
    return array.reshape(shape)
