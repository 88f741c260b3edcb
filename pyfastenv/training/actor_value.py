"""A policy and a value network that learn from their latest steps: made, acting, saved.

What PPO and its like have beside their loss; a policy is a Gaussian whose deviations do not depend
on the observation, or categorical.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, TypeVar

import gymnasium
import torch
from torch import Tensor, nn

from pyfastenv.nn.functional import gaussian_log_prob
from pyfastenv.nn.networks import MLP, FlatParameters, NetworkStack, initialised_by
from pyfastenv.nn.optim import FlatAdam
from pyfastenv.nn.policy_spec import Activation, PolicySpec
from pyfastenv.nn.torch_policy import TorchPolicy, policies_of
from pyfastenv.runs import seeds
from pyfastenv.runs.options import POSITIVE, WIDTHS, Bound
from pyfastenv.runs.seeds import Stream
from pyfastenv.training import distributed
from pyfastenv.training.accelerators import in_bfloat16
from pyfastenv.training.on_policy import OnPolicy, OnPolicyConfig

C = TypeVar("C", bound="ActorValueConfig")


@dataclass(kw_only=True)
class ActorValueConfig(OnPolicyConfig):
    """Options of the two networks."""

    learning_rate: float = field(default=3e-4, metadata=POSITIVE)
    """Adam's, at the start."""
    hidden_sizes: tuple[int, ...] = field(default=(64, 64), metadata=WIDTHS)
    """Hidden layers, of policy and value network each."""
    activation: Activation = "tanh"
    """Activation function of hidden layers."""
    layer_norm: bool = False
    """Layer normalisation of hidden layers, before their activation."""
    log_std_init: float = field(
        default=-0.5, metadata={"bound": Bound("-20 to 20", lambda value: -20 <= value <= 20)}
    )
    """Logarithm of the initial standard deviation of actions."""

    def _check_minibatches(self, size: int) -> int:
        """Checks ``minibatch_size``; returns the steps of a batch, of all processes together."""
        self._check_shared_out("minibatch_size")
        batch = self.num_envs * self.num_steps * distributed.world_size()
        if size > batch:
            raise ValueError(
                f"minibatch_size: expected at most num_envs * num_steps = {batch}, got {size}"
            )
        return batch


class ActorValue(OnPolicy[C]):
    """Policy and value network.

    Attributes:
        discrete: Whether the policy is categorical.
        policy: ``(1, B, seen by the policy)`` to ``(1, B, outputs)``: means, or logits.
        value: ``(1, B, seen by the critic)`` to ``(1, B, 1)``.
        log_std: ``(A,)``; of no use where the policy is categorical.
        flat: All that is trained as one vector.
        optimizer: Adam on it.
        own_networks: Whether there are other networks than ours that the pool runs.
        policy_type: What acts with one of those.
    """

    policy_type: ClassVar[type[TorchPolicy]] = TorchPolicy
    learned = (*OnPolicy.learned, "policy", "value", "log_std", "optimizer")

    def __init__(self, config: C):
        super().__init__(config)
        space = self.envs.single_action_space
        self.discrete = isinstance(space, gymnasium.spaces.Discrete)
        if isinstance(space, gymnasium.spaces.Discrete):
            num_outputs = int(space.n)
        else:
            assert isinstance(space, gymnasium.spaces.Box)
            num_outputs = math.prod(space.shape)
            self._action_bounds = [
                torch.from_numpy(bound).to(self.device) for bound in (space.low, space.high)
            ]
        with initialised_by(seeds.stream(config.seed, Stream.POLICY)):
            seen = self.seen
            self.policy = self._network("policy_factory", seen.policy, num_outputs, last_gain=0.01)
            self.value = self._network("critic_factory", seen.critic, 1)
        self.log_std = nn.Parameter(
            torch.full((num_outputs,), float(config.log_std_init), device=self.device)
        )
        distributed.broadcast([*self.policy.parameters(), *self.value.parameters()])
        for module in (self.policy, self.value):
            module.to(self.device)
        trained: list[nn.Module | nn.Parameter] = [self.policy, self.value]
        if not self.discrete:
            trained.append(self.log_std)
        self.flat = FlatParameters(trained)
        self.optimizer = FlatAdam(self.flat, lr=config.learning_rate, eps=1e-5)
        ours = [module for module in (self.policy, self.value) if isinstance(module, MLP)]
        if in_bfloat16(config.amp, self.device):
            for module in ours:
                module.compute_in(torch.bfloat16)
        self.own_networks = len(ours) < 2

    def _network(self, factory: str, seen: slice, num_outputs: int, **fields: Any) -> Any:
        """The user's, or an MLP, of a part of the observations."""
        own, num_inputs = self.config.factory(factory), seen.stop - seen.start
        if own is not None:
            return NetworkStack([own(num_inputs, num_outputs)])
        sizes = (num_inputs, *self.config.hidden_sizes, num_outputs)
        fields |= {"activation": self.config.activation, "layer_norm": self.config.layer_norm}
        return MLP(sizes, **fields)

    def refresh(self) -> None:
        """To be called when parameters have been changed where PyTorch does not see it."""
        for module in (self.policy, self.value):
            if isinstance(module, MLP):
                module.refresh()

    # ---- acting ------------------------------------------------------------------------------

    @torch.no_grad()
    def act(self, obs: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """The policy in torch, for sampling on the device."""
        normalized = self.normalizer(obs.view(-1, self.obs_size).float())
        outputs = self.outputs(normalized[:, self.seen.policy])
        if self.discrete:
            log_p = torch.log_softmax(outputs, -1)
            actions = torch.multinomial(log_p.exp(), 1, generator=self.device_generator)
            return actions[:, 0], log_p.gather(-1, actions)[:, 0], actions[:, 0]
        noise = torch.empty_like(outputs).normal_(generator=self.device_generator)
        actions = outputs + self.log_std.exp() * noise
        low, high = self._action_bounds
        clipped = torch.minimum(torch.maximum(actions, low), high)
        return actions, gaussian_log_prob(actions, outputs, self.log_std), clipped

    def outputs(self, seen: Tensor) -> Tensor:
        """The policy's outputs ``(N, outputs)`` for its part of normalised observations."""
        outputs: Tensor = self.policy(seen[None])[0]
        return outputs

    def policy_spec(self) -> PolicySpec | list[TorchPolicy]:
        """The policy as the pool runs it, or with a network of the user's."""
        fields = {
            "distribution": "categorical" if self.discrete else "gaussian",
            "log_std": None if self.discrete else self.log_std.detach().cpu().numpy()[None],
            **self.normalizer.spec_fields(self.seen.policy),
            "row_begin": self.seen.policy.start,
            "row_size": self.obs_size,
        }
        num_inputs = self.seen.policy.stop - self.seen.policy.start
        space = self.envs.single_action_space
        kind = self.policy_type
        return policies_of(self.policy, num_inputs, space, self.device, kind, **fields)

    # ---- saving ------------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Any]:
        """Networks, optimiser, and what collecting goes on from."""
        return {
            **super().state_dict(),
            "policy": self.policy.state_dict(),
            "value": self.value.state_dict(),
            "log_std": self.log_std.detach(),
            "optimizer": self.optimizer.state_dict(),
        }

    def widened(
        self, state: Mapping[str, Any], row: Tensor, policy: Tensor, value: Tensor
    ) -> dict[str, Any]:
        """The state of a run that saw less, as if it had seen all and heeded no more.

        Args:
            state: Its :meth:`state_dict`.
            row: ``(obs_size,)`` int64: where each number of an observation was in its; -1: nowhere.
            policy: Likewise for the policy's inputs.
            value: Likewise for the value network's.
        """
        moments, found = state["obs_moments"], dict(state)
        found["obs_moments"] = {
            "count": moments["count"],
            "mean": _widened(moments["mean"], row, 0, 0.0),
            "m2": _widened(moments["m2"], row, 0, float(moments["count"])),
        }
        for name, inputs in (("policy", policy), ("value", value)):
            if isinstance(getattr(self, name), MLP):
                first = _widened(state[name]["weights.0"], inputs, 1, 0.0)
                found[name] = {**state[name], "weights.0": first}
        return found

    def load_learned(self, state: Mapping[str, Any]) -> None:
        """Takes the parts :attr:`learned` of a :meth:`state_dict`."""
        super().load_learned(state)
        self.policy.load_state_dict(state["policy"])
        self.value.load_state_dict(state["value"])
        self.log_std.data.copy_(state["log_std"])
        self.optimizer.load_state_dict(state["optimizer"])


def _widened(values: Tensor, at: Tensor, axis: int, new: float) -> Tensor:
    """``values`` from these places along ``axis``, ``new`` where they are -1."""
    known = at >= 0
    shape = [*values.shape]
    shape[axis] = len(at)
    found = values.new_full(shape, new)
    return found.index_copy_(axis, known.nonzero()[:, 0], values.index_select(axis, at[known]))
