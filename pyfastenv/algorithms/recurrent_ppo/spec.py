"""Proximal policy optimisation of policies that remember, by an LSTM or GRU.

It is PPO (:mod:`pyfastenv.algorithms.ppo.spec`, which see) but for four things. Policy and value
network have a state for each environment, which is zero where an episode begins. A minibatch is
whole sequences of some environments, since gradients go back through a sequence's steps. Values of
what a truncated episode would still have given are those of the state in which it ended. And the
steps are plain PyTorch's. sb3-contrib's RecurrentPPO and rsl_rl's recurrent policies do likewise.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from pyfastenv.algorithms.ppo import spec as ppo
from pyfastenv.nn.networks import learning
from pyfastenv.nn.recurrent import RecurrentNetwork, RecurrentPolicy, RnnType
from pyfastenv.nn.spans import span
from pyfastenv.runs.options import at_least, check_fixed
from pyfastenv.sampling.device_sampling import DeviceSampler
from pyfastenv.sampling.rollouts import RolloutBatch
from pyfastenv.training import distributed
from pyfastenv.training.entry_points import entry_points
from pyfastenv.training.on_policy import Samples


@dataclass(kw_only=True)
class Config(ppo.Config):
    """Proximal policy optimisation of networks with a memory."""

    algorithm: ClassVar[str] = "recurrent_ppo"
    presets = {}

    rnn_type: RnnType = "lstm"
    """Policy and value network remember by one of these each."""
    rnn_hidden_dim: int = field(default=64, metadata=at_least(1))
    """Its hidden numbers, which the hidden layers see."""
    minibatch_size: int = field(default=512, metadata=at_least(1))
    """Steps per gradient step (of all processes together): whole sequences of num_steps."""
    accelerate: Literal["auto", "none", "compile", "native"] = "none"
    """Gradients through time are plain PyTorch's; there is nothing faster."""

    def check(self) -> None:
        check_fixed(
            self,
            ("accelerate", "none", "nothing faster computes gradients through time"),
            ("device", "cpu", "recurrent networks have not been tried on a GPU"),
            ("amp", False, "sequences are computed in float32"),
            ("overlap", False, "a policy with a memory acts in torch, between updates"),
            ("symmetry", False, "sequences are not mirrored"),
            ("mirror_coef", 0.0, "sequences are not mirrored"),
            ("pool_size", 1, "earlier batches began with states of earlier networks"),
            ("policy_factory", None, "networks are an LSTM or GRU and hidden layers"),
            ("critic_factory", None, "networks are an LSTM or GRU and hidden layers"),
        )
        super().check()
        sequences, rest = divmod(self.minibatch_size, self.num_steps * distributed.world_size())
        if rest or not sequences:
            raise ValueError(
                f"minibatch_size: expected a multiple of num_steps = {self.num_steps} (of each "
                f"process), since sequences are not cut, got {self.minibatch_size}"
            )


class RecurrentPPO(ppo.PPO):
    """The algorithm; :func:`train` drives it. ``restore`` is a ``state_dict`` to go on from.

    Attributes:
        policy_state: ``(N, state_size)`` of the policy before its next observation.
        value_state: Likewise of the value network, before the next batch's first one.
    """

    policy_type = RecurrentPolicy
    config: Config
    policy: RecurrentNetwork
    value: RecurrentNetwork

    # ---- networks and states -----------------------------------------------------------------

    def _network(self, factory: str, seen: slice, num_outputs: int, **fields: Any) -> Any:
        config, num_inputs = self.config, seen.stop - seen.start
        sizes = (num_inputs, config.rnn_hidden_dim, *config.hidden_sizes, num_outputs)
        fields |= {"activation": config.activation, "layer_norm": config.layer_norm}
        return RecurrentNetwork(sizes, config.rnn_type, **fields)

    def reset(self) -> None:
        """The first episodes."""
        super().reset()
        count = self.config.num_envs
        self.policy_state = torch.zeros(count, self.policy.state_size, device=self.device)
        self.value_state = torch.zeros(count, self.value.state_size, device=self.device)
        self._began_with = self.policy_state.clone()

    # ---- collecting --------------------------------------------------------------------------

    def outputs(self, seen: Tensor) -> Tensor:
        """The policy's outputs for what it sees now, which it remembers."""
        outputs, self.policy_state = self.policy.step(seen, self.policy_state)
        return outputs

    def _sample(self, sampler: DeviceSampler) -> RolloutBatch:
        self._began_with = self.policy_state.clone()

        def forget(env_ids: NDArray[np.int64]) -> None:
            self.policy_state[torch.from_numpy(env_ids).to(self.device)] = 0.0

        return sampler.collect(self.act, forget)

    # ---- advantages --------------------------------------------------------------------------

    def _pack(self, samples: Samples) -> Tensor:
        """``(N, T, 2 + …)``: sequences of PPO's rows, whose environment and whether an episode
        begins there stand before them."""
        num_steps, num_envs = samples.ended.shape
        rows = super()._pack(samples).view(num_steps, num_envs, -1)
        env_ids = torch.arange(num_envs, device=self.device).expand(num_steps, -1)
        before = torch.stack((env_ids, _starts(samples.ended)), -1).float()
        return torch.cat((before, rows), -1).transpose(0, 1).contiguous()

    def _values(self, obs: Tensor, samples: Samples) -> list[Tensor]:
        seen = obs[:, self.seen.critic]
        n, num_envs = samples.ended.numel(), self.config.num_envs
        during, last, final = seen.split([n, num_envs, len(seen) - n - num_envs])
        during = during.view(*samples.ended.shape, -1)
        began_with = self.value_state
        values, states = self.value(during, _starts(samples.ended), began_with)
        self._value_began_with = began_with
        self.value_state = states[-1] * ~samples.ended[-1][:, None]
        last_values, _ = self.value.step(last, self.value_state)
        at_end = states[samples.end_steps, samples.end_env_ids]
        final_values, _ = self.value.step(final, at_end)
        return [values.flatten(), last_values.flatten(), final_values.flatten()]

    # ---- update ------------------------------------------------------------------------------

    def _evaluate(self, rows: Tensor) -> tuple[ppo.Columns, Tensor, Tensor]:
        """Sequences ``(b, T, …)`` of :meth:`_pack` from the states that they began with."""
        env_ids, starts = rows[:, 0, 0].long(), rows[..., 1].t().bool()
        columns = self._columns(rows[..., 2:].transpose(0, 1))
        with span("forward"), learning(self.policy, self.value):
            outputs, _ = self.policy(columns.policy_obs, starts, self._began_with[env_ids])
            values, _ = self.value(columns.critic_obs, starts, self._value_began_with[env_ids])
        flat = ppo.Columns(*(column.flatten(0, 1) for column in columns))
        return flat, outputs.flatten(0, 1), values.flatten()

    # ---- saving ------------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Any]:
        """Everything that the training goes on from, bit for bit."""
        states = {"policy_state": self.policy_state, "value_state": self.value_state}
        return {**super().state_dict(), **states}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restores :meth:`state_dict`."""
        super().load_state_dict(state)
        self.policy_state = state["policy_state"].to(self.device)
        self.value_state = state["value_state"].to(self.device)


def _starts(ended: Tensor) -> Tensor:
    """Where episodes begin after a batch's first step: ``(T, N)`` bool, of where they ended."""
    return torch.cat((torch.zeros_like(ended[:1]), ended[:-1]))


train, load_policy = entry_points(lambda: RecurrentPPO)
