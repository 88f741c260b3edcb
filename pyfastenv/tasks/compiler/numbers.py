"""NumPy's functions with NumPy's bits, for compiled tasks.

``FUNCTIONS`` maps what ``frontend.sources`` calls them (``"numpy:sum"``) to functions that only
compiled code calls; ``engine`` adds MuJoCo's.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import cgutils, errors, types
from numba.core.extending import intrinsic, overload, register_jitable
from numba.core.imputils import impl_ret_borrowed
from numba.core.typing.templates import signature

from pyfastenv.tasks.compiler.frame import is_absent
from pyfastenv.tasks.compiler.numba_internals import (
    F64,
    OPTIONS,
    call_symbol,
    constant,
    new_array,
    raise_if,
)
from pyfastenv.tasks.frontend import vocabulary as words

FUNCTIONS: dict[str, Any] = {
    **{f"plain:{name}": function for function, name in words.NUMPY_PLAIN.items()},
}


def stand_in(target: str, parameters: str) -> Any:
    """A function that only exists for its overloads."""
    space: dict[str, Any] = {}
    name = target.replace(":", "_")
    exec(f"def {name}({parameters}): raise NotImplementedError", space)
    FUNCTIONS[target] = space[name]
    return space[name]


def refuse(what: str, kind: Any, wanted: str) -> None:
    raise errors.TypingError(f"{what}: expected {wanted}, got {_say(types.unliteral(kind))}")


def _say(kind: Any) -> str:
    if isinstance(kind, types.Array):
        order = "" if kind.layout == "C" else " that is not contiguous"
        use = "" if kind.mutable else " that is only read"
        return f"a {kind.ndim}-dimensional {kind.dtype} array{order}{use}"
    return str(kind)


def is_vector(kind: Any, dtype: Any = types.float64) -> bool:
    return isinstance(kind, types.Array) and kind.ndim == 1 and kind.dtype == dtype


def is_contiguous(kind: Any) -> bool:
    return isinstance(kind, types.Array) and kind.layout == "C"


def _are_doubles(kind: Any) -> bool:
    """A vector in float64, or a contiguous array."""
    return is_vector(kind) or (is_contiguous(kind) and kind.dtype == types.float64)


def _real(kind: Any) -> bool:
    """A number that NumPy would compute with in float64."""
    return isinstance(kind, types.Integer | types.Boolean) or kind == types.float64


def _in_doubles(kind: Any) -> bool:
    """A number of which alone NumPy computes in float64: of bools and bytes it does in float16."""
    return kind == types.float64 or (isinstance(kind, types.Integer) and kind.bitwidth >= 32)


def _as_doubles(context: Any, builder: Any, values: Any, kinds: Any) -> list[Any]:
    """Numbers, each cast from its type."""
    given = zip(values, kinds, strict=True)
    return [context.cast(builder, value, kind, types.float64) for value, kind in given]


# ---- the C library's -----------------------------------------------------------------------------


def _in_float64(name: str) -> Any:
    """A function of math, which computes in float64 as in CPython; numba's knows float32, too."""
    parameters = ("x", "y") if name in ("atan2", "copysign") else ("x",)
    numbers = ", ".join(f"np.float64({each})" for each in parameters)
    space: dict[str, Any] = {"np": np, "math": math}
    exec(f"def {name}({', '.join(parameters)}): return math.{name}({numbers})", space)
    return register_jitable(**OPTIONS)(space[name])


FUNCTIONS.update({f"math:{name}": _in_float64(name) for name in words.MATH.values()})


# ---- loops of NumPy's ----------------------------------------------------------------------------


def _unary(name: str) -> None:
    function = stand_in(f"numpy:{name}", "x")
    symbol = f"pyfastenv_np_{name}"

    @intrinsic
    def of_number(typing_context: Any, x: Any) -> Any:
        def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            given, result = (cgutils.alloca_once(builder, F64) for _ in range(2))
            builder.store(context.cast(builder, args[0], sig.args[0], types.float64), given)
            arguments = [given, constant(8), result, constant(1)]
            call_symbol(builder, symbol, ir.VoidType(), arguments)
            return builder.load(result)

        return signature(types.float64, x), codegen

    @intrinsic
    def of_array(typing_context: Any, x: Any) -> Any:
        result_type = types.Array(types.float64, x.ndim, "C")

        def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            given = context.make_array(sig.args[0])(context, builder, args[0])
            shape = cgutils.unpack_tuple(builder, given.shape)
            result = new_array(context, builder, result_type, shape)
            step = constant(8) if x.ndim != 1 else cgutils.unpack_tuple(builder, given.strides)[0]
            arguments = [given.data, step, result.data, given.nitems]
            call_symbol(builder, symbol, ir.VoidType(), arguments)
            return result._getvalue()

        return signature(result_type, x), codegen

    @overload(function, jit_options=OPTIONS)
    def choose(x):
        if _in_doubles(x):
            return lambda x: of_number(x)
        if _are_doubles(x):
            return lambda x: of_array(x)
        refuse(f"np.{name}", x, f"{_DOUBLES}, contiguous if 2-dimensional")
        return None


_DOUBLES = "float64 numbers (float(x), and of arrays x.astype(np.float64))"
_OF_WHOLE = ("power", "fmod", "remainder")  # which NumPy computes otherwise for whole numbers


def _binary(name: str) -> None:
    function = stand_in(f"numpy:{name}", "x, y")
    symbol = f"pyfastenv_np_{name}"
    message = f"np.{name}: the vectors differ in length"

    def is_one(builder: Any, length: Any) -> Any:
        return builder.icmp_signed("==", length, constant(1))

    @intrinsic
    def of_numbers(typing_context: Any, x: Any, y: Any) -> Any:
        def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            first, second, result = (cgutils.alloca_once(builder, F64) for _ in range(3))
            for place, value, kind in zip((first, second), args, sig.args, strict=True):
                builder.store(context.cast(builder, value, kind, types.float64), place)
            arguments = [first, constant(8), second, constant(8), result, constant(1)]
            call_symbol(builder, symbol, ir.VoidType(), arguments)
            return builder.load(result)

        return signature(types.float64, x, y), codegen

    @intrinsic
    def of_vectors(typing_context: Any, x: Any, y: Any) -> Any:
        result_type = types.Array(types.float64, 1, "C")

        def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            given: list[tuple[Any, Any, Any]] = []  # first number, distance, how many
            for value, kind in zip(args, sig.args, strict=True):
                if isinstance(kind, types.Array):
                    array = context.make_array(kind)(context, builder, value)
                    stride = cgutils.unpack_tuple(builder, array.strides)[0]
                    given.append((array.data, stride, array.nitems))
                else:
                    place = cgutils.alloca_once(builder, F64)
                    builder.store(context.cast(builder, value, kind, types.float64), place)
                    given.append((place, constant(0), constant(1)))
            (_, _, first), (_, _, second) = given
            count = builder.select(is_one(builder, first), second, first)
            arguments: list[Any] = []
            for data, stride, length in given:
                differs = builder.icmp_signed("!=", length, count)
                alone = is_one(builder, length)
                wrong = builder.and_(differs, builder.not_(alone))
                raise_if(context, builder, wrong, ValueError, message)
                arguments += [data, builder.select(alone, constant(0), stride)]
            result = new_array(context, builder, result_type, [count])
            call_symbol(builder, symbol, ir.VoidType(), [*arguments, result.data, count])
            return result._getvalue()

        return signature(result_type, x, y), codegen

    @overload(function, jit_options=OPTIONS)
    def choose(x, y):
        kinds = x, y
        if name in _OF_WHOLE and all(isinstance(kind, types.Integer) for kind in kinds):
            if name == "remainder":
                return lambda x, y: x % y
            refuse(f"np.{name}", x, "float64 numbers: write float(…) around one of them")
        if all(map(_in_doubles, kinds)) or (types.float64 in kinds and all(map(_real, kinds))):
            return lambda x, y: of_numbers(x, y)
        if any(map(is_vector, kinds)) and all(is_vector(kind) or _real(kind) for kind in kinds):
            return lambda x, y: of_vectors(x, y)
        wrong = y if is_vector(x) or _in_doubles(x) else x
        refuse(f"np.{name}", wrong, f"{_DOUBLES}, of one dimension")
        return None


for _name in sorted(set(words.NUMPY_UNARY.values())):
    _unary(_name)
for _name in sorted(set(words.NUMPY_BINARY.values())):
    _binary(_name)


# ---- sums and products ---------------------------------------------------------------------------


@intrinsic
def _total(typing_context: Any, x: Any) -> Any:
    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        array = context.make_array(sig.args[0])(context, builder, args[0])
        kind = F64 if x.dtype == types.float64 else ir.FloatType()
        step = constant(1)
        if x.ndim == 1:
            stride = cgutils.unpack_tuple(builder, array.strides)[0]
            step = builder.sdiv(stride, array.itemsize)
        symbol = f"pyfastenv_sum_{x.dtype}"
        return call_symbol(builder, symbol, kind, [array.data, step, array.nitems])

    return signature(x.dtype, x), codegen


@register_jitable(**OPTIONS)
def _count(items):
    total = 0
    for item in items:
        total += item
    return total


@overload(stand_in("numpy:sum", "x"), jit_options=OPTIONS)
def _sum(x):
    if isinstance(getattr(x, "dtype", None), types.Integer | types.Boolean):
        if isinstance(x, types.Array):
            return lambda x: _count(x.flat)
        if isinstance(x, types.UniTuple):
            return lambda x: _count(x)
    if isinstance(x, types.UniTuple) and x.dtype == types.float64:
        return lambda x: _total(np.array(x))
    of_floats = isinstance(x, types.Array) and isinstance(x.dtype, types.Float)
    if of_floats and (x.ndim == 1 or is_contiguous(x)):
        return lambda x: _total(x)
    refuse("np.sum", x, "a vector or a contiguous array (axis= is not there: write the loop)")
    return None


@overload(stand_in("numpy:mean", "x"), jit_options=OPTIONS)
def _mean(x):
    if _are_doubles(x):
        return lambda x: _total(x) / x.size
    refuse("np.mean", x, "a float64 vector or contiguous array")
    return None


@overload(stand_in("numpy:alike", "x"), jit_options=OPTIONS)
def _alike(x):
    """A tuple for an array: whole numbers beside float64 ones become such."""
    kinds = set(x.types) if isinstance(x, types.Tuple) else set()
    whole = {kind for kind in kinds if isinstance(kind, types.Integer | types.Boolean)}
    if types.float64 not in kinds or kinds - whole != {types.float64}:
        return lambda x: x
    space: dict[str, Any] = {"float64": np.float64}
    exec(f"def of(x): return {', '.join(f'float64(x[{i}])' for i in range(len(x)))}", space)
    return space["of"]


@overload(stand_in("numpy:arange", "start, stop=None, step=None, dtype=None"), jit_options=OPTIONS)
def _arange(start, stop=None, step=None, dtype=None):
    kinds = [kind for kind in (start, stop, step) if not is_absent(kind)]
    if all(isinstance(kind, types.Integer) for kind in kinds):

        def whole(start, stop=None, step=None, dtype=None):
            return np.arange(start, stop, step, dtype)  # type: ignore[call-overload]

        return whole
    if not (is_absent(dtype) and all(_real(kind) for kind in kinds)):
        refuse("np.arange", kinds[0], "whole numbers, or float64 numbers without dtype")
    if is_absent(stop):
        return lambda start, stop=None, step=None, dtype=None: _steps(0.0, start, 1.0)
    if is_absent(step):
        return lambda start, stop=None, step=None, dtype=None: _steps(start, stop, 1.0)
    return lambda start, stop=None, step=None, dtype=None: _steps(start, stop, step)


@register_jitable(**OPTIONS)
def _steps(start, stop, step):
    """np.arange of float64 numbers, in NumPy's order of rounding."""
    out = np.empty(max(0, math.ceil((stop - start) / step)))
    between = (start + step) - start
    for i in range(out.size):
        out[i] = start + i * between
    out[:1], out[1:2] = start, start + step
    return out


@overload(stand_in("numpy:copied", "x"), jit_options=OPTIONS)
def _copied(x):
    return (lambda x: x.copy()) if isinstance(x, types.Array) else lambda x: x


@intrinsic
def _only_read(typing_context: Any, x: Any) -> Any:
    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return impl_ret_borrowed(context, builder, sig.return_type, args[0])

    return signature(x.copy(readonly=True), x), codegen


@overload(stand_in("numpy:diag", "x, k=0"), jit_options=OPTIONS)
def _diag(x, k=0):
    """A view of a matrix's diagonal, or a new matrix."""
    if x.ndim == 1:
        return lambda x, k=0: np.diag(x, k)

    def view(x, k=0):
        part = x[max(-k, 0) :, max(k, 0) :]
        shape, strides = (min(part.shape),), (part.strides[0] + part.strides[1],)
        return _only_read(np.lib.stride_tricks.as_strided(part, shape, strides))

    return view


@overload(stand_in("numpy:square", "x"), jit_options=OPTIONS)
def _square(x):
    return lambda x: x * x


def _clip_number(builder: Any, x: Any, low: Any, high: Any) -> Any:
    """np.clip of one double: a number equal to a bound stays itself, NaN anywhere is the result."""
    for reached, bound in (">=", low), ("<=", high):
        stays = builder.or_(
            builder.fcmp_ordered(reached, x, bound), builder.fcmp_unordered("uno", x, x)
        )
        x = builder.select(stays, x, bound)
    return x


@intrinsic
def _clip_one(typing_context: Any, x: Any, low: Any, high: Any) -> Any:
    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return _clip_number(builder, *_as_doubles(context, builder, args, sig.args))

    return signature(types.float64, x, low, high), codegen


@intrinsic
def _clip_all(typing_context: Any, x: Any, low: Any, high: Any) -> Any:
    result_type = types.Array(types.float64, x.ndim, "C")

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        given = context.make_array(sig.args[0])(context, builder, args[0])
        low, high = _as_doubles(context, builder, args[1:], sig.args[1:])
        shape = cgutils.unpack_tuple(builder, given.shape)
        result = new_array(context, builder, result_type, shape)
        with cgutils.for_range(builder, given.nitems) as loop:
            item = builder.load(builder.gep(given.data, [loop.index]))
            clipped = _clip_number(builder, item, low, high)
            builder.store(clipped, builder.gep(result.data, [loop.index]))
        return result._getvalue()

    return signature(result_type, x, low, high), codegen


@overload(stand_in("numpy:clip", "x, low, high"), jit_options=OPTIONS)
def _clip(x, low, high):
    if all(isinstance(kind, types.Integer) for kind in (x, low, high)):
        return lambda x, low, high: np.int64(min(max(x, low), high))
    if not (_real(low) and _real(high)):
        refuse("np.clip", low if _real(high) else high, "two numbers as bounds")
    if _real(x):
        return lambda x, low, high: _clip_one(x, low, high)
    if is_contiguous(x) and x.dtype == types.float64:
        return lambda x, low, high: _clip_all(x, low, high)
    if is_vector(x):
        return lambda x, low, high: _clip_all(np.ascontiguousarray(x), low, high)
    refuse("np.clip", x, "a float64 number or contiguous array")
    return None


@intrinsic
def _inner(typing_context: Any, x: Any, y: Any) -> Any:
    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        first, second = (
            context.make_array(kind)(context, builder, value)
            for kind, value in zip(sig.args, args, strict=True)
        )
        return call_symbol(builder, "pyfastenv_dot", F64, [first.data, second.data, first.nitems])

    return signature(types.float64, x, y), codegen


@overload(stand_in("numpy:norm", "x"), jit_options=OPTIONS)
def _norm(x):
    if is_contiguous(x) and x.dtype == types.float64:
        return lambda x: math.sqrt(_inner(x, x))
    if is_vector(x):

        def packed(x):
            y = np.ascontiguousarray(x)
            return math.sqrt(_inner(y, y))

        return packed
    refuse("np.linalg.norm", x, "a float64 vector or contiguous array, without ord and axis")
    return None


@intrinsic
def _product(
    typing_context: Any, x: Any, y: Any, rows: Any, inner: Any, columns: Any, out: Any
) -> Any:
    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        first, second, result = (
            context.make_array(sig.args[i])(context, builder, args[i]).data for i in (0, 1, 5)
        )
        call_symbol(
            builder, "pyfastenv_np_matmul", ir.VoidType(), [first, second, result, *args[2:5]]
        )
        return context.get_dummy_value()

    return signature(types.void, x, y, types.int64, types.int64, types.int64, out), codegen


def _matmul(x, y):
    for kind in (x, y):
        if not (is_contiguous(kind) and kind.dtype == types.float64 and kind.ndim in (1, 2)):
            refuse("@", kind, "contiguous float64 vectors or matrices (np.ascontiguousarray)")
    dimensions = (x.ndim, y.ndim)
    if dimensions == (1, 1):

        def inner(x, y):
            if x.size != y.size:
                raise ValueError("@: the vectors differ in length")
            out = np.empty(1)
            _product(x, y, 1, x.size, 1, out)
            return out[0]

        return inner
    if dimensions == (2, 1):

        def vector(x, y):
            if x.shape[1] != y.size:
                raise ValueError("@: the matrix's columns and the vector's length differ")
            out = np.empty(x.shape[0])
            _product(x, y, x.shape[0], x.shape[1], 1, out)
            return out

        return vector
    if dimensions == (1, 2):

        def row(x, y):
            if x.size != y.shape[0]:
                raise ValueError("@: the vector's length and the matrix's rows differ")
            out = np.empty(y.shape[1])
            _product(x, y, 1, x.size, y.shape[1], out)
            return out

        return row

    def matrix(x, y):
        if x.shape[1] != y.shape[0]:
            raise ValueError("@: columns and rows differ")
        out = np.empty((x.shape[0], y.shape[1]))
        _product(x, y, x.shape[0], x.shape[1], y.shape[1], out)
        return out

    return matrix


overload(stand_in("numpy:matmul", "x, y"), jit_options=OPTIONS)(_matmul)


@overload(stand_in("numpy:dot", "x, y"), jit_options=OPTIONS)
def _dot(x, y):
    if is_vector(x) and is_vector(y) and is_contiguous(x) and is_contiguous(y):

        def inner(x, y):
            if x.size != y.size:
                raise ValueError("np.dot: the vectors differ in length")
            return _inner(x, y)

        return inner
    refuse(
        "np.dot",
        x if not is_vector(x) else y,
        "contiguous float64 vectors; of matrices write a @ b",
    )
    return None


@intrinsic
def _c_pow(typing_context: Any, x: Any, y: Any) -> Any:
    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        numbers = _as_doubles(context, builder, args, sig.args)
        return call_symbol(builder, "pyfastenv_pow", F64, numbers)

    return signature(types.float64, x, y), codegen


@overload(stand_in("numpy:operator_pow", "x, y"), jit_options=OPTIONS, prefer_literal=True)
def _pow(x, y):
    """``x ** y``: of numbers the C library's pow; NumPy squares arrays by multiplying."""
    exponent = getattr(y, "literal_value", None)
    if isinstance(x, types.Array):
        if x.dtype == types.float64 and exponent == 2:
            return lambda x, y: x * x
        refuse("**", x, "numbers, or a float64 array ** 2 (else np.power)")
    if isinstance(x, types.Integer) and isinstance(y, types.Integer):
        if exponent is not None and exponent >= 0:

            def whole(x, y):
                result = 1
                for _ in range(y):
                    result *= x
                return result

            return whole
        refuse("** of whole numbers", y, "an exponent that stands there, 0 or more")
    if _real(x) and _real(y):
        return lambda x, y: _c_pow(x, y)
    refuse("**", x, "float64 numbers")
    return None


@overload(stand_in("numpy:int", "x"), jit_options=OPTIONS)
def _int(x):
    if not isinstance(x, types.Float):
        return lambda x: int(x)

    def whole(x):
        if not abs(x) < 2.0**63:
            raise OverflowError("int() of NaN, or of a number of more than 64 bits")
        return int(x)

    return whole


# ---- names that may not have been written --------------------------------------------------------


@overload(stand_in("numpy:written", "x, is_written"), jit_options=OPTIONS)
def _written(x, is_written):
    def checked(x, is_written):
        if not is_written:
            raise UnboundLocalError("a name is read that has not been written")
        return x

    return checked


# ---- a, b = array --------------------------------------------------------------------------------


def unpacker(count: int) -> Any:
    """x -> a tuple of its ``count`` items; x is a vector or a tuple."""
    function = stand_in(f"unpack:{count}", "x")
    items = ", ".join(f"x[{i}]" for i in range(count))
    space: dict[str, Any] = {}
    exec(
        f"def of_vector(x):\n"
        f"    if x.shape[0] != {count}: raise ValueError('expected {count} values to unpack')\n"
        f"    return ({items},)\n",
        space,
    )

    @overload(function, jit_options=OPTIONS)
    def choose(x):
        return space["of_vector"] if isinstance(x, types.Array) else lambda x: x

    return function
