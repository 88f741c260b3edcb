"""Where a task stands: a class, ``module:Class``, ``path/to/file.py:Class``, or an id that
gymnasium's registry knows."""

from __future__ import annotations

import difflib
import sys
from types import ModuleType
from typing import Any

import gymnasium
from gymnasium.envs.registration import EnvSpec

from pyfastenv.tasks.language.importing import import_file, import_place
from pyfastenv.tasks.language.task import Task
from pyfastenv.vector.arguments import plain_id
from pyfastenv.vector.specs import env_ids


def find_task(env: Any) -> tuple[type[Task], EnvSpec | None] | None:
    """The class that is meant, and gymnasium's spec if it was found by its id; else None.

    Raises:
        FileNotFoundError, ImportError, TypeError: As :func:`load_task`.
        ValueError: No environment has this id, and others are near; the message names them.
    """
    if isinstance(env, type) and issubclass(env, Task):
        return env, None
    if not isinstance(env, str):
        raise TypeError(
            f"env_id: expected a string such as 'HalfCheetah-v5', got {env!r}, which is no "
            f"pyfastenv.Task either"
        )
    for env_id in (env, f"pyfastenv/{plain_id(env)}"):
        spec = gymnasium.registry.get(env_id)
        if spec is not None and "task" in spec.kwargs:
            return load_task(spec.kwargs["task"]), spec
    module, colon, name = env.rpartition(":")
    if colon and module != "pyfastenv" and "/" not in name:
        return load_task(env), None
    if env.endswith(".py"):
        raise ImportError(f"{env}: which task? {_tasks_of(import_file(env, env), env)}")
    name, built_in = plain_id(env), env_ids()
    if name not in built_in:
        near = difflib.get_close_matches(name, [*built_in, *registered_tasks()])
        if near:
            nearest = ", ".join(near)
            raise ValueError(f"unknown environment id {name!r}; the nearest ones: {nearest}")
    return None


def registered_tasks() -> dict[str, str | type[Task]]:
    """The ids of own tasks in gymnasium's registry, and where each task stands."""
    specs = gymnasium.registry.items()
    return {plain_id(key): spec.kwargs["task"] for key, spec in specs if "task" in spec.kwargs}


def load_task(where: str | type[Task]) -> type[Task]:
    """The class at ``"module:Class"`` (modules in the current folder are found) or
    ``"path/to/file.py:Class"``, or itself.

    Raises:
        FileNotFoundError, ImportError: There is no such file, module or class.
        TypeError: It is no task.
    """
    if isinstance(where, type):
        return where
    place, _, name = where.rpartition(":")
    module = import_place(place, where)
    task: Any = module
    for part in name.split("."):
        if not hasattr(task, part):
            raise ImportError(f"{where}: {place} has no {name!r}; {_tasks_of(module, place)}")
        task = getattr(task, part)
    if not (isinstance(task, type) and issubclass(task, Task)):
        raise TypeError(
            f"{where}: expected a subclass of pyfastenv.Task, got {task!r}; "
            f"{_tasks_of(module, place)}"
        )
    return task


def _tasks_of(module: ModuleType, place: str) -> str:
    tasks = [
        f"{place}:{name}"
        for name, value in vars(module).items()
        if isinstance(value, type) and issubclass(value, Task) and value is not Task
    ]
    return f"its tasks: {', '.join(tasks) or 'none'}"


def task_kwargs(spec: EnvSpec) -> dict[str, Any]:
    """The arguments of a registered task, with the registered time limit if there is one."""
    kwargs = {name: value for name, value in spec.kwargs.items() if name != "task"}
    if spec.max_episode_steps is None:
        return kwargs
    return {"max_episode_steps": spec.max_episode_steps, **kwargs}


def place_of(task: type[Task]) -> str | type[Task]:
    """``"module:Class"`` where another process finds a class; else the class itself."""
    module = sys.modules.get(task.__module__)
    found: Any = module
    for part in task.__qualname__.split("."):
        found = getattr(found, part, None)
    if task.__module__ == "__main__" or found is not task:
        return task
    return f"{task.__module__}:{task.__qualname__}"
