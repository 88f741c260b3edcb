"""Trajectories of each environment, however it is stepped, comparable bit for bit."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from parity import random_actions

import pyfastenv


def bits(value: Any, i: int) -> Any:
    """Row i of an array or of a dict of them as plain bytes, without absent info entries."""
    if isinstance(value, dict):
        return {
            key: bits(column, i)
            for key, column in value.items()
            if not key.startswith("_") and key != "env_id" and value.get("_" + key, _ALL)[i]
        }
    row = value[i]
    if row is None:
        return None
    return row.dtype.str, row.shape, row.tobytes()


class _All:
    def __getitem__(self, i: int) -> bool:
        return True


_ALL: Any = _All()  # gymnasium gives final_info's dict no mask of its own


def row_of(result: tuple[Any, ...], i: int) -> tuple[Any, ...]:
    """Everything that step, recv or reset says of row i, comparable with ==."""
    return tuple(bits(part, i) for part in result)


def action_table(envs: pyfastenv.FastVectorEnv, steps: int, seed: int = 0) -> np.ndarray:
    """(steps, num_envs, ...) random actions."""
    rng = np.random.default_rng(seed)
    space = envs.single_action_space
    return np.stack([random_actions(space, rng, envs.num_envs) for _ in range(steps)])


def reset_ended(
    envs: pyfastenv.FastVectorEnv, ended: np.ndarray
) -> Iterator[tuple[int, tuple[Any, ...]]]:
    """With autoreset disabled, resets what has ended; yields (env_id, row) of each."""
    if envs.autoreset_mode.value != "Disabled" or not ended.any():
        return
    result = envs.reset(options={"reset_mask": ended})
    for i in np.flatnonzero(ended):
        yield int(i), row_of(result, i)


def step_through(envs: pyfastenv.FastVectorEnv, actions: np.ndarray) -> list[list[Any]]:
    """Whole steps; the trajectory of each environment."""
    trajectories: list[list[Any]] = [[] for _ in range(envs.num_envs)]
    for a in actions:
        result = envs.step(a)
        for i, trajectory in enumerate(trajectories):
            trajectory.append(row_of(result, i))
        for i, row in reset_ended(envs, result[2] | result[3]):
            trajectories[i].append(row)
    return trajectories


def send_through(
    envs: pyfastenv.FastVectorEnv, actions: np.ndarray, rng: np.random.Generator
) -> list[list[Any]]:
    """Random subsets in random order, received in random portions; the same trajectories."""
    num_envs = envs.num_envs
    trajectories: list[list[Any]] = [[] for _ in range(num_envs)]
    done = np.zeros(num_envs, int)  # steps sent
    free = np.ones(num_envs, bool)
    resetting = np.zeros(num_envs, bool)  # with autoreset disabled, what has ended
    while (done < len(actions)).any() or not free.all():
        ready = np.flatnonzero(free & (done < len(actions)))
        if len(ready) and (free.all() or rng.random() < 0.7):
            ids = rng.permutation(ready)[: rng.integers(1, len(ready) + 1)]
            envs.send(actions[done[ids], ids], ids)
            done[ids] += 1
            free[ids] = False
            continue
        max_envs = int(rng.integers(1, num_envs + 1))
        least = [None, int(rng.integers(1, max_envs + 1))][rng.integers(2)]
        timeout = [None, 0.0, 1e-4, 0.01][rng.integers(4)]
        most = max_envs if least is not None and rng.random() < 0.5 else None
        result = envs.recv(least, timeout, max_envs=most)
        ids = result[4]["env_id"]
        assert 0 < len(ids) == len(set(ids)) <= (most or num_envs) and not free[ids].any()
        assert timeout is not None or len(ids) >= min(least or 0, num_envs - free.sum())
        free[ids] = True
        for k, i in enumerate(ids):
            row = row_of(result, k)
            trajectories[i].append((row[0], row[-1]) if resetting[i] else row)
        resetting[ids] = False
        ended = ids[result[2] | result[3]]
        if envs.autoreset_mode.value == "Disabled" and len(ended):
            envs.async_reset(env_ids=ended)
            resetting[ended] = True
            free[ended] = False
    return trajectories


def assert_same_trajectories(ours: list[list[Any]], expected: list[list[Any]]) -> None:
    for i, (a, b) in enumerate(zip(ours, expected, strict=True)):
        first = next((t for t, (x, y) in enumerate(zip(a, b, strict=True)) if x != y), None)
        assert first is None, f"environment {i} differs first in row {first}"
