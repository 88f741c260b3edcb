"""TaskEnv: one environment of an own task, by the compiled core."""

from __future__ import annotations

from typing import Any

import gymnasium

from pyfastenv.tasks.language.find import load_task
from pyfastenv.tasks.language.task import Task
from pyfastenv.tasks.pool.vector_env import TaskVectorEnv
from pyfastenv.vector.env import FastEnv


class TaskEnv(FastEnv):
    """A single environment with gymnasium's Env API; ``gymnasium.make`` makes it.

    Args:
        task: The class, or ``"module:Class"``.
        render_mode: None or ``"rgb_array"``.
        **kwargs: The task's parameters; the renderer's arguments.
    """

    def __init__(self, task: str | type[Task], *, render_mode: str | None = None, **kwargs: Any):
        self._begin(TaskVectorEnv, task, render_mode, kwargs)


def make_limited(
    task: str, *, max_episode_steps: int | None = None, **kwargs: Any
) -> gymnasium.Env[Any, Any]:
    """The same, ended by a time limit (None: the task's own).

    For packages' tasks, whose limit gymnasium's registry cannot know before they are imported. So
    ``gymnasium.make(…, max_episode_steps=…)`` can shorten, but not lengthen it.
    """
    env: gymnasium.Env[Any, Any] = TaskEnv(task, **kwargs)
    if max_episode_steps is None:
        max_episode_steps = load_task(task).max_episode_steps
    return gymnasium.wrappers.TimeLimit(env, max_episode_steps) if max_episode_steps else env
