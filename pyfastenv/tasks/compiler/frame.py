"""The types of what a method sees. Each value is the address of the call's TaskFrame.

Owns: the types, and how arrays of the pool's are read and written. ``physics``, ``parts`` and
``numbers`` say what can be done with them.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from numba.core import cgutils, errors, types
from numba.core.datamodel import models
from numba.core.extending import register_model
from numba.core.imputils import lower_builtin, lower_cast
from numba.core.typing.templates import AttributeTemplate, infer_getattr
from numba.cpython import slicing
from numba.np import arrayobj

from pyfastenv import _core
from pyfastenv.tasks.compiler.numba_internals import BYTES, I64, constant, load, new_array, raise_if

LAYOUTS = _core.task_struct_layouts()
DTYPES = {
    "float64": types.float64,
    "float32": types.float32,
    "int64": types.int64,
    "int32": types.int32,
    "uint8": types.uint8,
    "bool": types.boolean,
}


class FrameType(types.Type):
    """A view of the frame; ``key`` tells those of one kind apart."""

    def __init__(self, name: str, key: Any):
        self._key = (type(self).__name__, name, key)
        super().__init__(f"{name}<{abs(hash(self._key)):x}>")

    @property
    def key(self) -> Any:
        return self._key


class SelfType(FrameType):
    """``self``; ``fields``: name -> Field (see ``build``); ``own``: of the model's, writable.

    ``remembers``: whether memories are, too.
    """

    def __init__(
        self,
        name: str,
        fields: dict[str, Any],
        model: Any,
        own: frozenset[str],
        *,
        remembers: bool = True,
    ):
        self.fields, self.model, self.own, self.remembers = fields, model, own, remembers
        super().__init__(name, (tuple(fields.items()), id(model), own, remembers))


class DataType(FrameType):
    """``data``; ``sample``: an MjData of the model, for shapes; ``moves``: its state may change."""

    def __init__(self, model: Any, sample: Any, *, moves: bool = True):
        self.model, self.sample, self.moves = model, sample, moves
        super().__init__("data", (id(model), moves))


class ModelType(FrameType):
    """``self.model``; ``own``: fields that each environment has for itself."""

    def __init__(self, model: Any, own: frozenset[str]):
        self.model, self.own = model, own
        super().__init__("model", (id(model), own))


class OptionType(FrameType):
    """``self.model.opt``."""

    def __init__(self, model: Any):
        self.model = model
        super().__init__("opt", id(model))


class NamedType(FrameType):
    """``data.body("torso")``, ``self.model.geom("floor")`` and their kin."""

    def __init__(self, owner: Any, kind: str, index: int):
        self.owner, self.kind, self.index = owner, kind, index
        super().__init__(f"{kind}{index}", (owner.key, kind, index))


class ContactsType(FrameType):
    """``data.contact``."""

    def __init__(self) -> None:
        super().__init__("contacts", 0)


class ContactType(FrameType):
    """``data.contact[i]``: the address of an mjContact."""

    def __init__(self) -> None:
        super().__init__("contact", 0)


class PartsType(FrameType):
    """``obs`` and ``info``; ``parts``: name -> layout.Part."""

    def __init__(self, what: str, parts: Any):
        self.what, self.parts = what, parts
        super().__init__(
            what, tuple((name, part.offset, part.size, part.dtype) for name, part in parts.items())
        )


class RngType(FrameType):
    """``rng``."""

    def __init__(self) -> None:
        super().__init__("rng", 0)


for _type in (
    SelfType,
    DataType,
    ModelType,
    OptionType,
    NamedType,
    ContactsType,
    ContactType,
    PartsType,
    RngType,
):
    register_model(_type)(models.OpaqueModel)


class View(types.Array):
    """An array of the pool's.

    Its slices are assigned by a loop of our own: numba's way compiles the formatting of its error
    message too, half of the time that a task takes to compile.
    """


register_model(View)(models.ArrayModel)


@lower_cast(View, types.Array)
def _as_array(context: Any, builder: Any, kind: Any, wanted: Any, value: Any) -> Any:
    """Where a name may be one or the other: they are the same struct."""
    return value


def array_type(dtype: str, ndim: int, *, readonly: bool = False) -> View:
    """The type of a C-contiguous array of the pool's."""
    return View(DTYPES[dtype], ndim, "C", readonly=readonly)


def attributes_of(kind: type) -> Callable[[Callable[[Any, str], Any]], Callable[[Any, str], Any]]:
    """Registers a function of (type, name): the type of an attribute, None if there is none."""

    def register(resolve: Callable[[Any, str], Any]) -> Callable[[Any, str], Any]:
        members = {"key": kind, "generic_resolve": lambda self, owner, name: resolve(owner, name)}
        infer_getattr(type(resolve.__name__, (AttributeTemplate,), members))
        return resolve

    return register


def is_absent(kind: Any) -> bool:
    """Whether an argument is None, given or by default."""
    is_default = isinstance(kind, types.Omitted) and kind.value is None
    return kind is None or isinstance(kind, types.NoneType) or is_default


def member(builder: Any, frame: Any, name: str, kind: Any = BYTES) -> Any:
    """A member of the TaskFrame."""
    return load(builder, frame, LAYOUTS["frame"][name], kind)


@lower_builtin(operator.setitem, View, types.SliceType, types.Array)
@lower_builtin(operator.setitem, View, types.SliceType, types.Number)
def _set_slice(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    kind, slice_type, value_type = sig.args
    if kind.ndim != 1 or getattr(value_type, "ndim", 1) != 1:
        return arrayobj.setitem_array(context, builder, sig, args)
    array = context.make_array(kind)(context, builder, args[0])
    part = context.make_helper(builder, slice_type, args[1])
    slicing.guard_invalid_slice(context, builder, slice_type, part)
    slicing.fix_slice(builder, part, builder.extract_value(array.shape, 0))
    count = slicing.get_slice_length(builder, part)
    target = builder.bitcast(array.data, BYTES)
    if isinstance(value_type, types.Array):
        source = context.make_array(value_type)(context, builder, args[2])
        stride = cgutils.unpack_tuple(builder, source.strides)[0]
        base = builder.bitcast(source.data, BYTES)
        differs = builder.icmp_signed("!=", source.nitems, count)
        alone = builder.icmp_signed("==", source.nitems, constant(1))
        message = "the slice and what is assigned to it differ in length"
        wrong = builder.and_(differs, builder.not_(alone))
        raise_if(context, builder, wrong, ValueError, message)
        if value_type.dtype == kind.dtype:
            base, stride, copied = _apart(context, builder, value_type, source, array)
        stride = builder.select(alone, constant(0), stride)
    with cgutils.for_range(builder, count) as loop:
        if isinstance(value_type, types.Array):
            item = builder.gep(base, [builder.mul(loop.index, stride)])
            item = builder.bitcast(item, source.data.type)
            value = context.unpack_value(builder, value_type.dtype, item)
            value = context.cast(builder, value, value_type.dtype, kind.dtype)
        else:
            value = context.cast(builder, args[2], value_type, kind.dtype)
        index = builder.add(part.start, builder.mul(loop.index, part.step))
        place = builder.gep(target, [builder.mul(index, array.itemsize)])
        context.pack_value(builder, kind.dtype, value, builder.bitcast(place, array.data.type))
    if isinstance(value_type, types.Array) and value_type.dtype == kind.dtype:
        context.nrt.decref(builder, _packed(value_type), builder.load(copied))
    return context.get_dummy_value()


def _packed(kind: Any) -> Any:
    return types.Array(kind.dtype, 1, "C")


def _apart(context: Any, builder: Any, kind: Any, source: Any, target: Any) -> tuple[Any, Any, Any]:
    """Where to read the numbers that are written into an array, which may be theirs.

    Returns:
        The first one's address, the distance of two in bytes, and the place of a copy: empty where
        the two have nothing in common.
    """
    first = builder.ptrtoint(source.data, I64)
    stride = cgutils.unpack_tuple(builder, source.strides)[0]
    last = builder.add(first, builder.mul(stride, builder.sub(source.nitems, constant(1))))
    begin = builder.ptrtoint(target.data, I64)
    end = builder.add(begin, builder.mul(target.nitems, target.itemsize))
    backwards = builder.icmp_signed("<", last, first)
    low, high = (builder.select(backwards, *two) for two in ((last, first), (first, last)))
    before_end = builder.icmp_unsigned("<", low, end)
    behind_begin = builder.icmp_unsigned(">=", high, begin)
    step = cgutils.alloca_once_value(builder, stride)
    place = cgutils.alloca_once_value(builder, source.data)
    copied = cgutils.alloca_once(builder, context.get_value_type(_packed(kind)), zfill=True)
    with builder.if_then(builder.and_(before_end, behind_begin), likely=False):
        copy = new_array(context, builder, _packed(kind), [source.nitems])
        base = builder.bitcast(source.data, BYTES)
        with cgutils.for_range(builder, source.nitems) as loop:
            item = builder.gep(base, [builder.mul(loop.index, stride)])
            value = context.unpack_value(builder, kind.dtype, builder.bitcast(item, copy.data.type))
            context.pack_value(builder, kind.dtype, value, builder.gep(copy.data, [loop.index]))
        builder.store(copy.data, place)
        builder.store(copy.itemsize, step)
        builder.store(copy._getvalue(), copied)
    return builder.bitcast(builder.load(place), BYTES), builder.load(step), copied


def write_numbers(
    context: Any, builder: Any, value_type: Any, value: Any, size: int, target: Any, what: str
) -> None:
    """Writes a number, tuple or array as ``size`` doubles at ``target`` (double*)."""

    def put(index: Any, item: Any) -> None:
        builder.store(item, builder.gep(target, [index]))

    if isinstance(value_type, types.Array):
        array = context.make_array(value_type)(context, builder, value)
        count = constant(size)
        differs = builder.icmp_signed("!=", array.nitems, count)
        message = f"{what}: expected {size} numbers, as in the first run"
        raise_if(context, builder, differs, ValueError, message)
        if value_type.layout == "C" and value_type.dtype == types.float64:
            cgutils.raw_memcpy(builder, target, array.data, count, 8)
            return
        if value_type.layout != "C" and value_type.ndim != 1:
            raise errors.TypingError(f"{what}: expected np.ascontiguousarray(…) of it")
        strides = cgutils.unpack_tuple(builder, array.strides)
        stride = strides[0] if value_type.ndim == 1 else array.itemsize
        base = builder.bitcast(array.data, BYTES)
        with cgutils.for_range(builder, count) as loop:
            item = builder.gep(base, [builder.mul(loop.index, stride)])
            item = builder.bitcast(item, array.data.type)
            number = context.unpack_value(builder, value_type.dtype, item)
            put(loop.index, context.cast(builder, number, value_type.dtype, types.float64))
    elif isinstance(value_type, types.BaseTuple):
        if len(value_type) != size:
            raise errors.TypingError(f"{what}: expected {size} numbers, got {len(value_type)}")
        for i, kind in enumerate(value_type):
            item = builder.extract_value(value, i)
            put(constant(i), context.cast(builder, item, kind, types.float64))
    elif size == 1:
        put(constant(0), context.cast(builder, value, value_type, types.float64))
    else:
        raise errors.TypingError(f"{what}: expected {size} numbers, got one")
