"""``rng``, compiled: numpy.random.Generator's draws, number by number.

Arguments may be numbers, arrays and tuples of numbers, which are broadcast as NumPy does; the pool
draws (csrc/envs/task_draws.cc).
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import cgutils, errors, types
from numba.core.extending import intrinsic, overload_method
from numba.core.typing.templates import signature

from pyfastenv.tasks.compiler.frame import LAYOUTS, RngType, is_absent
from pyfastenv.tasks.compiler.numba_internals import (
    BYTES,
    F64,
    I64,
    OPTIONS,
    call_symbol,
    constant,
    new_array,
    raise_if,
)

_MOST_AXES: int = LAYOUTS["draws"]["most_axes"]
_WORDS: int = LAYOUTS["draws"]["words"]  # of an operand [8 bytes]
_DTYPES = {types.float64: 0, types.float32: 1, types.int64: 2, types.int32: 3, types.uint8: 4,
           types.boolean: 5}  # fmt: skip


# ---- what may be given ---------------------------------------------------------------------------


def _check_bound(what: str, name: str, kind: Any, *, whole: bool) -> None:
    """Refuses what is no number, nor an array or tuple of numbers, that NumPy reads alike."""
    given = f"rng.{what}: {name}: expected a number or an array of numbers, got {kind}"
    if isinstance(kind, types.Omitted | float):  # a default
        return
    dtype = getattr(kind, "dtype", kind)
    if isinstance(kind, types.BaseTuple):
        if not len(kind) or not all(isinstance(each, types.Number) for each in kind):
            raise errors.TypingError(given)
        dtype = types.float64 if any(isinstance(k, types.Float) for k in kind) else types.int64
    elif isinstance(kind, types.Array):
        if dtype not in _DTYPES or kind.ndim > _MOST_AXES:
            raise errors.TypingError(given)
    elif not isinstance(kind, types.Number | types.Boolean) or isinstance(kind, types.Complex):
        raise errors.TypingError(given)
    several = isinstance(kind, types.BaseTuple | types.Array)
    if whole and several and isinstance(dtype, types.Float):
        raise errors.TypingError(f"rng.{what}: {name}: expected whole numbers, got {kind}")
    if whole and dtype == types.uint64:
        raise errors.TypingError(f"rng.{what}: {name}: expected int64, got uint64")


def _axes_of(what: str, size: Any) -> int | None:
    """How many axes a size has; None if there is none."""
    if is_absent(size):
        return None
    if isinstance(size, types.Integer):
        return 1
    whole = isinstance(size, types.BaseTuple) and all(isinstance(n, types.Integer) for n in size)
    if whole and 0 < len(size) <= _MOST_AXES:
        return len(size)
    raise errors.TypingError(
        f"rng.{what}: size: expected a whole number or a tuple of them, got {size}"
    )


def _refuse_options(what: str, **options: Any) -> None:
    for name, kind in options.items():
        if not is_absent(kind):
            raise errors.TypingError(
                f"rng.{what}: {name}: compiled it draws new float64 (integers: int64); leave it out"
            )


# ---- machine code --------------------------------------------------------------------------------


def _operand(context: Any, builder: Any, kind: Any, value: Any, *, whole: bool) -> Any:
    """The address of a DrawOperand (csrc/envs/task_draws.h)."""
    place = cgutils.alloca_once(builder, ir.ArrayType(I64, _WORDS))
    words = builder.bitcast(place, I64.as_pointer())

    def put(index: int, word: Any) -> None:
        builder.store(word, builder.gep(words, [constant(index)]))

    def put_numbers(numbers: list[tuple[Any, Any]], dtype: Any) -> None:
        array = ir.ArrayType(context.get_value_type(dtype), len(numbers))
        data = cgutils.alloca_once(builder, array)
        for i, (number_kind, number) in enumerate(numbers):
            cast = context.cast(builder, number, number_kind, dtype)
            builder.store(cast, builder.gep(data, [constant(0), constant(i)]))
        put(0, builder.ptrtoint(data, I64))
        put(1, constant(_DTYPES[dtype]))

    if isinstance(kind, types.Array):
        view = context.make_array(kind)(context, builder, value)
        put(0, builder.ptrtoint(view.data, I64))
        put(1, constant(_DTYPES[kind.dtype]))
        put(2, constant(kind.ndim))
        lengths = cgutils.unpack_tuple(builder, view.shape)
        strides = cgutils.unpack_tuple(builder, view.strides)
        for axis in range(kind.ndim):
            put(3 + axis, lengths[axis])
            put(3 + _MOST_AXES + axis, strides[axis])
    elif isinstance(kind, types.BaseTuple):
        numbers = [(each, builder.extract_value(value, i)) for i, each in enumerate(kind)]
        put_numbers(numbers, types.int64 if whole else types.float64)
        put(2, constant(1))
        put(3, constant(len(kind)))
        put(3 + _MOST_AXES, constant(8))
    else:
        kept = kind.literal_type if isinstance(kind, types.Literal) else kind
        real = not whole or isinstance(kept, types.Float)
        if isinstance(kind, types.Omitted):
            real = not whole
        put_numbers([(kind, value)], types.float64 if real else types.int64)
        put(2, constant(0))
    return place


def _lengths(context: Any, builder: Any, what: str, kind: Any, value: Any) -> list[Any]:
    """The lengths that a size names, as int64."""
    kinds = list(kind) if isinstance(kind, types.BaseTuple) else [kind]
    lengths = []
    for i, each in enumerate(kinds):
        length = builder.extract_value(value, i) if isinstance(kind, types.BaseTuple) else value
        length = context.cast(builder, length, each, types.int64)
        negative = builder.icmp_signed("<", length, constant(0))
        raise_if(context, builder, negative, ValueError, f"rng.{what}: size: it is negative")
        lengths.append(length)
    return lengths


def _plain(what: str, symbol: str) -> Any:
    """(frame, size) -> a number or array of a distribution without bounds."""

    @intrinsic
    def draw(typing_context: Any, frame: Any, size: Any) -> Any:
        axes = _axes_of(what, size)
        result = types.float64 if axes is None else types.Array(types.float64, axes, "C")

        def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            def fill(target: Any, count: Any) -> None:
                call_symbol(builder, symbol, ir.VoidType(), [args[0], target, count])

            if axes is None:
                place = cgutils.alloca_once(builder, F64)
                fill(place, constant(1))
                return builder.load(place)
            lengths = _lengths(context, builder, what, sig.args[1], args[1])
            array = new_array(context, builder, result, lengths)
            fill(array.data, array.nitems)
            return array._getvalue()

        return signature(result, frame, size), codegen

    return draw


def _bounded(what: str, wrong: str, *, whole: bool) -> Any:
    """(frame, a, b, size, closed) -> a number or array of a distribution with two bounds.

    ``wrong``: what to say of bounds that NumPy refuses.
    """
    dtype = types.int64 if whole else types.float64

    def check(context: Any, builder: Any, result: Any, message: str) -> None:
        refused = builder.icmp_signed("==", result, constant(0))
        raise_if(context, builder, refused, ValueError, f"rng.{what}: {message}")

    @intrinsic
    def draw(typing_context: Any, frame: Any, a: Any, b: Any, size: Any, closed: Any) -> Any:
        def axes_of_bound(kind: Any) -> int:
            return kind.ndim if isinstance(kind, types.Array) else isinstance(kind, types.BaseTuple)

        given = _axes_of(what, size)
        axes = max(axes_of_bound(a), axes_of_bound(b))
        if whole and axes and any(isinstance(kind, types.Float) for kind in (a, b)):
            raise errors.TypingError(f"rng.{what}: expected whole numbers beside an array")
        axes = axes if given is None else given
        result = types.Array(dtype, int(axes), "C") if given is not None or axes else dtype

        def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            kinds = sig.args
            bounds = [_operand(context, builder, kinds[i], args[i], whole=whole) for i in (1, 2)]
            pointers = [builder.bitcast(bound, BYTES) for bound in bounds]
            shape = cgutils.alloca_once(builder, ir.ArrayType(I64, _MOST_AXES))
            first = builder.bitcast(shape, I64.as_pointer())
            lengths = []
            if given is not None:
                lengths = _lengths(context, builder, what, kinds[3], args[3])
                for i, length in enumerate(lengths):
                    builder.store(length, builder.gep(first, [constant(i)]))
            ending = [constant(axes), first, constant(given is not None)]
            fits = call_symbol(builder, "pyfastenv_draw_shape", I64, [*pointers, *ending])
            check(context, builder, fits, "shapes that do not go together")
            if isinstance(result, types.Array):
                if given is None:
                    lengths = [builder.load(builder.gep(first, [constant(i)])) for i in range(axes)]
                array = new_array(context, builder, result, lengths)
                target = array.data
            else:
                target = cgutils.alloca_once(builder, context.get_value_type(dtype))
            given_closed = context.cast(builder, args[4], kinds[4], types.int64)
            drawn = call_symbol(
                builder,
                f"pyfastenv_draw_{what}",
                I64,
                [args[0], *pointers, *ending, given_closed, builder.bitcast(target, BYTES)],
            )
            check(context, builder, drawn, wrong)
            return array._getvalue() if isinstance(result, types.Array) else builder.load(target)

        return signature(result, frame, a, b, size, closed), codegen

    return draw


_standard_normal = _plain("standard_normal", "pyfastenv_standard_normal")
_random = _plain("random", "pyfastenv_random")
_uniform = _bounded("uniform", "high - low is negative or no finite number", whole=False)
_normal = _bounded("normal", "scale < 0", whole=False)
_integers = _bounded("integers", "low >= high", whole=True)


# ---- methods of numpy.random.Generator -----------------------------------------------------------


@overload_method(RngType, "uniform", jit_options=OPTIONS)
def _overload_uniform(self, low=0.0, high=1.0, size=None):
    _check_bound("uniform", "low", low, whole=False)
    _check_bound("uniform", "high", high, whole=False)
    return lambda self, low=0.0, high=1.0, size=None: _uniform(self, low, high, size, False)


@overload_method(RngType, "normal", jit_options=OPTIONS)
def _overload_normal(self, loc=0.0, scale=1.0, size=None):
    _check_bound("normal", "loc", loc, whole=False)
    _check_bound("normal", "scale", scale, whole=False)
    return lambda self, loc=0.0, scale=1.0, size=None: _normal(self, loc, scale, size, False)


@overload_method(RngType, "standard_normal", jit_options=OPTIONS)
def _overload_standard_normal(self, size=None, dtype=None, out=None):
    _refuse_options("standard_normal", dtype=dtype, out=out)
    return lambda self, size=None, dtype=None, out=None: _standard_normal(self, size)


@overload_method(RngType, "random", jit_options=OPTIONS)
def _overload_random(self, size=None, dtype=None, out=None):
    _refuse_options("random", dtype=dtype, out=out)
    return lambda self, size=None, dtype=None, out=None: _random(self, size)


@overload_method(RngType, "integers", jit_options=OPTIONS)
def _overload_integers(self, low, high=None, size=None, dtype=None, endpoint=False):
    _refuse_options("integers", dtype=dtype)
    _check_bound("integers", "low", low, whole=True)
    if not is_absent(high):
        _check_bound("integers", "high", high, whole=True)

    def below(self, low, high=None, size=None, dtype=None, endpoint=False):
        return _integers(self, 0, low, size, endpoint)

    def between(self, low, high=None, size=None, dtype=None, endpoint=False):
        return _integers(self, low, high, size, endpoint)

    return below if is_absent(high) else between
