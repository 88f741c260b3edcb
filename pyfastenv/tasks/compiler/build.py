"""From a task's sources to machine code: one C function per method (csrc/envs/task_frame.h)."""

from __future__ import annotations

import ast
import linecache
import re
import sys
import traceback
import warnings
from collections.abc import Mapping
from typing import Any

import mujoco
from numba import njit
from numba.core import errors, ir, types

from pyfastenv.errors import TaskCodeError
from pyfastenv.tasks.compiler import draws, engine  # noqa: F401 (add what can be called)
from pyfastenv.tasks.compiler.cache import MethodCode, TaskCode, folder, provide_symbols
from pyfastenv.tasks.compiler.frame import DataType, PartsType, RngType, SelfType, array_type
from pyfastenv.tasks.compiler.numba_internals import OPTIONS, in_parts, object_code
from pyfastenv.tasks.compiler.numbers import FUNCTIONS, unpacker
from pyfastenv.tasks.compiler.parts import action_view, cast_frame, finish, vector_of, view_of
from pyfastenv.tasks.compiler.physics import READS
from pyfastenv.tasks.compiler.same_numbers import Compiler
from pyfastenv.tasks.frontend.definitions import Function
from pyfastenv.tasks.frontend.sources import Sources
from pyfastenv.tasks.frontend.vocabulary import EXTERNAL_FORCES
from pyfastenv.tasks.language.around import ROW, code_around
from pyfastenv.tasks.language.layout import Field, Layout
from pyfastenv.tasks.language.places import Place, is_users, show_place
from pyfastenv.tasks.language.task import METHODS, Task, arguments_of, control_size


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
            compiled = njit(types.int32(frame), pipeline_class=Compiler, **OPTIONS)(entry)
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
        name: njit(pipeline_class=Compiler, **OPTIONS)(function) for name, function in made.items()
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
    said = str(error) or "write it otherwise: what a list holds is of one kind, such as floats"
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
