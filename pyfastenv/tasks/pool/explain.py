"""Explains errors of a task, in a paragraph with file and line.

A step that failed in compiled code is repeated in plain Python, which says where.
"""

from __future__ import annotations

import ast
import builtins
import inspect
import os
import pickle
import re
import sysconfig
import textwrap
import traceback
import warnings
from collections.abc import Callable
from typing import Any

import mujoco
import numpy as np

from pyfastenv.tasks.frontend.vocabulary import StaleRead
from pyfastenv.tasks.language.fields import Memory, in_row
from pyfastenv.tasks.language.layout import Layout
from pyfastenv.tasks.language.places import Place, is_suites, is_users, runs_tasks, show_place
from pyfastenv.tasks.language.spelling import did_you_mean
from pyfastenv.tasks.language.task import METHODS, Task
from pyfastenv.tasks.pool.plain import PlainEnv, own_fields
from pyfastenv.vector.rendering import doubles, set_fields


def explain(
    task: Task,
    layout: Layout,
    state: Any,
    generator: np.random.Generator,
    message: str,
    method: str,
    exception: bytes,
    action: list[float],
    repeatable: bool,
    moved: Callable[[], dict[Place, Place]],
) -> str:
    """A failure with file, line and the true exception.

    Args:
        task: Whose method failed.
        layout: Of its observations and infos.
        state: The environment's row, from before the step, and the model fields in it.
        generator: Its random stream, likewise.
        message: What the pool knows.
        method: Which one.
        exception: What numba has left of it, a pickle among the code's own constants.
        action: What step was given.
        repeatable: False if plain Python must not try it (an engine's error would end the process)
            or cannot (it is C++).
        moved: Says where places in the compiled code are now.

    Returns:
        As much as could be found out.
    """
    head = message.removesuffix(" raised an exception").removesuffix(": the reward is not finite")
    place, kind, compiled = _compiled_exception(exception, moved)
    if not repeatable:
        return f"{place}{message}" + (f": {compiled}" if compiled else "")
    if issubclass(kind, StaleRead):  # plain Python reads it, whatever it is
        return f"{head}: {place or _calls(task, method, compiled)}{compiled}"
    is_step = method in ("step", "control") or bool(action)
    try:
        env = replay_env(task, layout, state, generator)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if is_step:
                env.step(action if env.action_space.shape else action[0])
            else:
                env.reset()
    except Exception as error:
        said = describe(error).removeprefix(f"{type(task).__name__}.{method}: ")
        return f"{head}: {said}"
    known = f"{message}: {place}{compiled}" if compiled else message
    # what a reset has drawn is not known any more
    return f"{known} (plain Python does the same step without an error)" if is_step else known


def _calls(task: Task, method: str, said: str) -> str:
    """Where a method calls the engine's function that is named first in what was said of it.

    numba compiles such a function once for all lines that call it, so the code does not know them.
    """
    named = re.search(r"mujoco\.(\w+)", said)
    function = getattr(type(task), method)
    try:
        lines, first = inspect.getsourcelines(function)
    except OSError:
        return ""
    calls = [
        first - 1 + node.lineno
        for node in ast.walk(ast.parse(textwrap.dedent("".join(lines))))
        if isinstance(node, ast.Call)
        and named is not None
        and ast.unparse(node.func).rpartition(".")[2] == named[1]
    ]
    shown = ", ".join(show_place(inspect.getfile(function), line) for line in sorted(calls))
    return f"{shown}: " if shown else ""


def blame(error: Exception) -> str | None:
    """Explains an exception for which a task is to blame; of any other, None."""
    frames = _frames(error)
    if not frames:
        return None
    last = frames[-1]
    raised = (last.line or "").startswith("raise ")
    if raised and isinstance(error, ImportError) and is_suites(last.filename):
        return None  # a package is missing, whose name the sentence has
    on_purpose = raised and runs_tasks(last.filename)
    if on_purpose or isinstance(error, SyntaxError) or _users(frames) is not None:
        return describe(error)
    return None


def describe(error: Exception) -> str:
    """An exception of the user's code with its file, line and source."""
    if isinstance(error, SyntaxError) and error.filename:
        place = show_place(error.filename, error.lineno or 0)
        return f"{place}: {type(error).__name__}: {error.msg}\n    {(error.text or '').strip()}"
    last = _users(_frames(error))
    text = error.args[0] if isinstance(error, KeyError) and error.args else error
    if last is None:  # about what a method has returned: the message has the place
        return str(text)
    said = f"{type(error).__name__}: {text}{_meant(error)}"
    return f"{show_place(last.filename, last.lineno or 0)}, in {last.name}: {said}\n    {last.line}"


def _frames(error: Exception) -> list[traceback.FrameSummary]:
    """From where tasks are run."""
    frames = traceback.extract_tb(error.__traceback__)
    at = next((i for i, frame in enumerate(frames) if runs_tasks(frame.filename)), len(frames))
    return frames[at:]


def _users(frames: list[traceback.FrameSummary]) -> traceback.FrameSummary | None:
    """The last one in the user's files; in a package only if the task is in none but packages."""
    users = [frame for frame in frames if is_users(frame.filename)]
    installed = [frame for frame in users if frame.filename.startswith(_PACKAGES)]
    own = [f for f in users if not f.filename.startswith((*_PACKAGES, _STANDARD))]
    return next(iter([*own[-1:], *installed[-1:]]), None)


_PACKAGES = tuple(os.path.join(sysconfig.get_path(name), "") for name in ("purelib", "platlib"))
_STANDARD = os.path.join(sysconfig.get_path("stdlib"), "")


def _meant(error: Exception) -> str:
    """The name that an unknown name may have meant."""
    if isinstance(error, AttributeError) and error.name and error.obj is not None:
        return did_you_mean(error.name, dir(error.obj))
    if not isinstance(error, NameError) or not error.name:
        return ""
    *_, (frame, _) = traceback.walk_tb(error.__traceback__)
    method = frame.f_code.co_name
    if error.name in METHODS.get(method, ()):
        return f"; write def {method}(self, …, {error.name})"
    if hasattr(frame.f_locals.get("self"), error.name):
        return f"; did you mean 'self.{error.name}'?"
    return did_you_mean(error.name, [*frame.f_locals, *frame.f_globals, *dir(builtins)])


def replay_env(task: Task, layout: Layout, state: Any, generator: np.random.Generator) -> PlainEnv:
    """An environment of the pool where it stands, in plain Python."""
    row, fields = state
    env = PlainEnv(task, layout)
    task = env.task  # which may have a model of its own
    own = own_fields(task)
    set_fields(task.model, row, [*fields, *own])
    integration = mujoco.mjtState.mjSTATE_INTEGRATION
    at = mujoco.mj_stateSize(task.model, integration)
    mujoco.mj_setState(task.model, env.data, row[:at], integration)
    for is_memory in (True, False):
        if not is_memory:  # what was drawn stands between memory and commands
            at += sum(doubles(getattr(task.model, name)) for name, *_ in own)
        for name, field in in_row(task._fields).items():
            if isinstance(field, Memory) == is_memory:
                size = field.size or 1
                value = float(row[at]) if field.size is None else row[at : at + size].copy()
                object.__setattr__(task, name, value)
                at += size
    env.np_random = generator
    return env


def _compiled_exception(
    pickled: bytes, moved: Callable[[], dict[Place, Place]]
) -> tuple[str, type[BaseException], str]:
    """Where compiled code has raised, of which kind, and what it said."""
    if not pickled:
        return "", BaseException, ""
    exception, arguments, location = pickle.loads(pickled)
    place = ""
    if location and is_users(location[1]):
        _, filename, line = location
        place = f"{show_place(*moved().get((filename, line), (filename, line)))}: "
    said = ", ".join(str(a) for a in arguments or ())
    return place, exception, said if exception is StaleRead else f"{exception.__name__}: {said}"
