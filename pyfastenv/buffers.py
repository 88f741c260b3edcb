"""Replay memory: transitions in one tensor on any device. Knows no environment and no network."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor

from pyfastenv.rollouts import RolloutBatch


class Transitions(NamedTuple):
    """n steps, each with the observation it led to."""

    obs: Tensor  # (n, obs_size)
    actions: Tensor  # (n, action_size), as the environment got them
    rewards: Tensor  # (n,)
    next_obs: Tensor  # (n, obs_size); of an episode's last step: its last, not the next one's first
    terminated: Tensor  # (n,) bool; False where an episode was only truncated

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
        )
        if not batch.autoresets.any():
            return all_steps
        steps = ~batch.autoresets.flatten()
        return cls(*(field[steps] for field in all_steps))


class ReplayBuffer:
    """The latest transitions, to draw from.

    Storage is one float32 tensor with a row per transition, so that writing is one copy and drawing
    one gather. Memory is allocated here and never again; on the CPU the system gives it page by
    page as rows are first written.

    Args:
        capacity: How many transitions stay; new ones replace the oldest.
        obs_size: Components of an observation.
        action_size: Components of an action.
        device: Where they are kept.

    Raises:
        ValueError: A size below 1.
    """

    def __init__(
        self,
        capacity: int,
        obs_size: int,
        action_size: int,
        *,
        device: torch.device | str = "cpu",
    ):
        for name, value in (
            ("capacity", capacity),
            ("obs_size", obs_size),
            ("action_size", action_size),
        ):
            if value < 1:
                raise ValueError(f"{name}: expected at least 1, got {value}")
        self.capacity = capacity
        self.obs_size = obs_size
        self.action_size = action_size
        # columns: obs, action, next obs, reward, terminated
        self._widths = [obs_size, action_size, obs_size, 1, 1]
        self._rows = torch.empty(capacity, sum(self._widths), device=device)
        self._size = 0
        self._next = 0  # the row to be written next: the oldest, once all are in use

    def __len__(self) -> int:
        """Transitions that are there."""
        return self._size

    @property
    def device(self) -> torch.device:
        """Where they are kept."""
        return self._rows.device

    def add(self, new: Transitions) -> None:
        """Copies transitions in, the oldest first; of more than ``capacity`` the last stay.

        Args:
            new: n of them, on any device, of any dtypes that float32 can take.

        Raises:
            ValueError: Wrong shapes. Nothing has been added.
        """
        self._check(new)
        columns = (new.obs, new.actions, new.next_obs, new.rewards[:, None])
        rows = torch.cat((*columns, new.terminated[:, None]), 1)[-self.capacity :]
        rows = rows.to(self._rows.device, torch.float32)
        until_end = min(len(rows), self.capacity - self._next)
        self._rows[self._next : self._next + until_end] = rows[:until_end]
        self._rows[: len(rows) - until_end] = rows[until_end:]
        self._next = (self._next + len(rows)) % self.capacity
        self._size = min(self._size + len(rows), self.capacity)

    def sample(self, n: int, generator: torch.Generator | None = None) -> Transitions:
        """Draws n transitions, uniformly and with replacement.

        Args:
            n: How many.
            generator: What draws, on any device; None: torch's default for the CPU.

        Returns:
            New float32 tensors on :attr:`device` (views of one).

        Raises:
            ValueError: The buffer is empty, or n is below 1.
        """
        if self._size == 0:
            raise ValueError("sample: the buffer is empty")
        if n < 1:
            raise ValueError(f"n: expected at least 1, got {n}")
        where = "cpu" if generator is None else generator.device
        indices = torch.randint(self._size, (n,), generator=generator, device=where)
        rows = self._rows.index_select(0, indices.to(self._rows.device))
        obs, actions, next_obs, rewards, terminated = torch.split(rows, self._widths, 1)
        return Transitions(obs, actions, rewards[:, 0], next_obs, terminated[:, 0] != 0.0)

    def state_dict(self) -> dict[str, Any]:
        """Everything; ``"rows"`` is a view, which the next :meth:`add` may change."""
        return {"capacity": self.capacity, "next": self._next, "rows": self._rows[: self._size]}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restores :meth:`state_dict`, from any device.

        Raises:
            ValueError: It is of a buffer of another capacity or of other sizes.
        """
        rows = state["rows"]
        expected = (self.capacity, self._rows.shape[1])
        got = (state["capacity"], rows.shape[1])
        if got != expected:
            raise ValueError(
                f"buffer: expected the state of one with capacity {expected[0]} and rows of "
                f"{expected[1]} numbers, got capacity {got[0]} and rows of {got[1]}"
            )
        self._size, self._next = len(rows), state["next"]
        self._rows[: self._size] = rows

    def _check(self, new: Transitions) -> None:
        n = len(new.rewards)
        shapes = ((n, self.obs_size), (n, self.action_size), (n,), (n, self.obs_size), (n,))
        for name, tensor, shape in zip(new._fields, new, shapes, strict=True):
            if tuple(tensor.shape) != shape:
                raise ValueError(f"{name}: expected {shape}, got {tuple(tensor.shape)}")
