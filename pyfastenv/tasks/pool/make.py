"""make_vec and make: by id, by ``module:Class``, or by the task's class itself; and debug."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import gymnasium

from pyfastenv.tasks.language.find import find_task, task_kwargs
from pyfastenv.tasks.language.task import Task
from pyfastenv.tasks.pool.registration import spec_of
from pyfastenv.vector import vector_env
from pyfastenv.vector.arguments import plain_id
from pyfastenv.vector.vector_env import FastVectorEnv


def make_vec(env_id: str | type[Task], num_envs: int = 1, **kwargs: Any) -> FastVectorEnv:
    """Makes a vector environment.

    Args:
        env_id: An id of :func:`pyfastenv.env_ids`, e.g. ``"HalfCheetah-v5"``
            (``"pyfastenv/HalfCheetah-v5"`` is the same, and so is ``"pyfastenv:pyfastenv/…"``); a
            subclass of :class:`pyfastenv.Task`; where one stands, ``"my_tasks:Quadruped"`` or
            ``"path/to/my_tasks.py:Quadruped"``; or the id under which :func:`pyfastenv.register`
            has registered one.
        num_envs: How many environments.
        **kwargs: See :class:`FastVectorEnv`; a task's parameters.

    Raises:
        ValueError: Unknown id; the message names the nearest ones.
        TypeError: Unknown keyword argument; the message names the known ones.
        FileNotFoundError: ``xml_file`` does not exist.
        TaskCodeError: The task cannot be compiled.
    """
    task = find_task(env_id)
    if task is None:
        return vector_env.make_vec(env_id, num_envs, **kwargs)  # type: ignore[arg-type]
    from pyfastenv.tasks.pool.vector_env import TaskVectorEnv

    task_class, spec = task
    if spec is not None:
        kwargs = {**task_kwargs(spec), **kwargs}
    envs = TaskVectorEnv(task_class, num_envs, **kwargs)
    name = env_id.rpartition("/")[2] if isinstance(env_id, str) else env_id  # of a file
    envs.spec = spec_of(task_class, name) if spec is None else deepcopy(spec)
    envs.spec.max_episode_steps = envs.max_episode_steps
    envs.spec.kwargs = {**envs.spec.kwargs, **kwargs, "num_envs": num_envs}
    return envs


def make(env_id: str | type[Task], **kwargs: Any) -> gymnasium.Env[Any, Any]:
    """Makes one environment by the compiled core, with the registered time limit.

    Args:
        env_id: As for :func:`make_vec`.
        **kwargs: See :class:`pyfastenv.FastEnv`, and ``max_episode_steps``; a task's parameters.
    """
    found = find_task(env_id)
    if found is None:
        env_id = f"pyfastenv/{plain_id(env_id)}"
        return gymnasium.make(env_id, disable_env_checker=True, **kwargs)
    spec = deepcopy(spec_of(found[0], found[0].__name__) if found[1] is None else found[1])
    return gymnasium.make(spec, disable_env_checker=True, **kwargs)


def debug(env_id: str | type[Task], **kwargs: Any) -> gymnasium.Env[Any, Any]:
    """Makes one environment of a task in plain Python, on real ``mujoco.MjData``.

    Breakpoints, ``print`` and profilers work in its methods; its numbers are the compiled ones',
    bit for bit, for the same seeds and actions.

    Args:
        env_id: As for :func:`make_vec`, of a task.
        **kwargs: The task's parameters.
    """
    from pyfastenv.tasks.pool.plain import PlainEnv

    found = find_task(env_id)
    if found is None:
        raise ValueError(f"debug: expected a pyfastenv.Task or where one stands, got {env_id!r}")
    task_class, spec = found
    task = task_class(**{**({} if spec is None else task_kwargs(spec)), **kwargs})
    plain: gymnasium.Env[Any, Any] = PlainEnv(task)
    if task.max_episode_steps:
        plain = gymnasium.wrappers.TimeLimit(plain, task.max_episode_steps)
    return plain
