"""Pools of transitions, as a list of tuples and as arrays."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Batch = tuple[Array, ...]  # obs, actions, rewards, next obs, continues


class ListPool:
    """The latest transitions, as a list of tuples."""

    def __init__(self, capacity: int):
        self.capacity = capacity
        self._items: list[Any] = []
        self._next = 0

    def __len__(self) -> int:
        return len(self._items)

    def push(self, *batch: Array) -> None:
        """Adds transitions one by one."""
        for row in zip(*batch, strict=True):
            if len(self._items) < self.capacity:
                self._items.append(None)
            self._items[self._next] = row
            self._next = (self._next + 1) % self.capacity

    def sample(self, n: int) -> Batch:
        """Draws n, stacked field by field."""
        rows = random.choices(self._items, k=n)
        return tuple(np.stack(field) for field in zip(*rows, strict=True))

    def all(self) -> Batch:
        """Every transition."""
        return tuple(np.stack(field) for field in zip(*self._items, strict=True))


class ArrayPool:
    """The same in arrays that are allocated once."""

    def __init__(self, capacity: int):
        self.capacity = capacity
        self._fields: list[Array] = []
        self._count = 0  # of all that were ever pushed

    def __len__(self) -> int:
        return min(self._count, self.capacity)

    def push(self, *batch: Array) -> None:
        """Adds transitions at once."""
        if not self._fields:
            self._fields = [np.empty((self.capacity, *x.shape[1:]), np.float32) for x in batch]
        where = (self._count + np.arange(len(batch[0]))) % self.capacity
        for mine, field in zip(self._fields, batch, strict=True):
            mine[where] = field
        self._count += len(batch[0])

    def sample(self, n: int) -> Batch:
        """Draws n."""
        rows = np.random.randint(len(self), size=n)
        return tuple(field[rows] for field in self._fields)

    def all(self) -> Batch:
        """Every transition."""
        return tuple(field[: len(self)] for field in self._fields)
