"""Rows of n steps are those that a slow program makes of everything that was collected."""

import pytest
import torch
from algorithms import make, small
from torch import Tensor

from pyfastenv.training.actor_critic import Batch

NUM_ENVS, CAPACITY = 3, 100  # of each seed: the ring does not end with a step of all environments


@pytest.mark.parametrize(("name", "n_step"), [("td3", 2), ("sac", 5), ("drqv2", 3)])
def test_rows_are_those_of_a_slow_program(name: str, n_step: int) -> None:
    # a random policy lets it fall after 6 steps, some time limits come before
    env_kwargs = {**small(name).env_kwargs, "max_episode_steps": 7}
    options = {"env_id": "InvertedPendulum-v5", "env_kwargs": env_kwargs}
    algorithm = make(
        small(name, **options, num_seeds=2, num_envs=NUM_ENVS, buffer_size=CAPACITY, n_step=n_step)
    )
    collected: list[tuple[Tensor, Tensor]] = []
    observe = algorithm.observe

    def watched(rows: Tensor) -> None:
        collected.append((rows.clone(), algorithm.collector.ended.clone()))
        observe(rows)

    algorithm.observe = watched
    for until in (60, 90, 120, 180):  # explored; following; the ring is full; it has turned
        while algorithm.global_step < until:
            algorithm.iterate()
        assert_rows_are_right(algorithm, collected, n_step)
    gamma, layout = algorithm.config.gamma, algorithm.layout
    found = layout.continues(algorithm.replayed(torch.arange(CAPACITY).expand(2, -1)))
    for weight in (0.0, *(gamma**i for i in range(n_step))):
        assert (found - weight).abs().min() < 1e-6  # each kind of end is among them


def assert_rows_are_right(
    algorithm: object, collected: list[tuple[Tensor, Tensor]], n_step: int
) -> None:
    rows, ended = (torch.cat(parts, 1) for parts in zip(*collected, strict=True))
    total = rows.shape[1]
    size = min(total, CAPACITY)
    found = algorithm.replayed(torch.arange(size).expand(2, -1))  # type: ignore[attr-defined]
    batch = Batch.of(rows, algorithm.layout)  # type: ignore[attr-defined]
    for k in range(2):
        for first in range(total - size, total):
            reward, weight, at = 0.0, 1.0, first
            for m in range(n_step):
                reward += 0.99**m * float(batch.rewards[k, at])
                weight = 0.99**m * float(batch.continues[k, at])
                if ended[k, at] or at + NUM_ENVS >= total or m == n_step - 1:
                    break
                at += NUM_ENVS
            mine = found[k, first % CAPACITY]
            wanted = torch.cat((
                batch.obs[k, first], batch.actions[k, first], batch.next_obs[k, at],
                torch.tensor([reward, weight]),
            ))  # fmt: skip
            torch.testing.assert_close(mine, wanted, rtol=0.0, atol=1e-6)
