"""Minari: datasets of whole episodes, written from rollouts. Needs minari >= 0.5 with HDF5 (h5py).

Observations, rewards and flags are gymnasium's for the same seeds and actions, bit for bit, in the
environment's own dtypes; so gymnasium's environment stands in the dataset, where there is one.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator
from contextlib import closing
from copy import deepcopy
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import gymnasium
import minari
import numpy as np
import torch
from gymnasium.envs.registration import EnvSpec
from gymnasium.vector import AutoresetMode
from minari.data_collector import EpisodeBuffer
from numpy.typing import NDArray

from pyfastenv.integrations import require
from pyfastenv.nn.policy_spec import PolicySpec
from pyfastenv.runs.saved import load_policy
from pyfastenv.sampling.acting import ActingPolicy, acting_steps
from pyfastenv.sampling.rollouts import RolloutBatch, rollout
from pyfastenv.tasks.pool.make import make_vec
from pyfastenv.vector.arguments import integer
from pyfastenv.vector.vector_env import FastVectorEnv

_MOST_ENVS = 64
_STEPS = 250  # of a rollout: what is in memory at once beside the episodes


def collect(
    run: Path | str,
    dataset_id: str,
    num_episodes: int = 100,
    *,
    seed: int = 0,
    greedy: bool = True,
    policy_id: int = 0,
    **metadata: Any,
) -> minari.MinariDataset:
    """Writes a dataset of a trained policy's episodes.

    Args:
        run: A run folder or a checkpoint file.
        dataset_id: ``"(namespace/)(env/)name-v0"``, which must not exist yet; where datasets are
            kept, Minari says (``MINARI_DATASETS_PATH``).
        num_episodes: How many.
        seed: Of the environments: the i-th gets ``seed + i``.
        greedy: The most likely actions; False: drawn as in the training.
        policy_id: Which of the policies, if the run trained several side by side.
        **metadata: What ``minari.create_dataset_from_buffers`` takes: ``author``, ``description`` …

    Raises:
        ValueError: The dataset exists, or its id is none; the run's policies cannot be rolled out
            by the pool.
        NoSuchPolicyError: No such policy.
    """
    num_episodes = integer("num_episodes", num_episodes, minimum=1)
    saved = load_policy(run)
    if not isinstance(saved.policy, PolicySpec):
        raise ValueError(
            f"{run}: a policy that acts in torch (a network of your own, FlashSAC) does not run "
            "inside the pool, which collects here"
        )
    if not 0 <= policy_id < saved.policy.num_policies:
        known = saved.policy.num_policies - 1
        raise IndexError(f"policy_id: expected 0 to {known}, got {policy_id}")
    made = {
        **saved.env_kwargs,
        "autoreset_mode": AutoresetMode.SAME_STEP,
        "infos": False,
        "obs_dtype": None,  # gymnasium's own; the policy sees float32 of it, as in the training
    }
    num_envs = min(num_episodes, _MOST_ENVS)
    with closing(make_vec(saved.config.env_id, num_envs, **made)) as envs:
        envs.take_values(saved.env_values)
        policy = replace(saved.policy, greedy=greedy)
        metadata = {"algorithm_name": saved.config.algorithm, **metadata}
        buffers = list(episodes(envs, policy, num_episodes, seed=seed, policy_id=policy_id))
        with warnings.catch_warnings():  # what is left out, the caller has left out
            warnings.filterwarnings("ignore", ".*is set to None", UserWarning)
            return minari.create_dataset_from_buffers(
                dataset_id, buffers, env=_spec(envs), **metadata
            )


def episodes(
    envs: FastVectorEnv,
    policy: PolicySpec | ActingPolicy,
    num_episodes: int,
    *,
    seed: int = 0,
    policy_id: int = 0,
) -> Iterator[EpisodeBuffer]:
    """A policy's episodes as Minari's buffers.

    Of n environments each gives its first ``ceil(num_episodes / n)``; taking the first that end
    instead would favour short episodes. Actions are what the environments got: a Gaussian's
    clipped to the space.

    Args:
        envs: Autoreset mode SAME_STEP, with a limit on an episode's steps. They are reset.
        policy: A :class:`PolicySpec`, or one that acts in Python (a planner).
        num_episodes: How many.
        seed: The i-th environment's is ``seed + i``; that of the buffer of its first episode.
        policy_id: Which of the policies, of a PolicySpec.

    Raises:
        ValueError: Another autoreset mode, or no limit on an episode's steps.
    """
    require(envs, AutoresetMode.SAME_STEP, "Minari", takes_dicts=True)
    if envs.max_episode_steps is None:
        raise ValueError("envs: without max_episode_steps an episode need not end")
    each = math.ceil(num_episodes / envs.num_envs)
    found: list[list[EpisodeBuffer]] = [[] for _ in range(envs.num_envs)]
    unfinished: list[list[_Piece]] = [[] for _ in range(envs.num_envs)]
    envs.reset(seed=seed)
    play = _player(envs, policy, policy_id)
    while any(len(mine) < each for mine in found):
        batch = play()
        begin = [0] * envs.num_envs
        ends = batch.episodes
        for step, i, last in zip(ends.steps, ends.env_ids, ends.final_obs, strict=True):
            i, end = int(i), int(step) + 1
            unfinished[i].append(_Piece.of(batch, i, begin[i], end))
            if len(found[i]) < each:
                own_seed = None if found[i] else seed + i
                found[i].append(_episode(envs, unfinished[i], last, own_seed))
            unfinished[i], begin[i] = [], end
        for i, first in enumerate(begin):
            unfinished[i].append(_Piece.of(batch, i, first, batch.num_steps))
    in_turn = [found[i][n] for n in range(each) for i in range(envs.num_envs)]
    yield from in_turn[:num_episodes]


def _player(
    envs: FastVectorEnv, policy: PolicySpec | ActingPolicy, policy_id: int
) -> Callable[[], RolloutBatch]:
    if isinstance(policy, ActingPolicy):
        return acting_steps(envs, policy, torch.float64)
    core_policy = policy.to_core(envs.single_action_space)
    ids = [policy_id] * envs.num_envs
    batch = RolloutBatch.allocate(envs, _STEPS, dtype=torch.float64)
    return lambda: rollout(envs, core_policy, _STEPS, policy_id=ids, out=batch)


@dataclass(frozen=True)
class _Piece:
    """Some steps of an episode, one environment's; copies."""

    obs: NDArray[np.float64]  # (steps, obs_size)
    actions: NDArray[Any]  # (steps, …) as drawn
    rewards: NDArray[np.float64]  # (steps,)
    terminations: NDArray[np.bool_]  # (steps,)
    truncations: NDArray[np.bool_]  # (steps,)

    @classmethod
    def of(cls, batch: RolloutBatch, env: int, begin: int, end: int) -> _Piece:
        names = ("obs", "actions", "rewards", "terminations", "truncations")
        return cls(*(getattr(batch, name)[begin:end, env].numpy().copy() for name in names))


def _episode(
    envs: FastVectorEnv, pieces: list[_Piece], last: torch.Tensor, seed: int | None
) -> EpisodeBuffer:
    def joined(name: str) -> NDArray[Any]:
        return np.concatenate([getattr(piece, name) for piece in pieces])

    actions = joined("actions")
    space = envs.single_action_space
    if isinstance(space, gymnasium.spaces.Box):
        actions = np.clip(actions, space.low, space.high)
    obs = np.concatenate([joined("obs"), last.double().numpy()[None]]).astype(envs.obs_dtype)
    return EpisodeBuffer(
        seed=seed,
        observations=obs if envs.obs_views is None else envs.obs_views.of(obs),
        actions=actions,
        rewards=joined("rewards"),
        terminations=joined("terminations"),
        truncations=joined("truncations"),
    )


# arguments that one environment has not, and those that gymnasium's own has not either
_OF_VECTORS = {"num_envs", "num_threads", "autoreset_mode", "copy", "infos", "max_episode_steps"}
_OURS = {"env_id", "obs_dtype", "engine"}


def _spec(envs: FastVectorEnv) -> EnvSpec:
    """How to make one: gymnasium's own, where it has one and stacks nothing, else ours."""
    assert envs.spec is not None
    made = envs.spec.kwargs
    registered = None if made.get("frame_stack") else gymnasium.registry.get(envs.env_id)
    spec = deepcopy(registered or envs.spec)
    left_out = _OF_VECTORS | (_OURS if registered else set())
    given = {name: value for name, value in made.items() if name not in left_out}
    spec.kwargs = {**registered.kwargs, **given} if registered else given
    spec.max_episode_steps = envs.max_episode_steps
    return spec
