"""The few things of numba that its documentation does not promise (tested: docs/own_tasks.md)."""

from __future__ import annotations

import gc
import operator
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from llvmlite import ir
from llvmlite.binding import Linkage
from numba import _dynfunc
from numba.core import cgutils, errors, event
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler_lock import global_compiler_lock
from numba.core.extending import overload
from numba.core.lowering import Lower
from numba.core.registry import cpu_target
from numba.cpython import numbers
from numba.np import arrayobj, ufunc_db

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


# ---- ufuncs of arrays ---------------------------------------------------------------------------


def _as_numbers(function: Any) -> Any:
    """A ufunc's loop body that computes as the operator of two numbers does."""

    def body(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return context.get_function(function, sig)(builder, args)

    return body


def _of_two(reached: str) -> Any:
    """np.maximum's or np.minimum's: of equal numbers, zeros among them, it takes the second."""

    def body(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        x, y = args
        first = builder.or_(
            builder.fcmp_ordered(reached, x, y), builder.fcmp_unordered("uno", x, x)
        )
        return builder.select(first, x, y)

    return body


def _sign(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    """np.sign's: numba's, which keeps −0, and 0."""
    return builder.fadd(numbers.real_sign_impl(context, builder, sig, args), args[0].type(0.0))


# numba's divide and round down (1 // 0.1 is 9, not 10), or keep signs of zero that NumPy does not
_LOOPS = {
    np.floor_divide: _as_numbers(operator.floordiv),
    np.remainder: _as_numbers(operator.mod),
    np.maximum: _of_two(">"),
    np.minimum: _of_two("<"),
    np.sign: _sign,
}


@contextmanager
def _numpys_loops() -> Iterator[None]:
    """Ufuncs give NumPy's bits meanwhile."""
    tables = {ufunc: ufunc_db.get_ufunc_info(ufunc) for ufunc in _LOOPS}
    before = {ufunc: dict(table) for ufunc, table in tables.items()}
    try:
        for ufunc, body in _LOOPS.items():
            tables[ufunc].update({f"{kind * ufunc.nin}->{kind}": body for kind in "df"})
        yield
    finally:
        for ufunc, table in tables.items():
            table.update(before[ufunc])


# ---- compiling ----------------------------------------------------------------------------------


class _Part(JITCodeLibrary):
    """A library holds the code that numba has made of one function.

    numba optimises each function together with all that it calls, makes machine code of it, and
    does so again in whatever calls it. Between :func:`in_parts` functions are only kept, until
    :func:`object_code` puts them together. Numba's own among them may be called by other code of
    the process afterwards, which finishes them as numba does.
    """

    kept = False
    env: Any = None

    def _ensure_finalized(self) -> None:
        if _Part.kept or self._finalized:
            return
        self.finalize()
        if self.env is not None:
            self.codegen.set_env(*self.env)


class _Plain:
    """Error messages without colours: most are of overloads that do not fit, and never shown."""

    code = errmsg = filename = indicate = highlight = reset = staticmethod(str)


def _shapes_differ(from_shape: Any, to_shape: Any) -> None:
    """Stands in for numba's, which compiles a formatted message for 3 s."""


@overload(_shapes_differ, jit_options=OPTIONS)
def _overload_shapes_differ(from_shape, to_shape):
    def fail(from_shape, to_shape):
        raise ValueError("the slice and what is assigned to it differ in shape")

    return fail


@contextmanager
def in_parts() -> Iterator[None]:
    """Functions compiled meanwhile wait for :func:`object_code`, which optimises them together.

    Nothing is done that numba does for others: coloured messages, events, formatted errors.

    The collector, which would find nothing in numba's trees, waits too. Go1's joystick task takes
    6.7 s of processor time so, and 11.7 s without (measured in turn on two busy cores).
    """
    context, collecting = cpu_target.target_context, gc.isenabled()
    codegen, whole = context.codegen(), type(context).get_executable
    replaced = (
        (arrayobj, "raise_with_shape_context", _shapes_differ),
        (errors, "_termcolor_inst", _Plain()),
        (event, "broadcast", lambda each: None),
    )

    def get_executable(library: Any, fndesc: Any, env: Any) -> Any:
        name = fndesc.llvm_cpython_wrapper_name
        if any(f.name == name for f in library._final_module.functions):  # Python may call it
            _Part.kept = False
            try:
                return whole(context, library, fndesc, env)
            finally:
                _Part.kept = True
        library.env = context.get_env_name(fndesc), env
        module, short = fndesc.lookup_module(), fndesc.qualname.split(".")[-1]
        return _dynfunc.make_function(module, short, "", 0, env, (library,))

    with global_compiler_lock:
        before = [getattr(module, name) for module, name, _ in replaced]
        try:
            gc.disable()
            _Part.kept, codegen._library_class = True, _Part
            context.get_executable = get_executable
            for module, name, value in replaced:
                setattr(module, name, value)
            with _numpys_loops():
                yield
        finally:
            for (module, name, _), value in zip(replaced, before, strict=True):
                setattr(module, name, value)
            del codegen._library_class, context.get_executable
            _Part.kept = False
            if collecting:
                gc.enable()


_UNRESOLVED = ".numba.unresolved$"  # what is yet to be compiled: a function that calls itself


def object_code(result: Any) -> tuple[str, bytes, list[str]]:
    """A compile result's function name, machine code, and the symbols that it needs."""
    codegen, name = result.library.codegen, result.fndesc.llvm_func_name
    whole = JITCodeLibrary(codegen, result.library.name)
    # callers first: LLVM takes no function that nobody has asked for yet
    for part in reversed(_linked(result.library, {})):
        module = (part._get_module_for_linking() if part._finalized else part._final_module).clone()
        assert not any(each.name.startswith(_UNRESOLVED) for each in module.global_variables)
        for function in module.functions:
            exported = not function.is_declaration and function.linkage == Linkage.external
            if exported and function.name != name:
                function.linkage = "linkonce_odr"
        whole._final_module.link_in(module)
    whole._optimize_final_module()
    functions = whole._final_module.functions
    needed = [f.name for f in functions if f.is_declaration and not f.name.startswith("llvm.")]
    return name, codegen._tm.emit_object(whole._final_module), needed


def _linked(library: Any, found: dict[Any, None]) -> list[Any]:
    """A library, behind those that it calls."""
    if library in found:
        return []
    found[library] = None
    called = [] if library._finalized else library._linking_libraries
    return [*(each for part in called for each in _linked(part, found)), library]
