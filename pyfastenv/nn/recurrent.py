"""A network with a memory: an LSTM or GRU and an MLP of its output. Knows no environment."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor, nn

from pyfastenv.nn.networks import MLP
from pyfastenv.nn.torch_policy import TorchPolicy

RnnType = Literal["lstm", "gru"]


class RecurrentNetwork(nn.Module):
    """Sequences of observations to outputs; a state goes from step to step.

    Args:
        sizes: Of an observation, the state that the MLP sees, its hidden layers, the outputs.
        rnn_type: ``"lstm"`` (Hochreiter & Schmidhuber 1997) or ``"gru"`` (Cho et al. 2014,
            arXiv:1406.1078).
        **fields: Of the :class:`MLP`.

    Attributes:
        state_size: Numbers of a state: hidden ones and, of an LSTM, cells.
    """

    def __init__(self, sizes: Sequence[int], rnn_type: RnnType, **fields: Any):
        super().__init__()
        num_inputs, hidden_dim, *_ = sizes
        self.cell = {"lstm": nn.LSTMCell, "gru": nn.GRUCell}[rnn_type](num_inputs, hidden_dim)
        for name, parameter in self.cell.named_parameters():
            if name.startswith("weight"):
                nn.init.orthogonal_(parameter)
            else:
                nn.init.zeros_(parameter)
        self.head = MLP(sizes[1:], **fields)
        self.state_size = 2 * hidden_dim if rnn_type == "lstm" else hidden_dim

    def forward(self, obs: Tensor, starts: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        """Runs B sequences of T steps.

        Args:
            obs: ``(T, B, in)``.
            starts: ``(T, B)`` bool: episodes begin with these observations, and the state is zero.
            state: ``(B, state_size)`` before the first step.

        Returns:
            ``(T, B, out)``, and the states after each step, ``(T, B, state_size)``.
        """
        states = []
        for now, start in zip(obs, starts, strict=True):
            state = state * ~start[:, None]
            if isinstance(self.cell, nn.LSTMCell):
                state = torch.cat(self.cell(now, state.chunk(2, -1)), -1)
            else:
                state = self.cell(now, state)
            states.append(state)
        after = torch.stack(states)
        outputs = self.head(after[..., : self.cell.hidden_size].flatten(0, 1))[0]
        return outputs.view(*obs.shape[:2], self.head.sizes[-1]), after

    def step(self, obs: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        """A step within episodes: ``(B, in)`` and ``(B, state_size)`` to outputs and state."""
        starts = torch.zeros(1, len(obs), dtype=torch.bool, device=obs.device)
        outputs, states = self(obs[None], starts, state)
        return outputs[0], states[0]


class RecurrentPolicy(TorchPolicy):
    """A policy with a memory: row i of its observations is always environment i's.

    The arguments are those of :class:`TorchPolicy`, whose network is a :class:`RecurrentNetwork`;
    :meth:`reset` says where episodes begin.
    """

    network: RecurrentNetwork
    _state: Tensor | None = None

    def reset(self, env_ids: Any = None) -> None:
        """Forgets what was seen in these environments; None: in all, of which there may be others
        from now on.

        Raises:
            ValueError: There are no such environments.
        """
        if env_ids is None or self._state is None:
            self._state = None
            return
        ids, count = torch.as_tensor(env_ids).cpu().numpy(), len(self._state)
        if ids.dtype == bool:
            ids = np.flatnonzero(ids) if ids.shape == (count,) else np.array([count])
        elif ids.size == 0:
            return
        if ids.dtype.kind not in "iu" or ((ids < 0) | (ids >= count)).any():
            raise ValueError(
                f"env_ids: expected integers from 0 to {count - 1}, or {count} bool, got {env_ids}"
            )
        state = self._state.clone()  # which a copy (as_greedy) may have, too
        state[torch.from_numpy(ids.astype(np.int64))] = 0.0
        self._state = state

    def _evaluate(self, obs: Tensor) -> Tensor:
        if self._state is None:
            self._state = obs.new_zeros(len(obs), self.network.state_size)
        if len(obs) != len(self._state):
            raise ValueError(
                f"obs: expected {len(self._state)} of them, as many as since reset(), got "
                f"{len(obs)}: the policy remembers each environment"
            )
        outputs, self._state = self.network.step(obs, self._state)
        return outputs
