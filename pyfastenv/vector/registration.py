"""Registers our ids in gymnasium's registry, when pyfastenv is imported.

The environments, as ``pyfastenv/<id>``, and the own tasks that installed packages ship. Such a
package says in its pyproject.toml

    [project.entry-points."pyfastenv.tasks"]
    "me/Walker-v0" = "my_package.walker:Walker"
"""

from __future__ import annotations

from importlib.metadata import entry_points

from gymnasium.envs.registration import register, registry

from pyfastenv.vector import specs


def register_envs() -> None:
    """Registers ``pyfastenv/HalfCheetah-v5`` and the others for ``make_vec`` and ``make``."""
    for info in specs.registry():
        env_id = f"pyfastenv/{info.id}"
        if env_id in registry:
            continue
        register(
            id=env_id,
            entry_point="pyfastenv.vector.env:FastEnv",
            vector_entry_point="pyfastenv.vector.vector_env:FastVectorEnv",
            max_episode_steps=info.max_episode_steps,
            reward_threshold=info.reward_threshold,
            kwargs={"env_id": info.id},
        )


def register_packages() -> None:
    """Registers the tasks of installed packages; imports none of them."""
    for point in entry_points(group="pyfastenv.tasks"):
        if point.name not in registry:
            register(
                id=point.name,
                entry_point="pyfastenv.tasks.pool.env:make_limited",
                vector_entry_point="pyfastenv.tasks.pool.vector_env:TaskVectorEnv",
                kwargs={"task": point.value},
            )
