"""Replay memory: transitions in one tensor on any device. Knows no environment and no network."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import torch
from torch import Tensor

from pyfastenv.sampling.rollouts import RolloutBatch


def replay_memory(
    *shape: int, device: torch.device | str, dtype: torch.dtype = torch.float32
) -> Tensor:
    """Memory of this shape, not yet written to.

    Raises:
        ValueError: There is not so much.
    """
    try:
        return torch.empty(*shape, dtype=dtype, device=device)
    except RuntimeError as error:
        size = math.prod(shape) * dtype.itemsize / 2**30
        raise ValueError(
            f"a replay buffer of {' x '.join(f'{n:,}' for n in shape)} numbers (seeds first, then "
            f"capacity) takes {size:,.0f} GiB, which cannot be allocated"
        ) from error


class Transitions(NamedTuple):
    """n steps, each with the observation it led to.

    Observations are flat; where the space is a Dict, ``envs.obs_views.of(transitions.obs)`` has its
    entries as views.
    """

    obs: Tensor  # (n, obs_size)
    actions: Tensor  # (n, action_size), as the environment got them
    rewards: Tensor  # (n,)
    next_obs: Tensor  # (n, obs_size); of an episode's last step: its last, not the next one's first
    terminated: Tensor  # (n,) bool; False where an episode was only truncated
    ended: Tensor  # (n,) bool: terminated or truncated

    @classmethod
    def from_rollout(cls, batch: RolloutBatch) -> Transitions:
        """The transitions of a rollout, step by step, in new tensors (n = T * N).

        With NEXT_STEP autoreset the resets, which are no steps, are left out.
        """
        num_envs = batch.num_envs
        obs = batch.obs.reshape(batch.num_steps, num_envs, -1)
        next_obs = torch.cat((obs[1:], batch.last_obs.view(1, num_envs, -1)))
        episodes = batch.episodes
        if len(episodes) > 0:
            final_obs = episodes.final_obs.view(len(episodes), -1).to(next_obs.dtype)
            next_obs[episodes.steps, episodes.env_ids] = final_obs
        all_steps = cls(
            obs=obs.flatten(0, 1).clone(),
            actions=batch.actions.reshape(batch.num_steps * num_envs, -1).clone(),
            rewards=batch.rewards.flatten().clone(),
            next_obs=next_obs.flatten(0, 1),
            terminated=batch.terminations.flatten().clone(),
            ended=(batch.terminations | batch.truncations).flatten(),
        )
        if not batch.autoresets.any():
            return all_steps
        steps = ~batch.autoresets.flatten()
        return cls(*(field[steps] for field in all_steps))


class RowLayout(NamedTuple):
    """Where a transition's parts stand in a row of a :class:`ReplayPool`.

    Policy and critic see columns of the observations, which may overlap: a row has each once.
    """

    obs_size: int
    action_size: int
    policy: slice = slice(None)
    critic: slice = slice(None)

    @property
    def policy_size(self) -> int:
        """Columns that the policy sees."""
        return len(range(self.obs_size)[self.policy])

    @property
    def critic_size(self) -> int:
        """Columns that the critic sees."""
        return len(range(self.obs_size)[self.critic])

    @property
    def width(self) -> int:
        """Numbers per row: obs, action, next obs, reward, whether the episode goes on (1 or 0)."""
        return 2 * self.obs_size + self.action_size + 2

    def pack(
        self, obs: Tensor, actions: Tensor, next_obs: Tensor, rewards: Tensor, terminated: Tensor
    ) -> Tensor:
        """Rows ``(…, width)`` float32 of ``(…, size)`` parts and ``(…)`` rewards and terminated."""
        ends = torch.stack((rewards.float(), 1.0 - terminated.float()), -1)
        return torch.cat((obs.float(), actions.float(), next_obs.float(), ends), -1)

    def obs(self, rows: Tensor) -> Tensor:
        """``(…, obs_size)``, a view like all others."""
        return rows[..., : self.obs_size]

    def actions(self, rows: Tensor) -> Tensor:
        """``(…, action_size)``."""
        return rows[..., self.obs_size : self.obs_size + self.action_size]

    def obs_actions(self, rows: Tensor) -> Tensor:
        """``(…, obs_size + action_size)``: what a model sees."""
        return rows[..., : self.obs_size + self.action_size]

    def next_obs(self, rows: Tensor) -> Tensor:
        """``(…, obs_size)``; of an episode's last step: its last observation."""
        start = self.obs_size + self.action_size
        return rows[..., start : start + self.obs_size]

    def rewards(self, rows: Tensor) -> Tensor:
        """``(…)``."""
        return rows[..., -2]

    def continues(self, rows: Tensor) -> Tensor:
        """``(…)``: 0 where the episode was terminated, 1 elsewhere, at a time limit too."""
        return rows[..., -1]


class ReplayPool:
    """The latest rows of K seeds, one ring per seed, in one tensor allocated once.

    Adding and drawing are tensor operations without host synchronisation, whatever the number of
    rows that each seed adds.

    Args:
        num_seeds: K.
        capacity: Rows of a seed; new ones replace the oldest. On the CPU the system gives the
            memory page by page as rows are first written.
        width: Numbers per row.
        device: Where they are kept.

    Raises:
        ValueError: A size below 1, or more than there is memory for.
    """

    def __init__(
        self, num_seeds: int, capacity: int, width: int, device: torch.device | str = "cpu"
    ):
        for name, value in (("num_seeds", num_seeds), ("capacity", capacity), ("width", width)):
            if value < 1:
                raise ValueError(f"{name}: expected at least 1, got {value}")
        self.num_seeds = num_seeds
        self.max_capacity = capacity
        self.capacity = capacity
        # one more row, for what is not to be kept
        self._rows = replay_memory(num_seeds, capacity + 1, width, device=device)
        self._flat = self._rows.view(-1, width)
        self._starts = torch.arange(num_seeds, device=device)[:, None] * (capacity + 1)  # (K, 1)
        self.sizes = torch.zeros(num_seeds, dtype=torch.int64, device=device)  # (K,)
        self._next = torch.zeros_like(self.sizes)  # (K,) the row to be written next

    @property
    def width(self) -> int:
        """Numbers per row."""
        return self._rows.shape[-1]

    @property
    def device(self) -> torch.device:
        """Where they are kept."""
        return self._rows.device

    def add(self, rows: Tensor, keep: Tensor | None = None) -> None:
        """Copies rows in, the oldest first; of more than ``capacity`` the last stay.

        Args:
            rows: ``(K, n, width)``.
            keep: ``(K, n)`` bool: which of them; None: all.

        Raises:
            ValueError: A wrong shape. Nothing has been added.
        """
        expected = (self.num_seeds, rows.shape[1] if rows.dim() == 3 else -1, self.width)
        if tuple(rows.shape) != expected:
            raise ValueError(f"rows: expected (K, n, width) = {expected}, got {tuple(rows.shape)}")
        if keep is not None and keep.shape != rows.shape[:2]:
            raise ValueError(f"keep: expected {tuple(rows.shape[:2])}, got {tuple(keep.shape)}")
        if keep is None:
            rows = rows[:, -self.capacity :]
            order = torch.arange(rows.shape[1], device=self.device).expand(self.num_seeds, -1)
            count = torch.full_like(self.sizes, rows.shape[1])
            where = (self._next[:, None] + order) % self.capacity
        else:
            order = keep.long().cumsum(1) - 1  # (K, n) among those that are kept
            count = keep.sum(1)
            # not kept, or overwritten by the later ones of this very call: into the spare row
            stays = keep & (order >= (count - self.capacity)[:, None])
            where = torch.where(
                stays, (self._next[:, None] + order) % self.capacity, self.max_capacity
            )
        self._flat.index_copy_(
            0, (self._starts + where).flatten(), rows.reshape(-1, self.width).to(self._flat)
        )
        self._next.add_(count).remainder_(self.capacity)
        self.sizes.add_(count).clamp_(max=self.capacity)

    def draw(self, uniform: Tensor) -> Tensor:
        """Rows ``(…, K, n, width)``, each one of its seed's with the same probability.

        Args:
            uniform: ``(K, …, n)`` float64 in [0, 1), from
                :class:`pyfastenv.nn.streams.SeedStreams`. The seeds must have rows.
        """
        return self.take(self.indices(uniform))

    def indices(self, uniform: Tensor, newest: Tensor | None = None) -> Tensor:
        """The numbers ``(K, …, n)`` int64 of the rows that :meth:`draw` takes.

        Args:
            uniform: As there.
            newest: ``(K,)`` int64: of so many of each seed's latest rows; None: of all.
        """
        if newest is None:
            return (uniform * self._of_seeds(self.sizes, uniform.dim())).long()
        age = (uniform * self._of_seeds(newest.to(self.device), uniform.dim())).long()
        return (self._of_seeds(self._next, uniform.dim()) - 1 - age) % self.capacity

    def later(self, indices: Tensor, count: int | Tensor) -> tuple[Tensor, Tensor]:
        """The numbers of rows that were added later, and whether they have been: ``(K, …, n)``.

        Args:
            indices: ``(K, …, n)`` int64, as of :meth:`take`.
            count: How many rows of the same seed later.
        """
        return (indices + count) % self.capacity, self.ages(indices) >= count

    def ages(self, indices: Tensor) -> Tensor:
        """How many rows of the same seed were added after those with these numbers, likewise."""
        return (self._of_seeds(self._next, indices.dim()) - 1 - indices) % self.capacity

    def replace(self, seed: int, ages: Tensor, rows: Tensor) -> None:
        """Writes rows ``(n, width)`` of a seed in the place of those of these :meth:`ages`."""
        self._rows[seed, (self._next[seed] - 1 - ages) % self.capacity] = rows

    def _of_seeds(self, numbers: Tensor, dims: int) -> Tensor:
        """``(K)`` to ``(K, 1, …)`` of so many dimensions."""
        return numbers.view(self.num_seeds, *(1,) * (dims - 1))

    def take(self, indices: Tensor) -> Tensor:
        """Rows ``(…, K, n, width)`` by their numbers.

        Args:
            indices: ``(K, …, n)`` int64, below each seed's number of rows.
        """
        indices = (indices + self._of_seeds(self._starts, indices.dim())).movedim(0, -2)
        return self._flat.index_select(0, indices.flatten()).view(*indices.shape, self.width)

    def rows(self) -> list[Tensor]:
        """Each seed's rows, ``(sizes[k], width)``, in no particular order; views."""
        sizes = self.sizes.tolist()
        return [rows[:size] for rows, size in zip(self._rows, sizes, strict=True)]

    def resize(self, capacity: int) -> None:
        """Changes the capacity in place; the latest rows stay.

        Raises:
            ValueError: Below 1, or more than was allocated.
        """
        if not 1 <= capacity <= self.max_capacity:
            raise ValueError(f"capacity: expected 1 to {self.max_capacity}, got {capacity}")
        if capacity == self.capacity:
            return
        for k, (size, following) in enumerate(
            zip(self.sizes.tolist(), self._next.tolist(), strict=True)
        ):
            rows = self._rows[k]
            kept = min(size, capacity)
            if size == self.capacity and following != 0:  # the oldest is not the first
                rows[:size] = rows[:size].roll(-following, 0)
            if kept < size:
                rows[:kept] = rows[size - kept : size].clone()
            self.sizes[k] = kept
            self._next[k] = kept % capacity
        self.capacity = capacity

    def clear(self) -> None:
        """Forgets all rows."""
        self.sizes.zero_()
        self._next.zero_()

    def state_dict(self) -> dict[str, Any]:
        """Everything; the rows are views, which the next :meth:`add` may change."""
        return {
            "capacity": self.capacity,
            "sizes": self.sizes,
            "next": self._next,
            "rows": self.rows(),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restores :meth:`state_dict`, from any device.

        Raises:
            ValueError: It is of a pool of other sizes.
        """
        saved = state["rows"]
        widths = {rows.shape[1] for rows in saved}
        if len(saved) != self.num_seeds or widths != {self.width}:
            raise ValueError(
                f"pool: expected the state of {self.num_seeds} seeds with rows of {self.width} "
                f"numbers, got {len(saved)} with {sorted(widths)}"
            )
        if state["capacity"] > self.max_capacity:
            raise ValueError(
                f"pool: expected at most {self.max_capacity} rows, got {state['capacity']}"
            )
        self.capacity = state["capacity"]
        self.sizes.copy_(state["sizes"])
        self._next.copy_(state["next"])
        for mine, rows in zip(self._rows, saved, strict=True):
            mine[: len(rows)] = rows
