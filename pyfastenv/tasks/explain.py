"""What went wrong in a compiled method: the step is repeated in plain Python, which says where."""

from __future__ import annotations

import pickle
import traceback
import warnings
from collections.abc import Callable
from typing import Any

import mujoco
import numpy as np

from pyfastenv.tasks.layout import Layout
from pyfastenv.tasks.places import Place, is_users, show_place
from pyfastenv.tasks.plain import PlainEnv
from pyfastenv.tasks.task import Memory, Task


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
    place, compiled = _compiled_exception(exception, moved)
    if not repeatable:
        return f"{place}{message}" + (f": {compiled}" if compiled else "")
    known = f"{message}: {place}{compiled}" if compiled else message
    try:
        env = replay_env(task, layout, state, generator)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            _repeat(env, method, action)
    except Exception as error:
        return f"{message.partition(' raised')[0].partition(':')[0]}: {describe(error)}"
    return f"{known} (plain Python does it without an error)"


def _repeat(env: PlainEnv, method: str, action: list[float]) -> None:
    if method in ("step", "control"):
        env.step(action if env.action_space.shape else action[0])
    else:
        env.reset()


def describe(error: Exception) -> str:
    """An exception of the user's code with its file, line and source."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if is_users(frame.filename)]
    said = f"{type(error).__name__}: {error}"
    if not own:  # about what a method has returned: the message has the place
        return said
    last = own[-1]
    return f"{show_place(last.filename, last.lineno or 0)}, in {last.name}: {said}\n    {last.line}"


def replay_env(task: Task, layout: Layout, state: Any, generator: np.random.Generator) -> PlainEnv:
    """An environment of the pool where it stands, in plain Python."""
    row, fields = state
    env = PlainEnv(task, layout)
    task = env.task  # which may have a model of its own
    for name, offset, shape in fields:
        target: Any = task.model
        for part in name.split("."):
            owner, target = target, getattr(target, part)
        values = row[offset : offset + int(np.prod(shape))]
        if np.ndim(target) == 0:
            setattr(owner, name.split(".")[-1], values[0])
        else:
            target[:] = values.reshape(np.shape(target))
    integration = mujoco.mjtState.mjSTATE_INTEGRATION
    at = mujoco.mj_stateSize(task.model, integration)
    mujoco.mj_setState(task.model, env.data, row[:at], integration)
    for is_memory in (True, False):
        if not is_memory:  # what was drawn stands between memory and commands
            for name in task.randomise:
                drawn: Any = getattr(task.model, name)
                size = -(-drawn.nbytes // 8)  # heights are floats, two in a number
                values = row[at : at + size].view(drawn.dtype)[: drawn.size]
                drawn[:] = values.reshape(drawn.shape)
                at += size
        for name, field in task._fields.items():
            if isinstance(field, Memory) == is_memory:
                size = field.size or 1
                value = float(row[at]) if field.size is None else row[at : at + size].copy()
                object.__setattr__(task, name, value)
                at += size
    env.np_random = generator
    return env


def _compiled_exception(pickled: bytes, moved: Callable[[], dict[Place, Place]]) -> tuple[str, str]:
    """Where compiled code has raised, and what."""
    if not pickled:
        return "", ""
    exception, arguments, location = pickle.loads(pickled)
    place = ""
    if location and is_users(location[1]):
        _, filename, line = location
        place = f"{show_place(*moved().get((filename, line), (filename, line)))}: "
    return place, f"{exception.__name__}: {', '.join(str(a) for a in arguments or ())}"
