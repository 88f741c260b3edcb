"""``data``, ``self.model`` and what they name, compiled: MuJoCo's own vocabulary on raw structs."""

from __future__ import annotations

import operator
from typing import Any

import mujoco
import numpy as np
from numba.core import cgutils, errors, types
from numba.core.imputils import lower_builtin, lower_getattr_generic, lower_setattr_generic
from numba.core.typing.templates import AbstractTemplate, infer_global, signature

from pyfastenv.tasks.compiler.frame import (
    LAYOUTS,
    ContactsType,
    ContactType,
    DataType,
    ModelType,
    NamedType,
    OptionType,
    array_type,
    attributes_of,
    member,
)
from pyfastenv.tasks.compiler.numba_internals import (
    BYTES,
    F64,
    I32,
    I64,
    call_symbol,
    check_status,
    constant,
    load,
    make_view,
    raise_if,
    store,
)
from pyfastenv.tasks.frontend.vocabulary import (
    EXTERNAL_FORCES,
    MOTION,
    NEVER_KNOWN,
    OF_ACCELERATIONS,
    OF_SUBTREE_SENSORS,
    STATE,
    StaleRead,
)

KINDS = ("body", "joint", "geom", "site", "sensor", "actuator", "tendon", "camera")
# how mjModel's arrays of a kind begin, and how many rows they have
_MODEL = {
    "body": (("body_", "nbody"),),
    "joint": (("jnt_", "njnt"), ("dof_", "nv")),
    "geom": (("geom_", "ngeom"),),
    "site": (("site_", "nsite"),),
    "sensor": (("sensor_", "nsensor"),),
    "actuator": (("actuator_", "nu"),),
    "tendon": (("tendon_", "ntendon"),),
    "camera": (("cam_", "ncam"),),
}
# the same for mjData, whose attributes of a kind drop the beginning
_DATA = {
    "body": ("",),
    "joint": ("",),
    "geom": ("geom_",),
    "site": ("site_",),
    "sensor": (),
    "actuator": ("", "actuator_"),
    "tendon": ("ten_",),
    "camera": ("cam_",),
}
_QPOS = {0: 7, 1: 4, 2: 1, 3: 1}  # by mjtJoint
_DOFS = {0: 6, 1: 3, 2: 1, 3: 1}


# what has been read of mjData beyond its state since the last clear(): lanes must compute it
READS: set[str] = set()


FRESH: dict[str, int] = LAYOUTS["fresh"]
# what to say of what mj_step1, or an engine call in the place of simulate, has not computed
_MISSING = {
    "accelerations": "is computed by mj_step2, which has not run after mj_step1: what stands there "
    "is another environment's; call self.simulate or mujoco.mj_forward before",
    "row_forces": "are forces of contacts that mj_step1 has found (up_to_date = True has it run "
    "after self.simulate), and nothing has computed them yet; call mujoco.mj_forward before, or "
    "do without up_to_date",
    "body_forces": "is computed by self.simulate alone (external_forces = True): what stands there "
    "is another environment's",
    "whole": "is computed by mujoco.mj_step1 or mj_forward, which must come before it",
}


def need_fresh(context: Any, builder: Any, frame: Any, name: str, what: str, *parts: str) -> None:
    """Raises where a derived quantity is read before it has been computed for this environment.

    ``parts``: of FRESH, which it belongs to besides the places.
    """
    READS.add(name)
    _need_bit(
        context,
        builder,
        frame,
        "places",
        f"{what} is read before self.simulate (or mj_forward), but only the state is known "
        f"then; keep what you need of the last step in a memory()",
    )
    for part in parts:
        need_part(context, builder, frame, part, what)


def need_part(context: Any, builder: Any, frame: Any, part: str, what: str) -> None:
    """Raises where a part of FRESH is missing."""
    _need_bit(context, builder, frame, part, f"{what} {_MISSING[part]}")


def _need_bit(context: Any, builder: Any, frame: Any, part: str, message: str) -> None:
    bit = builder.and_(member(builder, frame, "fresh", I64), constant(FRESH[part]))
    stale = builder.icmp_signed("==", bit, constant(0))
    raise_if(context, builder, stale, StaleRead, message)


def _parts_of(model: Any, name: str, sensor: int | None = None) -> tuple[str, ...]:
    """Which of FRESH a quantity of mjData belongs to, besides the places."""
    if name in OF_ACCELERATIONS:
        return ("accelerations",)
    if name in EXTERNAL_FORCES:
        return ("accelerations", "body_forces")
    if name == "sensordata":
        stages = model.sensor_needstage if sensor is None else model.sensor_needstage[sensor]
        if np.any(stages == int(mujoco.mjtStage.mjSTAGE_ACC)):
            return ("accelerations",)
    return ()


def _check_known(model: Any, name: str) -> None:
    """Refuses a quantity of mjData that is not always this environment's and this step's."""
    if name in NEVER_KNOWN:
        raise errors.TypingError(f"data.{name} cannot be read: {NEVER_KNOWN[name]}")
    sensors = (mujoco.mjtSensor.mjSENS_SUBTREELINVEL, mujoco.mjtSensor.mjSENS_SUBTREEANGMOM)
    if (
        name in OF_SUBTREE_SENSORS
        and not np.isin(model.sensor_type, [int(sensor) for sensor in sensors]).any()
    ):
        raise errors.TypingError(
            f"data.{name} is only computed for a sensor of it: add a subtreelinvel or "
            f"subtreeangmom to the model"
        )


def need_loaded(context: Any, builder: Any, frame: Any, name: str) -> None:
    """Has the pool load a quantity of the state that is not the motion."""
    if name in MOTION:
        return
    # simulate has set the controls
    known = builder.icmp_signed("!=", member(builder, frame, "fresh", I64), constant(0))
    missing = builder.not_(known) if name == "ctrl" else cgutils.true_bit
    with builder.if_then(missing):
        status = call_symbol(builder, "pyfastenv_load_state", I32, [frame])
        check_status(context, builder, status)


def need(
    context: Any, builder: Any, frame: Any, name: str, what: str, parts: tuple[str, ...]
) -> None:
    """One of the two, before a quantity of mjData is read."""
    if name in STATE:
        need_loaded(context, builder, frame, name)
    else:
        need_fresh(context, builder, frame, name, what, *parts)


# ---- data ----------------------------------------------------------------------------------------


def _number(builder: Any, base: Any, offset: int, dtype: str) -> Any:
    """A number of a struct's, in float64 or int64."""
    if dtype == "float64":
        return load(builder, base, offset, F64)
    return builder.sext(load(builder, base, offset, I32), I64)


def _is_writable(data: Any, name: str) -> bool:
    return data.moves and name in STATE


@attributes_of(DataType)
def _type_of_data(kind: Any, name: str) -> Any:
    if name in LAYOUTS["data_numbers"]:
        real = LAYOUTS["data_numbers"][name][1] == "float64"
        return types.float64 if real else types.int64
    if name == "contact":
        return ContactsType()
    if name in KINDS:
        return _by_name(kind, name)
    if name not in LAYOUTS["data"]:
        return None
    _check_known(kind.model, name)
    dtype = LAYOUTS["data"][name][1]
    return array_type(dtype, getattr(kind.sample, name).ndim, readonly=not _is_writable(kind, name))


@lower_getattr_generic(DataType)
def _data_attribute(context: Any, builder: Any, kind: Any, frame: Any, name: str) -> Any:
    need(context, builder, frame, name, f"data.{name}", _parts_of(kind.model, name))
    if name == "contact":
        return frame
    data = member(builder, frame, "data")
    if name in LAYOUTS["data_numbers"]:
        return _number(builder, data, *LAYOUTS["data_numbers"][name][:2])
    offset, dtype, _ = LAYOUTS["data"][name]
    shape = getattr(kind.sample, name).shape
    pointer = load(builder, data, offset, BYTES)
    return make_view(context, builder, array_type(dtype, len(shape)), pointer, shape)


@lower_setattr_generic(DataType)
def _set_data_attribute(context: Any, builder: Any, sig: Any, args: Any, name: str) -> None:
    if name != "time":
        raise errors.TypingError(f"data.{name} cannot be set; write data.{name}[:] = … (or [i])")
    if not sig.args[0].moves:
        raise errors.TypingError("control writes data.time, but it may only write ctrl")
    value = context.cast(builder, args[1], sig.args[1], types.float64)
    offset = LAYOUTS["data_numbers"][name][0]
    store(builder, member(builder, args[0], "data"), offset, value)


# ---- data.contact --------------------------------------------------------------------------------


@infer_global(operator.getitem)
class _GetContact(AbstractTemplate):
    def generic(self, args: Any, kws: Any) -> Any:
        if isinstance(args[0], ContactsType) and isinstance(args[1], types.Integer):
            return signature(ContactType(), args[0], types.int64)
        return None


@lower_builtin(operator.getitem, ContactsType, types.Integer)
def _contact(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    data = member(builder, args[0], "data")
    count = _number(builder, data, *LAYOUTS["data_numbers"]["ncon"][:2])
    outside = builder.icmp_unsigned(">=", args[1], count)
    raise_if(context, builder, outside, IndexError, "data.contact: index out of range")
    first = load(builder, data, LAYOUTS["data"]["contact"][0], BYTES)
    return builder.gep(first, [builder.mul(args[1], constant(LAYOUTS["contact_bytes"]))])


@attributes_of(ContactType)
def _type_of_contact(kind: Any, name: str) -> Any:
    if name not in LAYOUTS["contact"]:
        return None
    _, dtype, size = LAYOUTS["contact"][name]
    if size:
        return array_type(dtype, 1, readonly=True)
    return types.float64 if dtype == "float64" else types.int64


@lower_getattr_generic(ContactType)
def _contact_attribute(context: Any, builder: Any, kind: Any, contact: Any, name: str) -> Any:
    offset, dtype, size = LAYOUTS["contact"][name]
    if size:
        pointer = builder.gep(contact, [constant(offset)])
        return make_view(context, builder, array_type(dtype, 1), pointer, (size,))
    return _number(builder, contact, offset, dtype)


# ---- data.body("torso"), self.model.geom("floor") ------------------------------------------------


def _by_name(owner: Any, kind: str) -> Any:
    """The type of data.body, which resolves names while it is compiled."""
    what = "data" if isinstance(owner, DataType) else "self.model"

    class Method(AbstractTemplate):
        key = ("pyfastenv", kind)
        prefer_literal = True

        def generic(self, args: Any, kws: Any) -> Any:
            literal = args[0] if len(args) == 1 and not kws else None
            if not isinstance(literal, types.StringLiteral | types.IntegerLiteral):
                raise errors.TypingError(
                    f"{what}.{kind}(…): expected a name in quotes, or a whole number, that stands "
                    f"there; look names up in setup and use their ids: self.foot = "
                    f"self.model.{kind}(name).id"
                )
            try:
                index = getattr(owner.model, kind)(literal.literal_value).id
            except (KeyError, IndexError) as error:
                raise errors.TypingError(f"{what}.{kind}: {error.args[0]}") from None
            return signature(NamedType(owner, kind, index), literal, recvr=owner)

    return types.BoundFunction(Method, owner)


def _named(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    return args[0]


for _kind in KINDS:
    for _owner in (DataType, ModelType):
        for _literal in (types.StringLiteral, types.IntegerLiteral):
            lower_builtin(("pyfastenv", _kind), _owner, _literal)(_named)


def _place(kind: Any, name: str) -> tuple[str, int, tuple[int, ...]] | None:
    """The array in which a named attribute stands, the first number and the shape."""
    model, index = kind.owner.model, kind.index
    if isinstance(kind.owner, ModelType):
        for prefix, rows in _MODEL[kind.kind]:
            array = getattr(model, prefix + name, None)
            if not isinstance(array, np.ndarray) or prefix + name not in LAYOUTS["model"]:
                continue
            if rows == "nv":
                return _dofs(model, index, prefix + name, array)
            return prefix + name, index * int(np.prod(array.shape[1:])), array.shape[1:] or (1,)
        return None
    if kind.kind == "sensor":
        if name != "data":
            return None
        return "sensordata", int(model.sensor_adr[index]), (int(model.sensor_dim[index]),)
    if kind.kind == "joint" and name == "qpos":
        return "qpos", int(model.jnt_qposadr[index]), (_QPOS[int(model.jnt_type[index])],)
    for prefix in _DATA[kind.kind]:
        array = getattr(kind.owner.sample, prefix + name, None)
        if not isinstance(array, np.ndarray) or prefix + name not in LAYOUTS["data"]:
            continue
        of_dofs = kind.kind == "joint" and name not in ("xanchor", "xaxis")
        count = model.nv if of_dofs else getattr(model, _MODEL[kind.kind][0][1])
        if array.ndim == 0 or array.shape[0] != count:
            continue
        if of_dofs:
            return _dofs(model, index, prefix + name, array)
        return prefix + name, index * int(np.prod(array.shape[1:])), array.shape[1:] or (1,)
    return None


def _dofs(model: Any, joint: int, name: str, array: Any) -> tuple[str, int, tuple[int, ...]]:
    width = int(np.prod(array.shape[1:]))
    first = int(model.jnt_dofadr[joint]) * width
    return name, first, (_DOFS[int(model.jnt_type[joint])], *array.shape[1:])


@attributes_of(NamedType)
def _type_of_named(kind: Any, name: str) -> Any:
    if name == "id":
        return types.int64
    place = _place(kind, name)
    if place is None:
        return None
    in_model = isinstance(kind.owner, ModelType)
    if not in_model:
        _check_known(kind.owner.model, place[0])
    dtype = LAYOUTS["model" if in_model else "data"][place[0]][1]
    writable = place[0] in kind.owner.own if in_model else _is_writable(kind.owner, place[0])
    return array_type(dtype, len(place[2]), readonly=not writable)


@lower_getattr_generic(NamedType)
def _named_attribute(context: Any, builder: Any, kind: Any, frame: Any, name: str) -> Any:
    if name == "id":
        return constant(kind.index)
    place = _place(kind, name)
    assert place is not None  # typed above
    struct = "model" if isinstance(kind.owner, ModelType) else "data"
    if struct == "data":
        sensor = kind.index if kind.kind == "sensor" else None
        parts = _parts_of(kind.owner.model, place[0], sensor)
        need(context, builder, frame, place[0], f"data.{kind.kind}(…).{name}", parts)
    offset, dtype, _ = LAYOUTS[struct][place[0]]
    pointer = load(builder, member(builder, frame, struct), offset, BYTES)
    item = np.dtype(dtype).itemsize
    pointer = builder.gep(pointer, [constant(item * place[1])])
    return make_view(context, builder, array_type(dtype, len(place[2])), pointer, place[2])


# ---- self.model ----------------------------------------------------------------------------------


@attributes_of(ModelType)
def _type_of_model(kind: Any, name: str) -> Any:
    if name == "opt":
        return OptionType(kind.model)
    if name in KINDS:
        return _by_name(kind, name)
    value = getattr(kind.model, name, None)
    if name in LAYOUTS["model"] and isinstance(value, np.ndarray):
        dtype, readonly = LAYOUTS["model"][name][1], name not in kind.own
        return array_type(dtype, value.ndim, readonly=readonly)
    return types.int64 if isinstance(value, int) else None


@lower_getattr_generic(ModelType)
def _model_attribute(context: Any, builder: Any, kind: Any, frame: Any, name: str) -> Any:
    if name == "opt":
        return frame
    value = getattr(kind.model, name)
    if name not in LAYOUTS["model"]:
        return constant(value)
    offset, dtype, _ = LAYOUTS["model"][name]
    pointer = load(builder, member(builder, frame, "model"), offset, BYTES)
    return make_view(context, builder, array_type(dtype, value.ndim), pointer, value.shape)


@attributes_of(OptionType)
def _type_of_option(kind: Any, name: str) -> Any:
    value = getattr(kind.model.opt, name, None)
    if isinstance(value, np.ndarray):
        return array_type("float64", 1, readonly=True) if name in LAYOUTS["option"] else None
    return {float: types.float64, int: types.int64}.get(type(value))


@lower_getattr_generic(OptionType)
def _option_attribute(context: Any, builder: Any, kind: Any, frame: Any, name: str) -> Any:
    value = getattr(kind.model.opt, name)
    if name not in LAYOUTS["option"]:
        real = isinstance(value, float)
        return context.get_constant(types.float64 if real else types.int64, value)
    offset, _, size = LAYOUTS["option"][name]
    pointer = builder.gep(member(builder, frame, "model"), [constant(offset)])
    if not size:
        return load(builder, pointer, 0, F64)
    return make_view(context, builder, array_type("float64", 1, readonly=True), pointer, (size,))
