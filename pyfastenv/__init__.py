"""pyfastenv: MuJoCo environments at the speed of bare physics, bit-identical to gymnasium.

    import pyfastenv
    envs = pyfastenv.make_vec("HalfCheetah-v5", num_envs=64)

or ``gymnasium.make_vec("pyfastenv:pyfastenv/HalfCheetah-v5", num_envs=64)``, which imports the
package by itself; importing it registers its environments.

Importing the package loads the compiled core, NumPy and gymnasium, and nothing else.
"""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from pyfastenv import _load, _moved

__version__ = "0.6.0"

_load.load_core()
_moved.find_moved()

from pyfastenv.vector.registration import (  # noqa: E402 (needs the core)
    register_envs,
    register_packages,
)

register_envs()
import_module("pyfastenv.suites").register_suites()  # by name: it is above those who import this
register_packages()

if TYPE_CHECKING:
    from pyfastenv import physics as physics
    from pyfastenv.errors import (
        BusyError,
        ClosedError,
        EnvError,
        ForkedError,
        NothingPendingError,
        ResetNeededError,
        TaskCodeError,
    )
    from pyfastenv.nn.policy_spec import PolicySpec
    from pyfastenv.rendering.renderer import Renderer
    from pyfastenv.runs.saved import load_policy
    from pyfastenv.sampling.rollouts import Episodes, RolloutBatch, rollout
    from pyfastenv.sampling.staging import Collector, PinnedRing, TorchVectorEnv
    from pyfastenv.tasks.compiler.native import compile_task
    from pyfastenv.tasks.language.fields import command, curriculum, memory
    from pyfastenv.tasks.language.rewards import reward_terms
    from pyfastenv.tasks.language.task import Task
    from pyfastenv.tasks.pool.make import debug, make_vec
    from pyfastenv.tasks.pool.registration import register
    from pyfastenv.vector.env import FastEnv
    from pyfastenv.vector.specs import env_ids
    from pyfastenv.vector.vector_env import FastVectorEnv

# what lives where; imported on first use (PEP 562)
_EXPORTS = {
    "FastEnv": "vector.env",
    "FastVectorEnv": "vector.vector_env",
    "make_vec": "tasks.pool.make",
    "load_policy": "runs.saved",
    "Task": "tasks.language.task",
    "memory": "tasks.language.fields",
    "command": "tasks.language.fields",
    "curriculum": "tasks.language.fields",
    "compile_task": "tasks.compiler.native",
    "debug": "tasks.pool.make",
    "register": "tasks.pool.registration",
    "reward_terms": "tasks.language.rewards",
    "Collector": "sampling.staging",
    "Episodes": "sampling.rollouts",
    "PinnedRing": "sampling.staging",
    "PolicySpec": "nn.policy_spec",
    "Renderer": "rendering.renderer",
    "RolloutBatch": "sampling.rollouts",
    "TorchVectorEnv": "sampling.staging",
    "rollout": "sampling.rollouts",
    "env_ids": "vector.specs",
    "BusyError": "errors",
    "ClosedError": "errors",
    "EnvError": "errors",
    "ForkedError": "errors",
    "NothingPendingError": "errors",
    "ResetNeededError": "errors",
    "TaskCodeError": "errors",
}

__all__ = [
    "BusyError",
    "ClosedError",
    "Collector",
    "EnvError",
    "Episodes",
    "FastEnv",
    "FastVectorEnv",
    "ForkedError",
    "NothingPendingError",
    "PinnedRing",
    "PolicySpec",
    "Renderer",
    "ResetNeededError",
    "RolloutBatch",
    "Task",
    "TaskCodeError",
    "TorchVectorEnv",
    "command",
    "compile_task",
    "curriculum",
    "debug",
    "env_ids",
    "load_policy",
    "make_vec",
    "memory",
    "register",
    "reward_terms",
    "rollout",
]

if find_spec("torch") is None:  # from pyfastenv import * works all the same
    __all__ = [
        name for name in __all__ if not _EXPORTS[name].startswith(("nn.", "runs.", "sampling."))
    ]


def __getattr__(name: str) -> Any:
    if name == "physics":  # a room with names of its own
        return import_module("pyfastenv.physics")
    if name not in _EXPORTS:
        raise AttributeError(f"module 'pyfastenv' has no attribute {name!r}")
    try:
        value = getattr(import_module(f"pyfastenv.{_EXPORTS[name]}"), name)
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        raise ImportError(
            f"pyfastenv.{name} needs PyTorch: pip install torch, or 'pyfastenv[train]'"
        ) from error
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_EXPORTS, "physics"})
