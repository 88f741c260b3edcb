"""make_vec: by id, by ``module:Class``, or by the task's class itself; and debug."""

from __future__ import annotations

import importlib
import os
import sys
from copy import deepcopy
from typing import Any

import gymnasium
from gymnasium.envs.registration import EnvSpec

from pyfastenv.tasks.task import Task
from pyfastenv.vector import vector_env
from pyfastenv.vector.vector_env import FastVectorEnv


def make_vec(env: str | type[Task], num_envs: int = 1, **kwargs: Any) -> FastVectorEnv:
    """Makes a vector environment.

    Args:
        env: An id of :func:`pyfastenv.env_ids`, e.g. ``"HalfCheetah-v5"``
            (``"pyfastenv/HalfCheetah-v5"`` is the same, and so is ``"pyfastenv:pyfastenv/…"``); a
            subclass of :class:`pyfastenv.Task`; where one stands, ``"my_tasks:Quadruped"``; or
            the id under which :func:`pyfastenv.register` has registered one.
        num_envs: How many environments.
        **kwargs: See :class:`FastVectorEnv`; a task's parameters.

    Raises:
        ValueError: Unknown id; the message names the nearest ones.
        TypeError: Unknown keyword argument; the message names the known ones.
        FileNotFoundError: ``xml_file`` does not exist.
        TaskCodeError: The task cannot be compiled.
    """
    task = find_task(env)
    if task is None:
        return vector_env.make_vec(env, num_envs, **kwargs)  # type: ignore[arg-type]
    from pyfastenv.tasks.vector_env import TaskVectorEnv

    task_class, spec = task
    given = {**({} if spec is None else _task_kwargs(spec)), **kwargs}
    envs = TaskVectorEnv(task_class, num_envs, **given)
    envs.spec = deepcopy(spec)
    if envs.spec is not None:
        envs.spec.kwargs = {**envs.spec.kwargs, **kwargs, "num_envs": num_envs}
    return envs


def debug(env: str | type[Task], **kwargs: Any) -> gymnasium.Env[Any, Any]:
    """One environment of a task in plain Python, on real ``mujoco.MjData``.

    Breakpoints, ``print`` and profilers work in its methods; its numbers are the compiled ones', bit
    for bit, for the same seeds and actions.

    Args:
        env: As for :func:`make_vec`, of a task.
        **kwargs: The task's parameters.
    """
    from pyfastenv.tasks.plain import PlainEnv

    found = find_task(env)
    if found is None:
        raise ValueError(f"debug: expected a pyfastenv.Task or where one stands, got {env!r}")
    task_class, spec = found
    task = task_class(**{**({} if spec is None else _task_kwargs(spec)), **kwargs})
    plain: gymnasium.Env[Any, Any] = PlainEnv(task)
    if task.max_episode_steps:
        plain = gymnasium.wrappers.TimeLimit(plain, task.max_episode_steps)
    return plain


def find_task(env: Any) -> tuple[type[Task], EnvSpec | None] | None:
    """The class that is meant, and gymnasium's spec if it was found by its id; else None.

    Raises:
        ImportError, AttributeError, TypeError: ``module:Class`` leads to no task.
    """
    if isinstance(env, type) and issubclass(env, Task):
        return env, None
    if not isinstance(env, str):
        raise TypeError(
            f"make_vec: expected an id such as 'HalfCheetah-v5', or a pyfastenv.Task, got {env!r}"
        )
    spec = gymnasium.registry.get(env)
    if spec is not None and "task" in spec.kwargs:
        return load_task(spec.kwargs["task"]), spec
    module, colon, name = env.partition(":")
    if colon and module != "pyfastenv" and "/" not in name:
        return load_task(env), None
    return None


def load_task(where: str) -> type[Task]:
    """The class at ``"module:Class"``; modules in the current folder are found."""
    module_name, _, name = where.partition(":")
    if os.getcwd() not in sys.path and "" not in sys.path:
        sys.path.insert(0, os.getcwd())
    module = importlib.import_module(module_name)
    task: Any = module
    for part in name.split("."):
        if not hasattr(task, part):
            tasks = [n for n, v in vars(module).items() if isinstance(v, type) and issubclass(v, Task)]
            raise AttributeError(
                f"{where}: {module_name} has no {name!r}; its tasks: {', '.join(tasks) or 'none'}"
            )
        task = getattr(task, part)
    if not (isinstance(task, type) and issubclass(task, Task)):
        raise TypeError(f"{where}: expected a subclass of pyfastenv.Task, got {task!r}")
    return task


def _task_kwargs(spec: EnvSpec) -> dict[str, Any]:
    return {name: value for name, value in spec.kwargs.items() if name != "task"}
