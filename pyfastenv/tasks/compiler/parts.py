"""``self``, ``obs``, ``info``, ``rng`` and what the pool does for a method, compiled."""

from __future__ import annotations

from typing import Any

from numba.core import cgutils, errors, types
from numba.core.extending import intrinsic, overload_method
from numba.core.imputils import lower_builtin, lower_getattr_generic, lower_setattr_generic
from numba.core.typing.templates import AbstractTemplate, infer, signature

from pyfastenv.tasks.compiler.frame import (
    LAYOUTS,
    ModelType,
    PartsType,
    SelfType,
    array_type,
    attributes_of,
    is_absent,
    member,
    write_numbers,
)
from pyfastenv.tasks.compiler.numba_internals import (
    BYTES,
    F64,
    I32,
    I64,
    OPTIONS,
    call_symbol,
    check_status,
    constant,
    load,
    make_view,
    raise_if,
    store,
)
from pyfastenv.tasks.language.layout import WHOLE

# ---- self ----------------------------------------------------------------------------------------


@attributes_of(SelfType)
def _type_of_self(kind: Any, name: str) -> Any:
    if name == "model":
        return ModelType(kind.model, kind.own)
    field = kind.fields.get(name)
    if field is None:
        return None
    if field.shape is not None:
        writable = field.section == "memory" and kind.remembers
        return array_type(field.kind, len(field.shape), readonly=not writable)
    return {"float64": types.float64, "int64": types.int64, "bool": types.boolean}[field.kind]


@lower_getattr_generic(SelfType)
def _self_attribute(context: Any, builder: Any, kind: Any, frame: Any, name: str) -> Any:
    if name == "model":
        return frame
    field = kind.fields[name]
    place = builder.gep(member(builder, frame, field.section), [constant(8 * field.offset)])
    if field.shape is not None:
        view = array_type(field.kind, len(field.shape))
        return make_view(context, builder, view, place, field.shape)
    if field.kind == "float64":
        return load(builder, place, 0, F64)
    number = load(builder, place, 0, I64)
    return number if field.kind == "int64" else builder.icmp_signed("!=", number, constant(0))


@lower_setattr_generic(SelfType)
def _set_self_attribute(context: Any, builder: Any, sig: Any, args: Any, name: str) -> None:
    kind, value_type = sig.args
    field = kind.fields[name]  # a memory: pyfastenv.tasks.frontend.sources refuses the others
    value = context.cast(builder, args[1], value_type, types.float64)
    store(builder, member(builder, args[0], field.section), 8 * field.offset, value)


# ---- obs["name"] = numbers, info["name"] = numbers -----------------------------------------------


@infer
class _SetPart(AbstractTemplate):
    key = "static_setitem"

    def generic(self, args: Any, kws: Any) -> Any:
        target, name, value = args
        if isinstance(target, PartsType) and isinstance(name, str):
            part = target.parts.get(name)
            if part is not None and part.is_whole and _has_floats(value):
                raise errors.TypingError(f"{target.what}[{name!r}]: {WHOLE}")
            return signature(types.void, target, types.literal(name), value)
        return None


def _has_floats(kind: Any) -> bool:
    if isinstance(kind, types.BaseTuple):
        return any(_has_floats(item) for item in kind)
    return isinstance(getattr(kind, "dtype", kind), types.Float)


@lower_builtin("static_setitem", PartsType, types.StringLiteral, types.Any)
def _set_part(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    kind, literal, value_type = sig.args
    name = literal.literal_value
    part = kind.parts.get(name)
    what = f"{kind.what}[{name!r}]"
    if part is None:
        message = f"{what} was not written in the first run: write it always"
        raise_if(context, builder, cgutils.true_bit, KeyError, message)
        return context.get_dummy_value()
    target = builder.bitcast(member(builder, args[0], kind.what), F64.as_pointer())
    target = builder.gep(target, [constant(part.offset)])
    write_numbers(context, builder, value_type, args[2], part.size, target, what)
    return context.get_dummy_value()


# ---- self.simulate -------------------------------------------------------------------------------


@intrinsic
def _simulate(typing_context: Any, frame: Any, data: Any, ctrl: Any, steps: Any) -> Any:
    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        _, data_type, ctrl_type, steps_type = sig.args
        if not is_absent(ctrl_type):
            offset = LAYOUTS["data"]["ctrl"][0]
            target = load(builder, member(builder, args[0], "data"), offset, F64.as_pointer())
            size = data_type.model.nu
            # the controls may be a view of where they are written
            given = cgutils.alloca_once(builder, F64, size=constant(max(size, 1)))
            if isinstance(ctrl_type, types.Number):  # as in data.ctrl[:] = number
                value = context.cast(builder, args[2], ctrl_type, types.float64)
                for i in range(size):
                    builder.store(value, builder.gep(given, [constant(i)]))
            else:
                write_numbers(
                    context, builder, ctrl_type, args[2], size, given, "self.simulate: ctrl"
                )
            cgutils.raw_memcpy(builder, target, given, constant(size), constant(8))
        count = context.cast(builder, args[3], steps_type, types.int64)
        status = call_symbol(builder, "pyfastenv_simulate", I32, [args[0], count])
        check_status(context, builder, status)
        return context.get_dummy_value()

    return signature(types.void, frame, data, ctrl, steps), codegen


@overload_method(SelfType, "simulate", jit_options=OPTIONS)
def _overload_simulate(self, data, ctrl=None, nstep=0):
    if is_absent(ctrl):
        return lambda self, data, ctrl=None, nstep=0: _simulate(self, data, None, nstep)

    def with_controls(self, data, ctrl=None, nstep=0):
        _simulate(self, data, ctrl, nstep if nstep > 0 else self.frame_skip)

    return with_controls


# ---- what a method is handed ---------------------------------------------------------------------


def cast_frame(kind: Any) -> Any:
    """frame -> the same address as another type."""

    @intrinsic
    def cast(typing_context: Any, frame: Any) -> Any:
        return signature(kind, frame), lambda context, builder, sig, args: args[0]

    return cast


def action_view(dtype: str | None, size: int) -> Any:
    """frame -> the action: a vector, or an integer if ``dtype`` is None."""
    if dtype is not None:
        return vector_of("action", array_type(dtype, 1, readonly=True), size)

    @intrinsic
    def action(typing_context: Any, frame: Any) -> Any:
        def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            return load(builder, member(builder, args[0], "action", BYTES), 0, I64)

        return signature(types.int64, frame), codegen

    return action


def vector_of(name: str, kind: Any, size: int) -> Any:
    """frame -> a vector that it points to."""

    @intrinsic
    def vector(typing_context: Any, frame: Any) -> Any:
        def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            return make_view(context, builder, kind, member(builder, args[0], name, BYTES), (size,))

        return signature(kind, frame), codegen

    return vector


def view_of(field: str, kind: Any, shape: tuple[int, ...]) -> Any:
    """frame -> an array of mjData."""

    @intrinsic
    def data_view(typing_context: Any, frame: Any) -> Any:
        def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            data = member(builder, args[0], "data")
            pointer = load(builder, data, LAYOUTS["data"][field][0], BYTES)
            return make_view(context, builder, kind, pointer, shape)

        return signature(kind, frame), codegen

    return data_view


@intrinsic
def finish(typing_context: Any, frame: Any, reward: Any, terminated: Any) -> Any:
    """Writes what step returns."""
    if not isinstance(reward, types.Number | types.Boolean) and getattr(reward, "ndim", 1) != 0:
        raise errors.TypingError(f"step must return (reward, terminated); the reward is {reward}")
    if not isinstance(terminated, types.Boolean | types.Integer):
        raise errors.TypingError(
            f"step must return (reward, terminated); terminated is {terminated}, not a bool"
        )

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        value = context.cast(builder, args[1], sig.args[1], types.float64)
        ended = context.cast(builder, args[2], sig.args[2], types.boolean)
        store(builder, args[0], LAYOUTS["frame"]["reward"], value)
        store(builder, args[0], LAYOUTS["frame"]["terminated"], builder.zext(ended, I64))
        return context.get_dummy_value()

    return signature(types.void, frame, reward, terminated), codegen
