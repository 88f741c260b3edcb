"""Many different small policies at once: how an episode of each of them ended."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from gymnasium.vector import AutoresetMode
from numpy.typing import NDArray

from pyfastenv.nn.policy_spec import PolicySpec
from pyfastenv.sampling.rollouts import RolloutBatch, rollout
from pyfastenv.vector.arguments import integer
from pyfastenv.vector.vector_env import FastVectorEnv

_STEPS = 50  # at a time: what is in memory, and how long an ended episode's environment plays on


@dataclass(frozen=True)
class Outcomes:
    """The first episodes of K policies, n of each.

    Attributes:
        returns: ``(K, n)`` float64, sums of rewards.
        lengths: ``(K, n)`` int64 [steps].
        final_obs: ``(K, n, obs_size)`` float64, flat.
        infos: ``(K, n)`` float64, the last steps' that are numbers: for descriptors of behaviour,
            which an own task writes into its ``info``; NaN where physics diverged.
    """

    returns: NDArray[np.float64]
    lengths: NDArray[np.int64]
    final_obs: NDArray[np.float64]
    infos: dict[str, NDArray[np.float64]]


def evaluate_population(envs: FastVectorEnv, policies: PolicySpec, seed: int) -> Outcomes:
    """Plays episodes of K policies side by side, and keeps no observation but the last.

    Args:
        envs: K times n environments, autoreset mode SameStep, with a limit on an episode's steps.
            They are reset; environment i plays policy i // n.
        policies: Evolution strategies' vectors become policies by :meth:`PolicySpec.of_vectors`.
        seed: Of the first episode, ``seed + 1`` of the second, … of every policy alike, so that
            policies are compared by the same starts.

    Raises:
        ValueError: Another number of environments, another autoreset mode, or no limit.
        EnvError: Environments raised, or policies gave NaN.
    """
    k = policies.num_policies
    each, rest = divmod(envs.num_envs, k)
    if rest or not each:
        raise ValueError(f"envs: expected a multiple of {k}, one per policy, got {envs.num_envs}")
    if envs.autoreset_mode != AutoresetMode.SAME_STEP:
        raise ValueError(f"envs: expected autoreset_mode SameStep, got {envs.autoreset_mode.value}")
    if envs.max_episode_steps is None:
        raise ValueError("envs: without max_episode_steps an episode need not end")
    seed = integer("seed", seed, minimum=0, below=2**63)
    envs.reset(seed=[seed + i % each for i in range(envs.num_envs)])
    core_policy = policies.to_core(envs.single_action_space)
    ids = np.arange(envs.num_envs) // each
    steps = min(_STEPS, envs.max_episode_steps)
    batch = RolloutBatch.allocate(envs, steps, dtype=torch.float64)
    outcomes = Outcomes(
        np.zeros(envs.num_envs),
        np.zeros(envs.num_envs, np.int64),
        np.zeros((envs.num_envs, envs.obs_size)),
        {},
    )
    running = np.ones(envs.num_envs, np.bool_)
    while running.any():
        ended = rollout(envs, core_policy, steps, policy_id=ids, out=batch).episodes
        env_ids, rows = np.unique(ended.env_ids.numpy(), return_index=True)  # each one's first
        new = running[env_ids]
        env_ids, rows = env_ids[new], rows[new]
        for name in ("returns", "lengths", "final_obs"):
            getattr(outcomes, name)[env_ids] = getattr(ended, name).numpy()[rows]
        for name, values in ended.infos.items():
            column = outcomes.infos.setdefault(name, np.zeros(envs.num_envs))
            column[env_ids] = values.numpy()[rows]
        running[env_ids] = False
    shape = (k, each)
    return Outcomes(
        outcomes.returns.reshape(shape),
        outcomes.lengths.reshape(shape),
        outcomes.final_obs.reshape(*shape, -1),
        {name: each.reshape(shape) for name, each in outcomes.infos.items()},
    )
