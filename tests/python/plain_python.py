"""A pool of own tasks beside the same task in plain Python, under the same actions."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from parity import assert_same

import pyfastenv


class Pair(NamedTuple):
    """The pool and plain Python, and what both have just returned: of a reset or of a step."""

    envs: pyfastenv.FastVectorEnv
    action: Any  # None: a reset
    results: tuple[Any, ...]
    plain_results: tuple[Any, ...]


def beside_plain(
    task: Any,
    steps: int,
    *,
    seed: int = 7,
    num_envs: int = 1,
    pool: dict[str, Any] | None = None,
    **kwargs: Any,
) -> Iterator[Pair]:
    """Steps both under random actions, each time asserting that the first environment is plain.

    Observations, rewards, flags and infos have equal bits; where an episode ends, all are reset.

    Args:
        task: A class or an id.
        steps: How many, after the reset with ``seed``.
        seed: Of the first reset, and of the actions.
        num_envs: Environments of the pool, which all get the same actions.
        pool: Arguments of the pool alone.
        **kwargs: Arguments of both.

    Yields:
        After each reset and step.
    """
    envs = pyfastenv.make_vec(
        task, num_envs, autoreset_mode="Disabled", **{"num_threads": 1, **(pool or {})}, **kwargs
    )
    plain = pyfastenv.debug(task, **kwargs)
    space: Any = envs.single_action_space
    rng, action = np.random.default_rng(seed), None
    results, expected = envs.reset(seed=seed), plain.reset(seed=seed)
    for _ in range(steps + 1):
        assert_same(results[0][0], expected[0])
        for name, value in expected[-1].items():
            assert_same(results[-1][name][:1], np.asarray(value)[None], name)
        yield Pair(envs, action, results, expected)
        if len(expected) == 5:
            assert tuple(part[0] for part in results[1:4]) == expected[1:4]
            if (results[2] | results[3]).any():
                results, expected = envs.reset(), plain.reset()
                assert_same(results[0][0], expected[0])
        low, high = np.maximum(space.low, -1e3), np.minimum(space.high, 1e3)
        action = rng.uniform(low, high).astype(space.dtype)
        results, expected = envs.step(np.stack([action] * num_envs)), plain.step(action)
