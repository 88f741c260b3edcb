"""Replayed pictures: each is stored once, and a stack of them is a row of their numbers."""

from __future__ import annotations

from collections import deque
from typing import Any

import torch
from torch import Tensor

from pyfastenv.sampling.buffers import replay_memory

_MOST = 2**24  # numbers that float32, the rows' type, tells apart


class FramePool:
    """The latest pictures of K seeds, a ring for each, and the stacks that environments show.

    Pictures are numbered by their places in the ring, which rows of a
    :class:`pyfastenv.sampling.buffers.ReplayPool` hold in place of observations. An episode takes
    one picture more than it has steps, so the oldest rows may lose theirs: see :attr:`intact`.

    Args:
        num_seeds: K.
        num_envs: E of each seed.
        capacity: Pictures of a seed; new ones replace the oldest.
        shape: One picture's channels, height and width.
        frame_stack: S pictures of an observation, the oldest first.
        device: Where they are kept.

    Raises:
        ValueError: Too few pictures for a stack of each environment, or more than can be numbered.
    """

    def __init__(
        self,
        num_seeds: int,
        num_envs: int,
        capacity: int,
        shape: tuple[int, int, int],
        frame_stack: int,
        device: torch.device | str = "cpu",
    ):
        # a stack spans that many steps, and one that ends an episode adds two pictures
        least = 2 * num_envs * (frame_stack + 1)
        if not least <= capacity <= _MOST:
            raise ValueError(
                f"buffer_size: expected {least} to {_MOST:,} pictures, got {capacity:,}"
            )
        self._capacity = capacity
        self._pictures = replay_memory(
            num_seeds, capacity, *shape, dtype=torch.uint8, device=device
        )
        self._count = torch.zeros(num_seeds, dtype=torch.int64)  # pictures so far
        # (K, E, S): whose pictures environments show, counted from the first; at an episode's
        # begin (K, E) the last S that they have shown are another's
        self._stacks = torch.zeros(num_seeds, num_envs, frame_stack, dtype=torch.int64)
        self._begins = torch.ones(num_seeds, num_envs, dtype=torch.bool)
        # of each step whose rows are intact the oldest picture, by seed
        steps = capacity // num_envs
        self._oldest = [deque[int](maxlen=steps) for _ in range(num_seeds)]

    @property
    def intact(self) -> Tensor:
        """How many of each seed's latest rows have all their pictures, ``(K,)`` int64."""
        num_envs = self._begins.shape[1]
        return torch.tensor([len(steps) * num_envs for steps in self._oldest])

    def add(self, obs: Tensor, next_obs: Tensor, ended: Tensor) -> tuple[Tensor, Tensor]:
        """Adds what one step of all environments has shown.

        Args:
            obs: ``(K, E, S * channels, height, width)`` uint8.
            next_obs: Likewise; of an episode's last step its last, not the next one's first.
            ended: ``(K, E)`` bool.

        Returns:
            Numbers ``(K, E, S)`` of the pictures of both.
        """
        first = self._put(obs, self._begins)
        self._stacks = torch.where(self._begins[..., None], first[..., None], self._stacks)
        before = self._stacks
        latest = self._put(next_obs, torch.ones_like(ended))
        self._stacks = torch.cat((before[..., 1:], latest[..., None]), -1)
        self._begins = ended.clone()
        for steps, oldest, count in zip(
            self._oldest, before[..., 0].amin(1).tolist(), self._count.tolist(), strict=True
        ):
            steps.append(oldest)
            while steps[0] < count - self._capacity:
                steps.popleft()
        return before % self._capacity, self._stacks % self._capacity

    def _put(self, obs: Tensor, which: Tensor) -> Tensor:
        """Stores the newest pictures of some stacks; their numbers where ``which``, ``(K, E)``."""
        numbers = self._count[:, None] + which.long().cumsum(1) - 1
        channels = self._pictures.shape[2]
        for k, mine in enumerate(which):
            places = numbers[k, mine] % self._capacity
            newest = obs[k, mine, -channels:].to(self._pictures.device)
            self._pictures[k, places.to(newest.device)] = newest
        self._count = self._count + which.sum(1)
        return numbers

    def take(self, numbers: Tensor) -> Tensor:
        """The stacks ``(K, B, S * channels, height, width)`` uint8 of numbers ``(K, B, S)``."""
        stacks = [
            mine.index_select(0, wanted.flatten().long()).view(len(wanted), -1, *mine.shape[2:])
            for mine, wanted in zip(self._pictures, numbers, strict=True)
        ]
        return torch.stack(stacks)

    def state_dict(self) -> dict[str, Any]:
        """Everything; the pictures are views, which the next :meth:`add` may change."""
        sizes = self._count.clamp(max=self._capacity).tolist()
        return {
            "pictures": [mine[:n] for mine, n in zip(self._pictures, sizes, strict=True)],
            "count": self._count,
            "stacks": self._stacks,
            "begins": self._begins,
            "oldest": [torch.tensor(list(steps), dtype=torch.int64) for steps in self._oldest],
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restores :meth:`state_dict` of a pool of the same sizes."""
        for mine, saved in zip(self._pictures, state["pictures"], strict=True):
            mine[: len(saved)] = saved
        self._count, self._stacks = state["count"].clone(), state["stacks"].clone()
        self._begins = state["begins"].clone()
        for steps, saved in zip(self._oldest, state["oldest"], strict=True):
            steps.clear()
            steps.extend(saved.tolist())
