"""pyfastenv: MuJoCo environments at the speed of bare physics, bit-identical to gymnasium.

    import pyfastenv
    envs = pyfastenv.make_vec("HalfCheetah-v5", num_envs=64)

or, without importing it, ``gymnasium.make_vec("pyfastenv/HalfCheetah-v5", num_envs=64)``.

Importing the package loads the compiled core and NumPy, and nothing else; gymnasium follows with
the first environment.
"""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import _pyfastenv_gymnasium
from pyfastenv import _load

__version__ = "0.1.0"

_load.load_core()
_pyfastenv_gymnasium.install()

if TYPE_CHECKING:
    from pyfastenv.env import FastEnv
    from pyfastenv.errors import (
        BusyError,
        ClosedError,
        EnvError,
        ForkedError,
        NothingPendingError,
        ResetNeededError,
    )
    from pyfastenv.rollouts import Episodes, PolicySpec, RolloutBatch, rollout
    from pyfastenv.specs import env_ids
    from pyfastenv.staging import Collector, PinnedRing, TorchVectorEnv
    from pyfastenv.vector_env import FastVectorEnv, make_vec

# what lives where; imported on first use (PEP 562)
_EXPORTS = {
    "FastEnv": "env",
    "FastVectorEnv": "vector_env",
    "make_vec": "vector_env",
    "Collector": "staging",
    "Episodes": "rollouts",
    "PinnedRing": "staging",
    "PolicySpec": "rollouts",
    "RolloutBatch": "rollouts",
    "TorchVectorEnv": "staging",
    "rollout": "rollouts",
    "env_ids": "specs",
    "BusyError": "errors",
    "ClosedError": "errors",
    "EnvError": "errors",
    "ForkedError": "errors",
    "NothingPendingError": "errors",
    "ResetNeededError": "errors",
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
    "ResetNeededError",
    "RolloutBatch",
    "TorchVectorEnv",
    "env_ids",
    "make_vec",
    "rollout",
]

if find_spec("torch") is None:  # from pyfastenv import * works all the same
    __all__ = [name for name in __all__ if _EXPORTS[name] not in ("rollouts", "staging")]


def __getattr__(name: str) -> Any:
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
    return sorted([*globals(), *_EXPORTS])
