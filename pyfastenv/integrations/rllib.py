"""RLlib: the environments for its env runners, a pool each. Needs ray[rllib] >= 2.50.

For the new API stack, through gymnasium's vector entry point. RLlib expects an ended environment to
restart on the step after, so NEXT_STEP is the mode.
"""

from __future__ import annotations

from typing import Any

import ray
from gymnasium.vector import AutoresetMode
from ray.tune import register_env

from pyfastenv.integrations import require
from pyfastenv.tasks.language.task import Task
from pyfastenv.tasks.pool.make import make_vec
from pyfastenv.vector.vector_env import FastVectorEnv


def register_rllib(env_id: str, **kwargs: Any) -> str:
    """Registers environments with RLlib.

    Use it as ``config.environment(register_rllib("HalfCheetah-v5"))``, together with
    ``config.env_runners(gym_env_vectorize_mode="vector_entry_point")``.

    Each env runner makes ``num_envs_per_env_runner`` environments, stepped by as many threads as
    Ray gave it CPUs (``num_cpus_per_env_runner``); one in the driver (``num_env_runners=0``) uses
    the CPUs of the process.

    Args:
        env_id: As for :func:`pyfastenv.make_vec`: ``"HalfCheetah-v5"``, an own task …
        **kwargs: See :class:`pyfastenv.FastVectorEnv`; ``config.environment(env_config=…)`` adds to
            them and overrides them. The autoreset mode is chosen here, and gymnasium's info entries
            are left out unless asked for: RLlib makes a dict per environment and step of them.

    Returns:
        The name: ``"pyfastenv/" + env_id``.
    """
    name = f"pyfastenv/{env_id.removeprefix('pyfastenv/')}"
    register_env(name, lambda context: make_rllib(env_id, **{**kwargs, **context}))
    return name


def make_rllib(
    env_id: str | type[Task], num_envs: int | None = None, **kwargs: Any
) -> FastVectorEnv:
    """Makes the environments of an env runner, which calls it; use :func:`register_rllib`.

    Raises:
        ValueError: RLlib asks for single environments, or another autoreset mode than NEXT_STEP
            was asked for.
    """
    if num_envs is None:
        raise ValueError(
            "RLlib asks for single environments; for a pool set "
            "config.env_runners(gym_env_vectorize_mode='vector_entry_point')"
        )
    kwargs = {"infos": False, "num_threads": _assigned_cpus(), **kwargs}
    envs = make_vec(env_id, num_envs, **kwargs)
    require(envs, AutoresetMode.NEXT_STEP, "RLlib")
    return envs


def _assigned_cpus() -> int:
    """CPUs that Ray gave to this actor; 0 (those of the process) in a driver."""
    if not ray.is_initialized() or ray.get_runtime_context().get_actor_id() is None:
        return 0
    return max(1, int(ray.get_runtime_context().get_assigned_resources().get("CPU", 1)))
