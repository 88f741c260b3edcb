"""Loaders of random play, to be compared: in the loop, in other processes, and by the pool.

Each is a context manager that gives an iterator of batches: 1,024 transitions of HalfCheetah-v5.
Workers play with seeds of their own: no two make the same transitions.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import partial
from typing import Any

import gymnasium
import numpy as np
import torch
from torch import Tensor
from torch.utils.data import DataLoader, IterableDataset, get_worker_info

import pyfastenv
from pyfastenv.nn.networks import MLP
from pyfastenv.sampling.rollouts import RolloutBatch
from pyfastenv.sampling.staging import Collector, PinnedRing

Batch = tuple[Tensor, Tensor, Tensor]  # obs, actions, rewards
ENV_ID = "HalfCheetah-v5"
NUM_ENVS, NUM_STEPS = 16, 64  # gymnasium has one environment and as many transitions


def play(worker: int) -> Iterator[Batch]:
    """Batches of random actions in one gymnasium environment, by the worker's own seed."""
    env = gymnasium.make(ENV_ID)
    obs, _ = env.reset(seed=worker)
    env.action_space.seed(worker)
    while True:
        rows: list[tuple[Any, Any, float]] = []
        for _ in range(NUM_ENVS * NUM_STEPS):
            action = env.action_space.sample()
            next_obs, reward, terminated, truncated, _ = env.step(action)
            rows.append((obs, action, float(reward)))
            obs = env.reset()[0] if terminated or truncated else next_obs
        columns = (np.asarray(column, np.float32) for column in zip(*rows, strict=True))
        first, second, third = (torch.from_numpy(column) for column in columns)
        yield first, second, third


class Transitions(IterableDataset[Batch]):
    """:func:`play` for a DataLoader."""

    def __iter__(self) -> Iterator[Batch]:
        worker = get_worker_info()
        return play(0 if worker is None else worker.id)


@contextmanager
def _data_loader(num_workers: int) -> Iterator[Iterator[Batch]]:
    loader: DataLoader[Any] = DataLoader(
        Transitions(),
        batch_size=None,
        num_workers=num_workers,
        multiprocessing_context="spawn" if num_workers else None,
    )
    iterator = iter(loader)
    try:
        yield iterator
    finally:
        shut_down = getattr(iterator, "_shutdown_workers", None)
        if shut_down is not None:
            # PyTorch ends its workers while their feeding threads may still be in C++ code, which
            # now and then aborts one: nothing is lost by it
            with suppress(RuntimeError):
                shut_down()


def _fill(worker: int, queue: Any) -> None:
    torch.set_num_threads(1)
    for batch in play(worker):
        queue.put(tuple(column.numpy() for column in batch))


@contextmanager
def _processes(count: int) -> Iterator[Iterator[Batch]]:
    """Processes of one's own that put batches into a queue."""
    context = multiprocessing.get_context("spawn")
    queue = context.Queue(2 * count)
    workers = [context.Process(target=_fill, args=(i, queue), daemon=True) for i in range(count)]
    for worker in workers:
        worker.start()

    def batches() -> Iterator[Batch]:
        while True:
            first, second, third = map(torch.from_numpy, queue.get())
            yield first, second, third

    try:
        yield batches()
    finally:
        for worker in workers:
            worker.terminate()
            worker.join()
        queue.close()


@contextmanager
def _pool(overlap: bool) -> Iterator[Iterator[Batch]]:
    """pyfastenv on one thread, in the caller's thread or in the Collector's."""
    envs = pyfastenv.make_vec(
        ENV_ID, NUM_ENVS, num_threads=1, autoreset_mode="SameStep", infos=False
    )
    envs.reset(seed=0)
    policy = MLP((17, 6)).spec(log_std=np.zeros((1, 6), np.float32))
    layout = {
        name: (tuple(x.shape), x.dtype)
        for name, x in RolloutBatch.allocate(envs, NUM_STEPS).tensors().items()
    }

    def collect(tensors: dict[str, Tensor]) -> None:
        pyfastenv.rollout(envs, policy, NUM_STEPS, out=RolloutBatch.of(tensors))

    def batches(collector: Collector[None]) -> Iterator[Batch]:
        while True:
            batch = RolloutBatch.of(collector.next()[0])
            obs, actions = batch.obs.flatten(0, 1).float(), batch.actions.flatten(0, 1)
            yield obs, actions, batch.rewards.flatten().float()

    with Collector(collect, PinnedRing(layout, 2, "cpu"), overlap=overlap) as collector:
        yield batches(collector)
    envs.close()


FOREGROUND, WORKER = "gymnasium in the loop", "DataLoader, 1 worker"
TWO_WORKERS, PROCESSES = "DataLoader, 2 workers", "2 processes of one's own"
OURS, OURS_BEHIND = "ours in the loop", "ours, Collector"
LOADERS: dict[str, Callable[[], AbstractContextManager[Iterator[Batch]]]] = {
    FOREGROUND: partial(_data_loader, 0),
    WORKER: partial(_data_loader, 1),
    TWO_WORKERS: partial(_data_loader, 2),
    PROCESSES: partial(_processes, 2),
    OURS: partial(_pool, False),
    OURS_BEHIND: partial(_pool, True),
}
