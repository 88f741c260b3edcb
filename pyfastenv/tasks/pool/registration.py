"""Own tasks in gymnasium's registry."""

from __future__ import annotations

from typing import Any

import gymnasium
from gymnasium.envs.registration import EnvSpec

from pyfastenv.tasks.language.find import place_of
from pyfastenv.tasks.language.task import Task


def register(task: type[Task], id: str, **kwargs: Any) -> None:
    """Lets ``gymnasium.make``, its ``make_vec`` and ours find a task by an id.

    Args:
        task: The class. Other processes find it only if it stands in a module that they can import.
        id: As gymnasium wants it: ``"Quadruped-v0"``, ``"me/Quadruped-v0"``.
        **kwargs: Parameters of the task, other than its own; ``max_episode_steps``.
    """
    spec = spec_of(task, id)
    max_episode_steps = kwargs.pop("max_episode_steps", spec.max_episode_steps)
    gymnasium.register(
        id=id,
        entry_point=spec.entry_point,
        vector_entry_point=spec.vector_entry_point,
        max_episode_steps=max_episode_steps,
        kwargs={**spec.kwargs, **kwargs},
    )


def spec_of(task: type[Task], name: Any) -> EnvSpec:
    """A specification with which gymnasium makes such environments again."""
    return EnvSpec(
        id=name if isinstance(name, str) else task.__name__,
        entry_point="pyfastenv.tasks.pool.env:TaskEnv",
        vector_entry_point="pyfastenv.tasks.pool.vector_env:TaskVectorEnv",
        max_episode_steps=task.max_episode_steps,
        kwargs={"task": place_of(task)},
    )
