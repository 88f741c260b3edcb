"""The algorithms by name: one line each. Imports none of them until it is asked to.

An algorithm's module has ``Config`` (a :class:`pyfastenv.training.config.RunConfig`),
``train(config)`` and ``load_policy(config, state)``, which makes a deterministic policy on the CPU
of what ``state_dict()`` gave.
"""

from __future__ import annotations

from importlib import import_module
from types import ModuleType

ALGORITHMS = {
    "ddpg": "pyfastenv.algorithms.ddpg",
    "mbpo": "pyfastenv.algorithms.mbpo",
    "ppo": "pyfastenv.algorithms.ppo",
    "sac": "pyfastenv.algorithms.sac",
}


def algorithm_module(name: str) -> ModuleType:
    """The module of an algorithm, imported now.

    Raises:
        ValueError: Unknown name; the message has the known ones.
    """
    if name not in ALGORITHMS:
        raise ValueError(f"no algorithm {name!r}; there are {', '.join(ALGORITHMS)}")
    return import_module(ALGORITHMS[name])
