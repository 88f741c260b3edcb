"""Refuses code whose numbers depend on types that Python and NumPy tell apart and numba does not.

It is looked for when numba has found all types.
"""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
from numba.core import compiler, errors, ir, types
from numba.core.compiler_machinery import AnalysisPass, register_pass
from numba.core.ir_utils import get_definition, guard
from numba.core.typed_passes import NopythonTypeInference


@register_pass(mutates_CFG=False, analysis_only=True)
class _SameNumbers(AnalysisPass):
    """Refuses arithmetic whose types NumPy chooses by more than what numba knows."""

    _name = "pyfastenv_same_numbers"

    def __init__(self) -> None:
        AnalysisPass.__init__(self)

    def run_pass(self, state: Any) -> bool:
        for expression, call in state.calltypes.items():
            if _reshapes_transposed(state, expression):
                raise errors.TypingError(_RESHAPED, loc=expression.loc)
            if _is_indexed_by_list(state, expression):
                raise errors.TypingError(_LISTS, loc=expression.loc)
            operation = getattr(expression, "op", None)
            if operation in ("binop", "inplace_binop"):
                names = [expression.lhs.name, expression.rhs.name]
                called = expression.fn if operation == "binop" else expression.immutable_fn
            elif operation == "unary":
                names, called = [expression.value.name], expression.fn
            elif operation == "call":
                names = [argument.name for argument in expression.args]
                called = getattr(state.typemap[expression.func.name], "typing_key", None)
                if not (isinstance(called, np.ufunc) or called in (np.where, max, min)):
                    continue
            else:
                continue
            kinds = [state.typemap[name] for name in names]
            wrong = _other_types(called, kinds, call.return_type)
            if wrong:
                raise errors.TypingError(wrong, loc=expression.loc)
        arrays = _lists_of_arrays(state)
        for statement in (each for block in state.func_ir.blocks.values() for each in block.body):
            sources, target = _stored(state, statement, arrays)
            for source in sources:
                wrong = _widened(state.typemap[source.name], target)
                if wrong:
                    is_choice = getattr(statement.value, "op", None) == "phi"
                    at = source if is_choice else statement
                    raise errors.TypingError(wrong, loc=at.loc)
        return False


def _stored(state: Any, statement: Any, arrays: set[int]) -> tuple[list[Any], Any]:
    """The variables among which a statement chooses, and the one type that numba gives them."""
    if isinstance(statement, ir.Return):
        return [statement.value], state.return_type
    if isinstance(statement, ir.SetItem | ir.StaticSetItem):
        array = state.typemap[statement.target.name]
        return [statement.value] if isinstance(array, types.List) else [], _dtype(array)
    if not isinstance(statement, ir.Assign):
        return [], None
    value, target = statement.value, state.typemap[statement.target.name]
    operation = getattr(value, "op", None)
    if operation == "phi":
        return [each for each in value.incoming_values if each is not ir.UNDEFINED], target
    if operation == "build_list":
        return [] if id(value) in arrays else value.items, target.dtype
    called = state.typemap[value.func.name] if operation == "call" else None
    owner = getattr(called, "this", None)
    if isinstance(owner, types.List):  # of append and its kin
        return value.args, owner.dtype
    source = value.value if operation == "cast" else value
    return [source] if isinstance(source, ir.Var) else [], target


def _lists_of_arrays(state: Any) -> set[int]:
    """The lists that np.array alone sees, which chooses one type for its numbers as numba does."""
    calls = (each for each in state.calltypes if getattr(each, "op", None) == "call")
    made = [
        call.args[0]
        for call in calls
        if getattr(state.typemap[call.func.name], "typing_key", None) is np.array
        and call.args
        and "build_list" in call.args[0].name  # which it is handed as it is made
    ]
    found = set[int]()
    for each in made:  # it grows: lists of lists
        origin = guard(get_definition, state.func_ir, each)
        if getattr(origin, "op", None) == "build_list":
            found.add(id(origin))
            made += origin.items
    return found


def _reshapes_transposed(state: Any, expression: Any) -> bool:
    """Whether an array is reshaped whose numbers would have to be copied for it."""
    if getattr(expression, "op", None) != "call":
        return False
    called = state.typemap[expression.func.name]
    key, array = getattr(called, "typing_key", None), getattr(called, "this", None)
    if key is np.reshape and expression.args:
        array = state.typemap[expression.args[0].name]
    return key in ("array.reshape", np.reshape) and getattr(array, "layout", "C") == "F"


def _is_indexed_by_list(state: Any, expression: Any) -> bool:
    """Whether an array's index may be one of the constants that are lists in Python."""
    is_read = isinstance(expression, ir.Expr) and expression.op in ("getitem", "static_getitem")
    if not is_read and not isinstance(expression, ir.SetItem | ir.StaticSetItem):
        return False
    array = expression.value if is_read else expression.target
    is_static = not isinstance(expression.index, ir.Var)
    index = expression.index_var if is_static else expression.index
    if index is None or not isinstance(state.typemap[index.name], types.BaseTuple):
        return False
    origin = guard(get_definition, state.func_ir, index)
    return isinstance(state.typemap[array.name], types.Array) and (
        isinstance(origin, ir.Arg)
        or (isinstance(origin, ir.Global | ir.FreeVar) and origin.name.startswith("list_"))
    )


def _other_types(called: Any, kinds: list[Any], result: Any) -> str:
    """Why NumPy's result of these types may have another type than numba's; "" if not."""
    dtypes = {_dtype(kind) for kind in kinds}
    numbers = [kind for kind in kinds if not isinstance(kind, types.Array)]
    if types.float32 in dtypes:
        widened = _dtype(result) == types.float64 and numbers
        whole = any(
            isinstance(kind, types.Integer) and not isinstance(kind, types.IntegerLiteral)
            for kind in numbers
        )
        if types.float64 in dtypes or widened or (whole and result != types.boolean):
            return _FLOATS
    if called is operator.invert and isinstance(kinds[0], types.Boolean):
        return _INVERT
    if called in _PRODUCTS and _is_narrow(kinds):
        return _NARROW
    is_float = isinstance(_dtype(result), types.Float)
    if isinstance(called, np.ufunc) and called is not np.divide and is_float and _are_bytes(dtypes):
        return _BYTES
    both = len(kinds) == 2 and all(isinstance(kind, types.Boolean) for kind in kinds)
    return _BOOLS if both and called in _ON_BOOLS else ""


def _are_bytes(dtypes: set[Any]) -> bool:
    return all(
        isinstance(dtype, types.Boolean)
        or (isinstance(dtype, types.Integer) and dtype.bitwidth < 32)
        for dtype in dtypes
    )


def _is_narrow(kinds: list[Any]) -> bool:
    """Whether NumPy's result is a whole number of less than 64 bits, which may not suffice."""
    whole = [kind for kind in kinds if isinstance(_dtype(kind), types.Integer)]
    narrow = [kind for kind in whole if _dtype(kind).bitwidth < 64]
    wide = [kind for kind in whole if kind not in narrow]
    if len(whole) < len(kinds) or any(isinstance(kind, types.Array) for kind in wide):
        return False
    return not wide or any(isinstance(kind, types.Array) for kind in narrow)


def _widened(source: Any, target: Any) -> str:
    """Why a value that numba stores as another type is not what it is in Python; "" if it is."""
    if isinstance(source, types.BaseTuple) and isinstance(target, types.BaseTuple):
        pairs = zip(source, target, strict=True)
        return next(filter(None, (_widened(*pair) for pair in pairs)), "")
    if source == types.float32 and target == types.float64:
        return _FLOATS
    is_number = isinstance(source, types.Boolean) and isinstance(target, types.Number)
    return _MIXED if is_number else ""


def _dtype(kind: Any) -> Any:
    return getattr(kind, "dtype", kind)


# NumPy lets a plain number take float32's side
_FLOATS = (
    "float32 meets float64 or a whole number, and NumPy's rules for that depend on what is a plain "
    "number: write np.float64(…) or np.float32(…) around one of them, or action.astype(np.float64)"
)
_LISTS = (
    "an index that is a list takes several elements, and one that is a tuple takes one: write "
    "x[i, j] for a tuple, or np.array(…) for a list"
)
_RESHAPED = (
    "a transposed array cannot be reshaped in place: write np.ascontiguousarray(…) around it"
)
# NumPy's bools stay bools where Python's are added up
_ON_BOOLS = (
    *(operator.add, operator.sub, operator.mul, operator.floordiv, operator.mod),
    *(np.add, np.subtract, np.multiply),
)
_BOOLS = (
    "arithmetic on two bools depends on whether they are NumPy's or Python's: write int(…) around "
    "one of them, or and, or"
)
_BYTES = "of bools and bytes NumPy computes in float16 or float32: write float(…) around them"
_INVERT = "~ of a bool depends on whether it is NumPy's or Python's, whose ~True is -2: write not"
_PRODUCTS = (operator.mul, operator.lshift, np.multiply)
_NARROW = (
    "NumPy multiplies whole numbers of 32 bits in 32 bits, and compiled code in 64: write "
    "np.int64(…) around one of them, or x.astype(np.int64) of an array"
)
_MIXED = (
    "a name, an element of a list or what a function returns is a bool in one case and a number "
    "in another: write int(…) or float(…) around the bool"
)


class Compiler(compiler.CompilerBase):
    """Compiles as numba does, and refuses such code."""

    def define_pipelines(self) -> list[Any]:
        passes = compiler.DefaultPassBuilder.define_nopython_pipeline(self.state)
        passes.add_pass_after(_SameNumbers, NopythonTypeInference)
        passes.finalize()
        return [passes]
