"""From a task's sources to machine code: one C function per method (csrc/envs/task_frame.h)."""

from __future__ import annotations

import ast
import linecache
import operator
import re
import sys
import traceback
import warnings
from collections.abc import Mapping
from typing import Any

import mujoco
import numpy as np
from numba import njit
from numba.core import compiler, errors, ir, types
from numba.core.compiler_machinery import AnalysisPass, register_pass
from numba.core.ir_utils import get_definition, guard
from numba.core.typed_passes import NopythonTypeInference

from pyfastenv.errors import TaskCodeError
from pyfastenv.tasks.compiler import draws, engine  # noqa: F401 (add what can be called)
from pyfastenv.tasks.compiler.cache import MethodCode, TaskCode, folder, provide_symbols
from pyfastenv.tasks.compiler.frame import DataType, PartsType, RngType, SelfType, array_type
from pyfastenv.tasks.compiler.numba_internals import OPTIONS, in_parts, object_code
from pyfastenv.tasks.compiler.numbers import FUNCTIONS, unpacker
from pyfastenv.tasks.compiler.parts import action_view, cast_frame, finish, vector_of, view_of
from pyfastenv.tasks.compiler.physics import READS
from pyfastenv.tasks.frontend.definitions import Function
from pyfastenv.tasks.frontend.sources import Sources
from pyfastenv.tasks.frontend.vocabulary import EXTERNAL_FORCES
from pyfastenv.tasks.language.around import ROW, code_around
from pyfastenv.tasks.language.layout import Field, Layout
from pyfastenv.tasks.language.places import Place, is_users, show_place
from pyfastenv.tasks.language.task import METHODS, Task, arguments_of, control_size

_ARITHMETIC = {"+", "-", "*", "/", "//", "%", "+=", "-=", "*=", "/=", "//=", "%="}


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
    both = len(kinds) == 2 and all(isinstance(kind, types.Boolean) for kind in kinds)
    return _BOOLS if both and called in _ON_BOOLS else ""


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


class _Compiler(compiler.CompilerBase):
    def define_pipelines(self) -> list[Any]:
        passes = compiler.DefaultPassBuilder.define_nopython_pipeline(self.state)
        passes.add_pass_after(_SameNumbers, NopythonTypeInference)
        passes.finalize()
        return [passes]


def compile_task(
    task: Task,
    sources: Sources,
    layout: Layout,
    fields: Mapping[str, Field],
    action: tuple[Any, int],
) -> TaskCode:
    """Compiles all methods.

    Args:
        task: Whose model gives names and shapes.
        sources: Of the task.
        layout: Of its observations and infos.
        fields: Where its attributes stand.
        action: dtype (None: an integer) and size.

    Raises:
        TaskCodeError: numba cannot compile it; the message has the line.
    """
    model = task.model
    own = frozenset(name for name, draw in task.randomise.items() if draw.kind == "own")
    frame, asked = (  # the pool asks control ahead of time: what it wrote would be lost
        SelfType(type(task).__name__, dict(fields), model, own, remembers=remembers)
        for remembers in (True, False)
    )
    sample = mujoco.MjData(model)
    given = {
        "data": cast_frame(DataType(model, sample)),
        "rng": cast_frame(RngType()),
        "obs": cast_frame(PartsType("obs", layout.obs)),
        "info": cast_frame(PartsType("info", layout.infos)),
        "action": action_view(*action),
        "ctrl": view_of("ctrl", array_type("float64", 1), (control_size(task),)),
        ROW: vector_of("obs", array_type("float64", 1), layout.obs_size),
    }
    read_only = {**given, "data": cast_frame(DataType(model, sample, moves=False))}
    provide_symbols()
    functions = _link(sources)
    around = code_around(task, layout.obs)
    READS.clear()
    code, after_a_step = {}, set[str]()
    # what a helper reads is noted when it is first compiled: those of reset alone come last
    try:
        with in_parts():
            for hook, name in sorted(sources.hooks.items(), key=lambda item: item[0] == "reset"):
                if hook == "reset":
                    after_a_step = set(READS)
                arguments = arguments_of(getattr(type(task), hook))
                handed = read_only if hook == "control" else given
                entry = _entry(hook, functions[name], handed, arguments, around.get(hook, ("", "")))
                method = f"{type(task).__name__}.{hook}"
                _say(f"compiling {method}, once; the code is kept in {folder()}")
                code[hook] = _machine_code(
                    method, entry, asked if hook == "control" else frame, sources.functions[name]
                )
    finally:
        _say("")
    _check_external_forces(task)
    of_reset = tuple(sorted(READS - after_a_step))
    return TaskCode(code, tuple(sorted(after_a_step)), of_reset, sources.places())


def _machine_code(name: str, entry: Any, frame: SelfType, function: Function) -> MethodCode:
    """Compiles a method.

    Args:
        name: Of the method, for messages.
        entry: Of :func:`_entry`.
        frame: What it is called with.
        function: The method as it was rewritten.
    """
    begin = function.filename, function.tree.lineno
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            compiled = njit(types.int32(frame), pipeline_class=_Compiler, **OPTIONS)(entry)
    except errors.NumbaError as error:
        raise TaskCodeError(_shorten(error, name, begin)) from None
    except (AssertionError, AttributeError, LookupError, NotImplementedError) as error:
        raise TaskCodeError(_failed(error, name, _place_of(error) or begin)) from None
    symbol, machine_code, needed = object_code(compiled.overloads[(frame,)])
    return MethodCode(symbol, machine_code, tuple(needed))


def _say(text: str) -> None:
    """Shows on a terminal what is under way, in the place of what was; with nothing it is gone."""
    if sys.stderr is not None and sys.stderr.isatty():
        sys.stderr.write(f"\r\033[K{text}")
        sys.stderr.flush()


def _check_external_forces(task: Task) -> None:
    unasked = sorted(READS & EXTERNAL_FORCES)
    if unasked and not task.external_forces:
        raise TaskCodeError(
            f"{type(task).__name__} reads data.{unasked[0]}, which MuJoCo only computes on "
            f"request: write external_forces = True in the class"
        )


def _entry(
    hook: str,
    function: Any,
    given: Mapping[str, Any],
    arguments: list[str],
    around: tuple[str, str],
) -> Any:
    """``int32 f(frame)``, which unpacks the frame, calls the method and stores what it returns.

    ``around`` is code that runs before and after the method, and may use all that it may ask for.
    """
    assert set(arguments) <= set(METHODS[hook])  # checked by Task
    inlined = njit(inline="always", **OPTIONS)(function)
    own = (ROW,) if hook == "observation" else ()
    unpacked = (*METHODS[hook], *own) if any(around) else arguments
    space: dict[str, Any] = {f"_{name}": given[name] for name in unpacked}
    space |= {"method": inlined, "finish": finish, "exp": FUNCTIONS["numpy:exp"]}
    before, after = around
    lines = ["self = frame", *(f"{name} = _{name}(frame)" for name in unpacked)]
    lines += before.splitlines()
    call = f"method({', '.join(['self', *arguments])})"
    lines.append(f"reward, terminated = {call}" if hook == "step" else call)
    lines += after.splitlines()
    lines += ["finish(frame, reward, terminated)"] if hook == "step" else []
    exec("\n    ".join(["def entry(frame):", *lines, "return 0"]), space)
    return space["entry"]


def _link(sources: Sources) -> dict[str, Any]:
    """The rewritten functions as Python functions, with what they call in their globals."""
    made: dict[str, Any] = {}
    spaces: dict[str, dict[str, Any]] = {}
    for name, function in sources.functions.items():
        spaces[name] = {"__name__": "pyfastenv task", "__builtins__": __builtins__}
        made[name] = _define(function, spaces[name])
    helpers = {
        name: njit(pipeline_class=_Compiler, **OPTIONS)(function) for name, function in made.items()
    }
    for name, function in sources.functions.items():
        spaces[name].update(function.constants)
        for local, target in function.calls.items():
            spaces[name][local] = _called(target, helpers)
    return made


def _called(target: str, helpers: Mapping[str, Any]) -> Any:
    kind, _, name = target.partition(":")
    if kind == "helper":
        return helpers[name]
    if target not in FUNCTIONS and kind == "unpack":
        return unpacker(int(name))
    return FUNCTIONS[target]


def _define(function: Function, space: dict[str, Any]) -> Any:
    space.update(function.constants)
    module = ast.Module([function.tree], [])
    code = compile(module, function.filename, "exec")
    exec(code, space)
    return space[function.tree.name]


def _shorten(error: errors.NumbaError, name: str, begin: Place) -> str:
    """The message that counts, and the user's line, out of numba's report.

    Args:
        error: numba's.
        name: Of the method.
        begin: Where it begins, should the report have no line.
    """
    text = re.sub(r"\x1b\[[0-9;]*m", "", str(error))
    lines = [line.strip() for line in text.splitlines()]
    boilerplate = (
        "Failed in", "During:", "There are", "- Of which", "Overload", "File", "With argument",
        "Rejected", "raised from", "- Resolution", "def ", "<source", "^", "* (", "This error",
        "Enable", ">>>",
    )  # fmt: skip
    said = [
        line
        for line in lines
        if line and not line.startswith(boilerplate) and not set(line) <= set("^~- ")
    ]
    own = [line for line in said if line.split(":")[0].strip() in ("TypingError",)]
    places = re.findall(r'File "([^"]+)", line (\d+)', text)
    own_files = [(f, int(n)) for f, n in places if is_users(f)]
    filename, line = own_files[0] if own_files else begin
    quoted = {text.strip() for text in linecache.getlines(filename)}
    said = [re.sub(r"(\w)<[0-9a-f]+>", r"\1", each) for each in said if each not in quoted]
    message = "\n".join([*dict.fromkeys(own or said)][:3])
    if "Cannot modify readonly array" in message:
        message = _READ_ONLY
    return (
        f"{show_place(filename, line)}: {name} cannot be compiled:\n"
        f"    {linecache.getline(filename, line).strip()}\n{message}\n"
        f"(in plain Python it runs: pyfastenv.debug)"
    )


_READ_ONLY = (
    "it writes into an array that is only read (the action, a command, a parameter, in control a "
    "memory and the state, or what MuJoCo computes); write into a copy: x = x.copy()"
)


def _failed(error: Exception, name: str, place: Place) -> str:
    """The message where numba itself fails, instead of refusing the code."""
    filename, line = place
    source = linecache.getline(filename, line).strip()
    said = str(error)
    # which numba's types of in-place operators fail over
    changes = re.search(r"[-+*/%&|^<>]=(?!=)", source) is not None
    if changes and isinstance(error, AttributeError):
        said = _READ_ONLY
    return (
        f"{show_place(filename, line)}: {name} cannot be compiled:\n    {source}\n{said}\n"
        f"(in plain Python it runs: pyfastenv.debug)"
    )


def _place_of(error: Exception) -> Place | None:
    """The user's line that numba was busy with: of the innermost frame that knows one."""
    found = None
    for frame, _ in traceback.walk_tb(error.__traceback__):
        held = frame.f_locals
        for each in (held.get("self"), held.get("inst"), held):
            at = each.get("loc") if isinstance(each, dict) else getattr(each, "loc", None)
            if isinstance(at, ir.Loc) and is_users(at.filename):
                found = at.filename, at.line
    return found
