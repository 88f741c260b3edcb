"""The few things of numba that its documentation does not promise (tested: docs/own_tasks.md)."""

from __future__ import annotations

import sys
from typing import Any

from llvmlite import ir
from numba.core import cgutils
from numba.core.lowering import Lower
from numba.np import arrayobj

I8, I32, I64, F64 = ir.IntType(8), ir.IntType(32), ir.IntType(64), ir.DoubleType()
BYTES = I8.as_pointer()

# What every task is compiled with. Exceptions are real ones (boundscheck); divisions by zero give
# what NumPy's scalars give.
OPTIONS: dict[str, Any] = {
    "boundscheck": True,
    "error_model": "numpy",
    "no_cpython_wrapper": True,
    "no_cfunc_wrapper": True,
}


def constant(value: int) -> Any:
    """An int64."""
    return ir.Constant(I64, int(value))


def load(builder: Any, base: Any, offset: int, kind: Any) -> Any:
    """Loads the value that stands ``offset`` bytes after ``base``."""
    pointer = builder.gep(base, [constant(offset)])
    return builder.load(builder.bitcast(pointer, kind.as_pointer()))


def store(builder: Any, base: Any, offset: int, value: Any) -> None:
    """Writes a value ``offset`` bytes after ``base``."""
    pointer = builder.gep(base, [constant(offset)])
    builder.store(value, builder.bitcast(pointer, value.type.as_pointer()))


def call_symbol(builder: Any, name: str, result: Any, arguments: list[Any]) -> Any:
    """Calls a C function that is linked in later (csrc/envs/task_symbols.cc)."""
    kind = ir.FunctionType(result, [argument.type for argument in arguments])
    return builder.call(cgutils.get_or_insert_function(builder.module, kind, name), arguments)


def make_view(context: Any, builder: Any, kind: Any, pointer: Any, shape: tuple[int, ...]) -> Any:
    """A C-contiguous array on memory that is not numba's."""
    array = context.make_array(kind)(context, builder)
    item = context.get_abi_sizeof(context.get_data_type(kind.dtype))
    strides: list[int] = []
    stride = item
    for length in reversed(shape):
        strides.insert(0, stride)
        stride *= length
    arrayobj.populate_array(
        array,
        data=builder.bitcast(pointer, array.data.type),
        shape=[constant(n) for n in shape],
        strides=[constant(n) for n in strides],
        itemsize=constant(item),
        meminfo=None,
    )
    return array._getvalue()


def new_array(context: Any, builder: Any, kind: Any, shape: list[Any]) -> Any:
    """An array of numba's, not initialised."""
    return arrayobj._empty_nd_impl(context, builder, kind, shape)


def raise_if(
    context: Any, builder: Any, condition: Any, exception: type[Exception], message: str
) -> None:
    """Returns, if a condition holds, with an exception of the user's line, which numba knows."""
    frame: Any = sys._getframe()
    location = None
    while frame is not None and location is None:
        owner = frame.f_locals.get("self")
        if isinstance(owner, Lower):
            location = owner.loc
        frame = frame.f_back
    name = None if location is None else ""
    with builder.if_then(condition, likely=False):
        context.call_conv.return_user_exc(
            builder, exception, (message,), loc=location, func_name=name
        )


def check_status(context: Any, builder: Any, status: Any) -> None:
    """Returns with an error if a call back into the pool has failed; the pool knows with which."""
    failed = builder.icmp_signed("!=", status, ir.Constant(I32, 0))
    raise_if(context, builder, failed, RuntimeError, "a call of the engine failed")


def object_code(result: Any) -> tuple[str, bytes, list[str]]:
    """A compile result's function name, machine code, and the symbols that it needs."""
    library = result.library
    functions = library._final_module.functions
    needed = [f.name for f in functions if f.is_declaration and not f.name.startswith("llvm.")]
    return result.fndesc.llvm_func_name, library._get_compiled_object(), needed
