"""Closed-loop rollouts: the pool's workers choose the actions themselves.

A policy is copied into the core once (:class:`PolicySpec`), then each worker takes environments and
runs them for many steps: no barrier, no Python, no GIL. See docs/rollout.md.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import gymnasium
import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from pyfastenv import _core
from pyfastenv.errors import EnvError
from pyfastenv.nn.policy_spec import Exportable, PolicySpec
from pyfastenv.sampling.obs_groups import named_components
from pyfastenv.vector.arguments import integer
from pyfastenv.vector.rows import info_columns
from pyfastenv.vector.vector_env import FastVectorEnv


@dataclass(frozen=True)
class Episodes:
    """Holds the E episodes that ended in a rollout, by step and environment, in CPU tensors."""

    steps: Tensor  # (E,) int64: of the rollout
    env_ids: Tensor  # (E,) int64
    returns: Tensor  # (E,) float64, undiscounted, from the episode's start
    lengths: Tensor  # (E,) int64
    terminated: Tensor  # (E,) bool; False: truncated
    final_obs: Tensor  # (E, obs_size)
    # (E,) float64 by name: the last step's infos that are numbers; NaN where the physics diverged
    infos: Mapping[str, Tensor] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.steps)


def episode_means(infos: Mapping[str, Tensor]) -> dict[str, float]:
    """Means over episodes of the infos that sum one up: ``episode_…``, ``terminated_…`` and
    ``is_success``.

    Args:
        infos: ``(E,)`` each, of the episodes' last steps; those that are NaN are left out.

    Returns:
        By the info's name without ``episode_``.
    """
    means = {
        name.removeprefix("episode_"): float(values.nanmean())
        for name, values in infos.items()
        if name.startswith(("episode_", "terminated_")) or name == "is_success"
    }
    return {name: mean for name, mean in means.items() if math.isfinite(mean)}


def joined_infos(parts: Sequence[Episodes]) -> dict[str, Tensor]:
    """Several rollouts' infos by name; NaN where one of them has none of a name."""
    names = dict.fromkeys(name for part in parts for name in part.infos)
    none = [torch.full((len(part),), math.nan, dtype=torch.float64) for part in parts]
    return {
        name: torch.cat([p.infos.get(name, no) for p, no in zip(parts, none, strict=True)])
        for name in names
    }


def infos_of_rows(rows: Sequence[Mapping[str, float]]) -> dict[str, Tensor]:
    """Infos ``(E,)`` by name, of one mapping per episode; NaN where one has none of a name."""
    return {name: torch.from_numpy(column) for name, column in info_columns(rows).items()}


@dataclass(kw_only=True)
class RolloutBatch:
    """Holds ``num_steps`` (T) steps of ``num_envs`` (N) environments, in tensors on the CPU.

    ``obs[t]`` is what the policy saw when it chose ``actions[t]``, which led to ``rewards[t]``.
    With SAME_STEP autoreset ``obs[t + 1]`` after an episode's end is the new episode's first; the
    ended one's last is in ``episodes.final_obs``. With NEXT_STEP it is the last observation, and
    the step after it is the reset (``autoresets``): its action was not used, its reward is 0.

    Observations are flat; where the space is a Dict, ``envs.obs_views.of(batch.obs)`` has its
    entries, ``(T, N, *shape)``: views, which last as long as the batch's storage.
    """

    obs: Tensor  # (T, N, obs_size) float32 or float64, not normalised
    actions: Tensor  # (T, N, action_size) float32 as drawn, or (T, N) int64
    log_probs: Tensor  # (T, N) float32 of the actions as drawn; 0 for deterministic policies
    rewards: Tensor  # (T, N) float32 or float64
    terminations: Tensor  # (T, N) bool
    truncations: Tensor  # (T, N) bool
    autoresets: Tensor  # (T, N) bool
    last_obs: Tensor  # (N, obs_size) after the last step
    episodes: Episodes = field(default_factory=lambda: _episodes({}))

    @classmethod
    def allocate(
        cls,
        envs: FastVectorEnv,
        num_steps: int,
        *,
        dtype: torch.dtype = torch.float32,
        obs_dtype: torch.dtype | None = None,
        pin_memory: bool = False,
    ) -> RolloutBatch:
        """Allocates a batch, to give to :func:`rollout` again and again.

        Args:
            envs: For ``num_envs`` and the spaces.
            num_steps: T.
            dtype: Of observations and rewards: float32, or float64 for exactly what ``step`` gives.
            obs_dtype: Of observations, if it is another; of pixels uint8.
            pin_memory: For non-blocking copies to CUDA.
        """
        obs_dtype = obs_dtype or dtype
        if envs.pixels is not None and obs_dtype != torch.uint8:
            raise ValueError("rollout: expected environments without pixels; call step for these")
        shape = (integer("num_steps", num_steps, minimum=1), envs.num_envs)
        obs_size = (envs.obs_size,)

        def empty(*size: int, dtype: torch.dtype) -> Tensor:
            return torch.empty(size, dtype=dtype, pin_memory=pin_memory)

        if isinstance(envs.single_action_space, gymnasium.spaces.Box):
            actions = empty(*shape, *envs.single_action_space.shape, dtype=torch.float32)
        else:
            actions = empty(*shape, dtype=torch.int64)
        return cls(
            obs=empty(*shape, *obs_size, dtype=obs_dtype),
            actions=actions,
            log_probs=empty(*shape, dtype=torch.float32),
            rewards=empty(*shape, dtype=dtype),
            terminations=empty(*shape, dtype=torch.bool),
            truncations=empty(*shape, dtype=torch.bool),
            autoresets=empty(*shape, dtype=torch.bool),
            last_obs=empty(envs.num_envs, *obs_size, dtype=obs_dtype),
        )

    @classmethod
    def of(cls, tensors: Mapping[str, Tensor], episodes: Episodes | None = None) -> RolloutBatch:
        """Makes a batch of :meth:`tensors`, on whatever device they are."""
        batch = cls(**tensors)  # type: ignore[arg-type]
        if episodes is not None:
            batch.episodes = episodes
        return batch

    def tensors(self) -> dict[str, Tensor]:
        """Returns the storage by name, without the episodes."""
        return {name: getattr(self, name) for name in _STORAGE}

    def cpu(self) -> RolloutBatch:
        """Copies the batch to the CPU; returns itself if it is there."""
        tensors = {name: tensor.cpu() for name, tensor in self.tensors().items()}
        return RolloutBatch.of(tensors, self.episodes)

    @property
    def num_steps(self) -> int:
        """T."""
        return self.rewards.shape[0]

    @property
    def num_envs(self) -> int:
        """N."""
        return self.rewards.shape[1]


_STORAGE = (
    "obs",
    "actions",
    "log_probs",
    "rewards",
    "terminations",
    "truncations",
    "autoresets",
    "last_obs",
)


def rollout(
    envs: FastVectorEnv,
    policy: PolicySpec | Exportable | _core.Policy,
    num_steps: int,
    *,
    policy_id: Sequence[int] | NDArray[np.integer] | Tensor | None = None,
    out: RolloutBatch | None = None,
) -> RolloutBatch:
    """Runs every environment for ``num_steps`` steps with actions of a policy.

    The environments go on from where they are, episode after episode; the trajectories are those
    that ``step`` gives for the same (clipped) actions, bit for bit. Each environment draws its
    policy's random numbers from a stream of its own, seeded by ``reset(seed=)`` and part of
    ``get_state()``: results depend neither on the number of threads nor on the other environments.

    Args:
        envs: Reset before; autoreset mode ``"SameStep"`` or ``"NextStep"``.
        policy: A :class:`PolicySpec`, a module with a method ``spec()`` (pyfastenv.nn.networks), or
            what :meth:`PolicySpec.to_core` returned.
        num_steps: T.
        policy_id: ``(num_envs,)`` ints: which of the K policies each environment follows; None:
            the first.
        out: Where to write; None allocates. It is returned, and overwritten by the next call that
            gets it.

    Raises:
        ValueError: The policy does not fit the environments, or has NaN parameters; autoreset is
            disabled; ``out`` has wrong shapes or dtypes, or two of its tensors share memory. No
            environment has moved.
        IndexError: A policy_id out of range.
        ResetNeededError: Before the first reset, or after an interrupted call.
        EnvError: Environments raised, or their policy gave NaN; they are in the state before the
            step that failed, and their rows are zero from there on. ``error.results`` is the batch.
    """
    if not isinstance(policy, PolicySpec | _core.Policy) and isinstance(policy, Exportable):
        policy = policy.spec()
    if isinstance(policy, PolicySpec):
        policy = policy.to_core(envs.single_action_space)
    if not isinstance(policy, _core.Policy):
        raise TypeError(
            "policy: expected a PolicySpec or a module with a method spec(), got "
            f"{type(policy).__name__}"
        )
    if out is None:
        out = RolloutBatch.allocate(envs, num_steps)
    arrays = {name: tensor.numpy() for name, tensor in out.tensors().items()}
    ids = None if policy_id is None else np.asarray(policy_id)
    try:
        out.episodes = _episodes(envs.run_rollout(policy, ids, num_steps, arrays))
    except EnvError as error:
        out.episodes = _episodes(cast(dict[str, Any], error.results))
        messages = [named_components(envs, message) for message in error.messages]
        raise EnvError(error.env_ids, messages, out) from None
    return out


def _episodes(arrays: dict[str, Any]) -> Episodes:
    def tensor(name: str, dtype: torch.dtype, *shape: int) -> Tensor:
        array = arrays.get(name)
        return torch.empty(shape, dtype=dtype) if array is None else torch.from_numpy(array)

    return Episodes(
        steps=tensor("steps", torch.int64, 0),
        env_ids=tensor("env_ids", torch.int64, 0),
        returns=tensor("returns", torch.float64, 0),
        lengths=tensor("lengths", torch.int64, 0),
        terminated=tensor("terminated", torch.bool, 0),
        final_obs=tensor("final_obs", torch.float32, 0, 0),
        infos={name: torch.from_numpy(column) for name, column in arrays.get("infos", {}).items()},
    )
