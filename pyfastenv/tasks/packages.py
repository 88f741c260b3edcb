"""The tasks that installed packages ship, in gymnasium's registry; done by ``import pyfastenv``.

A package says in its pyproject.toml

    [project.entry-points."pyfastenv.tasks"]
    "me/Walker-v0" = "my_package.walker:Walker"
"""

from __future__ import annotations

from importlib.metadata import entry_points

from gymnasium.envs.registration import register, registry

GROUP = "pyfastenv.tasks"


def register_packages() -> None:
    """Registers the tasks of installed packages; imports none of them."""
    for point in entry_points(group=GROUP):
        if point.name not in registry:
            register(
                id=point.name,
                entry_point="pyfastenv.tasks.env:make_limited",
                vector_entry_point="pyfastenv.tasks.vector_env:TaskVectorEnv",
                kwargs={"task": point.value},
            )
