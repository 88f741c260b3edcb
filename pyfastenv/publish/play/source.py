"""The source: environments and what acts in them, of a run folder or of an environment alone."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from gymnasium.spaces import Box
from numpy.typing import ArrayLike, NDArray

from pyfastenv.runs.saved import load_policy
from pyfastenv.tasks.pool.make import make_vec
from pyfastenv.vector.arguments import integer
from pyfastenv.vector.vector_env import FastVectorEnv

_TOO_MANY = 65
_PICTURES = "rgb_array"  # classic control is shown by


class Source(NamedTuple):
    """Environments, what acts in them, and what the two are called."""

    envs: FastVectorEnv
    act: Callable[[Any], NDArray[Any]]
    title: str
    reset: Callable[[ArrayLike], None] | None = None  # of what remembers, in some environments


def open_source(
    what: str,
    *,
    num_envs: int,
    seed: int = 0,
    best: bool = False,
    policy_id: int = 0,
    actions: Literal["random", "zero"] = "random",
) -> Source:
    """Makes what is to be played.

    Args:
        what: A run folder or a checkpoint file; or an environment, as :func:`pyfastenv.make_vec`
            takes it.
        num_envs: How many environments, at most 64.
        seed: Of random actions.
        best: Of a run: the policy with the greatest return of its evaluations, not the newest.
        policy_id: Of a run with several seeds side by side: which policy.
        actions: Of an environment: random ones, or 0.

    Raises:
        CheckpointError: A run has no checkpoint, or none that can be read.
        NoSuchPolicyError: A run has no such policy.
        ValueError: There is no such environment, or an option that it does not have.
    """
    integer("num_envs", num_envs, minimum=1, below=_TOO_MANY)
    if not (Path(what).is_dir() or what.endswith(".pt")):
        if best or policy_id:
            raise ValueError(f"{what}: --best and --policy-id are for a run folder's policies")
        envs = _make(what, num_envs)
        return Source(envs, _without_policy(envs, actions, seed), f"{what}, {actions} actions")
    saved = load_policy(what, "best" if best else "newest")
    saved.as_torch(policy_id)  # a wrong number is said here
    title = f"{saved.config.algorithm} on {saved.config.env_id}, {saved.step:,} steps"
    envs = saved.make_envs(num_envs, _PICTURES)
    return Source(
        envs,
        lambda obs: saved.act(obs, policy_id=policy_id),
        title,
        lambda env_ids: saved.reset(env_ids, policy_id=policy_id),
    )


def _make(env: str, num_envs: int) -> FastVectorEnv:
    try:
        return make_vec(env, num_envs, autoreset_mode="SameStep", render_mode=_PICTURES)
    except ValueError as error:
        if not str(error).startswith("unknown environment id"):
            raise
        raise ValueError(f"{error}; and there is no run folder {env}") from error


def _without_policy(envs: FastVectorEnv, actions: str, seed: int) -> Callable[[Any], NDArray[Any]]:
    space = envs.action_space
    if actions == "random":
        space.seed(seed)
        return lambda obs: np.asarray(space.sample())
    zero = np.zeros(space.shape or (), space.dtype)
    if isinstance(space, Box):
        zero = np.clip(zero, space.low, space.high)
    return lambda obs: zero
