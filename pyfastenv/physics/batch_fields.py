"""Names of the fields that a batch of simulations binds and expands, and what it says of others."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import Any

import mujoco
import numpy as np

from pyfastenv import _core

# MjData's fields that are parts of a simulation's row, and the bits of mjtState they go by.
STATE_FIELDS: dict[str, int] = {
    name: int(getattr(mujoco.mjtState, "mjSTATE_" + bit))
    for name, bit in {
        "time": "TIME",
        "qpos": "QPOS",
        "qvel": "QVEL",
        "act": "ACT",
        "history": "HISTORY",
        "qacc_warmstart": "WARMSTART",
        "ctrl": "CTRL",
        "qfrc_applied": "QFRC_APPLIED",
        "xfrc_applied": "XFRC_APPLIED",
        "eq_active": "EQ_ACTIVE",
        "mocap_pos": "MOCAP_POS",
        "mocap_quat": "MOCAP_QUAT",
        "userdata": "USERDATA",
        "plugin_state": "PLUGIN",
        "plastic": "PLASTIC",
    }.items()
    if hasattr(mujoco.mjtState, "mjSTATE_" + bit)
}
# MjData's numbers, which are no arrays, that a batch copies out.
_COUNTS = ("nA", "nJ", "ncon", "ne", "nefc", "nf", "nidof", "nisland", "nl")
# MjModel's arrays that all simulations share: assets, and trees over them.
_ASSETS = ("mesh_", "hfield_", "tex_", "skin_", "oct_", "bvh_")


def template(data: Any, name: str) -> np.ndarray[Any, Any] | None:
    """A field of MjData as an array whose shape and dtype are one simulation's; None for others."""
    value = getattr(data, name, None)
    if isinstance(value, np.ndarray):
        return value
    if name == "time":
        return np.zeros(())
    return np.zeros((), np.int32) if name in _COUNTS and isinstance(value, int) else None


def _find_names() -> tuple[frozenset[str], frozenset[str]]:
    model = mujoco.MjModel.from_xml_string("<mujoco/>")
    data, address = mujoco.MjData(model), model._address
    of_data = {name for name in _public(data) if template(data, name) is not None}
    of_model = {
        name
        for name in _public(model)
        if isinstance(getattr(model, name), np.ndarray)
        and (name == "bvh_aabb" or not name.startswith(_ASSETS))
    }
    options = {"opt." + name for name in _public(model.opt)}
    return (
        frozenset(n for n in of_data if _core.data_field_size(address, n) is not None),
        frozenset(n for n in of_model | options if _core.model_field_size(address, n) is not None),
    )


def _public(struct: Any) -> list[str]:
    return [name for name in dir(struct) if not name.startswith("_")]


DATA_FIELDS, MODEL_FIELDS = _find_names()


def not_bindable(data: Any, name: str) -> ValueError:
    """The error for a name that is no field of MjData which a batch binds or records."""
    if name in MODEL_FIELDS:
        return ValueError(f"{name} is an MjModel field: use expand({name!r})")
    value = getattr(data, name, None)
    if isinstance(value, np.ndarray):
        return ValueError(
            f"{name} is in the arena, where its size changes from step to step: it has no array"
        )
    if isinstance(value, int):
        return ValueError(
            f"{name} is not one of the MjData scalars bind() accepts: {', '.join(_COUNTS)}"
        )
    return ValueError(f"{name} is no field of MjData that can be bound{hint(name, DATA_FIELDS)}")


def not_expandable(model: Any, name: str) -> ValueError:
    """The error for a name that is no field of MjModel which a batch expands."""
    if name in DATA_FIELDS:
        return ValueError(f"{name} is an MjData field: use bind({name!r})")
    if isinstance(getattr(model, name, None), np.ndarray):
        return ValueError(f"{name} is asset data, which all simulations share")
    return ValueError(f"{name} is no field of MjModel to expand{hint(name, MODEL_FIELDS)}")


def not_writable(name: str) -> ValueError:
    """The error for writing an output."""
    return ValueError(
        f"{name} is computed by every call: write fields of the state (qpos, ctrl, …), or expand()"
    )


def hint(name: str, names: Iterable[str]) -> str:
    """Where a name belongs, or which of ``names`` may be meant; empty if nobody knows."""
    if name in MODEL_FIELDS:
        return f": it is an MjModel field, use expand({name!r})"
    if f"opt.{name}" in MODEL_FIELDS:
        return f": it is an option, use expand('opt.{name}')"
    close = difflib.get_close_matches(name, list(names), n=3)
    return f" (did you mean {' or '.join(map(repr, close))}?)" if close else ""
