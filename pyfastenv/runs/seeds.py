"""All randomness of a run comes from its seed, by one tree; no two runs share a branch.

A run's seed is the entropy of a NumPy ``SeedSequence``. Each kind of randomness is a child of it
with a spawn key of its own (:class:`Stream`, then a number where there are several), and every
generator is seeded with 64 bits of its child:

    SeedSequence(seed)
    ├─ (TRAINING_ENVS,)       environment i's seed is the i-th number; i counts through the
    │                         environments of all processes, so two processes have the environments
    │                         that one with twice as many has
    ├─ (EVALUATION_ENVS,)     likewise, of the environments of evaluations and films
    ├─ (TORCH,)               torch's default generator while the algorithm is made …
    ├─ (TORCH, process)       … and from then on
    ├─ (POLICY,)              initial networks: policy, then values or critics
    ├─ (MODEL,)               … of the dynamics model
    ├─ (FLOW,)                … of the flow and the critics beside it
    ├─ (LEARNING, process)    minibatches, and noise in gradient steps
    ├─ (ACTING, process)      the policy's draws where torch makes them (in the pool, each
    │                         environment draws from a stream of its own, that of its seed)
    └─ (EXPLORATION, process) uniform actions

Seeds side by side (``num_seeds``) are ``seed``, ``seed + 1``, … and each has the tree that it has
alone. So the seeds 1, 2 and 3 of a study share nothing. (``seed + i`` for environment i, the usual
way, gives runs of neighbouring seeds nearly the same environments.) Two runs of the *same* seed do
share their environments, whatever algorithm they train.

64 bits of two children are equal with a probability of 2⁻⁶⁴.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum

import numpy as np


class Stream(IntEnum):
    """The kinds of randomness: the first number of a spawn key."""

    TRAINING_ENVS = 0
    EVALUATION_ENVS = 1
    TORCH = 2
    POLICY = 3
    MODEL = 4
    FLOW = 5
    LEARNING = 6
    ACTING = 7
    EXPLORATION = 8


def stream(seed: int, kind: Stream, *numbers: int) -> int:
    """The seed of one generator, 64 bits.

    Args:
        seed: The run's.
        kind: What it is for.
        *numbers: Which one, where there are several: the process.
    """
    return int(_spawned(seed, kind, *numbers).generate_state(1, np.uint64)[0])


def streams(seeds: Iterable[int], kind: Stream) -> list[int]:
    """:func:`stream` of several runs side by side."""
    return [stream(seed, kind) for seed in seeds]


def env_seeds(
    seed: int, num_envs: int, kind: Stream = Stream.TRAINING_ENVS, *, first: int = 0
) -> list[int]:
    """The seeds of environments ``first`` to ``first + num_envs - 1`` of a run, for ``reset``.

    Args:
        seed: The run's.
        num_envs: How many.
        kind: For training or for evaluation.
        first: The number of the first: of those in other processes come before.
    """
    return [
        int(s) for s in _spawned(seed, kind).generate_state(first + num_envs, np.uint64)[first:]
    ]


def _spawned(seed: int, *key: int) -> np.random.SeedSequence:
    return np.random.SeedSequence(seed, spawn_key=tuple(map(int, key)))
