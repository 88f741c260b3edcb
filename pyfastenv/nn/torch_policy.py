"""A policy as a torch module: any network between a normaliser and a distribution over actions.

What :class:`pyfastenv.PolicySpec` says in numbers for the core's workers, for whoever wants to act,
export or sample with torch. The same formulas as csrc/nn/policy.h.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from itertools import pairwise
from typing import Any, NamedTuple, Self, TypeVar

import gymnasium
import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor, nn

from pyfastenv.nn.functional import gaussian_log_prob, squashed_gaussian
from pyfastenv.nn.networks import MLP, NetworkStack
from pyfastenv.nn.policy_spec import DISTRIBUTIONS, PolicySpec

ArrayOrTensor = TypeVar("ArrayOrTensor", bound=Any)

_MODULES = {
    "tanh": nn.Tanh,
    "relu": nn.ReLU,
    "elu": nn.ELU,
    "silu": nn.SiLU,
    "identity": nn.Identity,
}


class Drawn(NamedTuple):
    """Actions of a policy for B observations."""

    actions: Tensor  # (B, A) float32 as drawn, or (B,) int64
    log_probs: Tensor  # (B,) of them; 0 where the policy is deterministic
    env_actions: Tensor  # what the environment is to be given


class TorchPolicy(nn.Module):
    """Observations to actions.

    Args:
        network: ``(B, obs_size)`` to ``(B, outputs)``, both float32.
        obs_size: Components of an observation, as the network sees it.
        action_space: Of one environment.
        distribution: As of :class:`PolicySpec`, which has the other options too; arrays here are of
            one policy, without the leading axis.

    Attributes:
        draw_noise: What gives the noise ``(B, A)`` of the next B actions; None: standard normal.

    Raises:
        ValueError: The distribution does not fit the action space.
    """

    def __init__(
        self,
        network: nn.Module,
        obs_size: int,
        action_space: gymnasium.Space[Any],
        *,
        distribution: str,
        log_std: Tensor | None = None,
        log_std_range: tuple[float, float] = (-20.0, 2.0),
        noise: float = 0.0,
        epsilon: float | None = None,
        obs_mean: Tensor | None = None,
        obs_scale: Tensor | None = None,
        obs_clip: float = 0.0,
        row_begin: int = 0,
        row_size: int | None = None,
        clip_actions: bool = True,
        greedy: bool = False,
    ):
        super().__init__()
        box = isinstance(action_space, gymnasium.spaces.Box)
        if distribution not in DISTRIBUTIONS or box == (distribution == "categorical"):
            raise ValueError(
                f"distribution: expected one of {', '.join(DISTRIBUTIONS)} that fits "
                f"{action_space}, got {distribution!r}"
            )
        self.network = network
        self.obs_size = obs_size
        self.action_space = action_space
        self.distribution = distribution
        self.log_std_range = log_std_range
        self.noise = noise
        self.epsilon = epsilon
        self.obs_clip = obs_clip
        self.row_begin = row_begin
        self.row_size = row_size or obs_size
        self.clip_actions = clip_actions
        self.greedy = greedy
        self.draw_noise: Callable[[torch.Generator | None], Tensor] | None = None
        low, high = (
            (torch.from_numpy(np.float32(bound).ravel()) for bound in (space.low, space.high))
            if isinstance(space := action_space, gymnasium.spaces.Box)
            else (None, None)
        )
        for name, buffer in (
            ("log_std", log_std),
            ("obs_mean", obs_mean),
            ("obs_scale", obs_scale),
            ("low", low),
            ("high", high),
        ):
            if buffer is None:  # torch.export miscounts buffers that are None
                setattr(self, name, None)
            else:
                self.register_buffer(name, buffer)
        self.log_std: Tensor | None
        self.obs_mean: Tensor | None
        self.obs_scale: Tensor | None
        self.low: Tensor
        self.high: Tensor

    @classmethod
    def of(cls, spec: PolicySpec, action_space: gymnasium.Space[Any], number: int = 0) -> Self:
        """One of a spec's policies."""
        sizes = [len(spec.weights[0][number]), *(bias.shape[1] for bias in spec.biases)]
        layers: list[nn.Module] = []
        for i, ((num_inputs, num_outputs), weight, bias) in enumerate(
            zip(pairwise(sizes), spec.weights, spec.biases, strict=True)
        ):
            linear = nn.utils.skip_init(nn.Linear, num_inputs, num_outputs)
            linear.weight.data = torch.from_numpy(weight[number].T.copy())
            linear.bias.data = torch.from_numpy(bias[number].copy())
            layers.append(linear)
            if i < len(spec.layer_norms):
                norm = nn.LayerNorm(num_outputs)
                scale_and_shift = torch.from_numpy(spec.layer_norms[i][number].copy())
                norm.weight.data, norm.bias.data = scale_and_shift.unbind(0)
                layers.append(norm)
            layers.append(_MODULES[spec.activation]())

        def mine(array: NDArray[np.float32] | None) -> Tensor | None:
            return None if array is None else torch.from_numpy(np.array(array[number]))

        return cls(
            nn.Sequential(*layers[:-1]).requires_grad_(False),
            sizes[0],
            action_space,
            distribution=spec.distribution,
            log_std=mine(spec.log_std),
            log_std_range=spec.log_std_range,
            noise=spec.noise,
            epsilon=spec.epsilon,
            obs_mean=mine(spec.obs_mean),
            obs_scale=mine(spec.obs_scale),
            obs_clip=spec.obs_clip,
            row_begin=spec.row_begin,
            row_size=spec.row_size,
            clip_actions=spec.clip_actions,
            greedy=spec.greedy,
        )

    def as_greedy(self, greedy: bool = True) -> Self:
        """The same policy, with the same network, without randomness (or with it)."""
        other = copy.copy(self)
        other.greedy = greedy
        return other

    def of_rows(self, rows: ArrayOrTensor) -> ArrayOrTensor:
        """The policy's part ``(…, obs_size)`` of flat observations ``(…, row_size)``: a view.

        Raises:
            ValueError: Rows of another size.
        """
        if rows.shape[-1] != self.row_size:
            raise ValueError(f"obs: expected rows of {self.row_size}, got {tuple(rows.shape)}")
        seen: ArrayOrTensor = rows[..., self.row_begin : self.row_begin + self.obs_size]
        return seen

    def forward(self, obs: Tensor) -> Tensor:
        """The most likely actions for the environment.

        Args:
            obs: ``(B, obs_size)`` float32, not normalised.

        Returns:
            ``(B, action_size)`` float32, or ``(B,)`` int64.
        """
        outputs = self.outputs(obs)
        if self.distribution == "categorical":
            return outputs.argmax(-1)
        mean = outputs[:, : len(self.low)]
        if self.distribution == "gaussian":
            return torch.clamp(mean, self.low, self.high) if self.clip_actions else mean
        return self._from_unit(mean.tanh())

    def draw(self, obs: Tensor, generator: torch.Generator | None = None) -> Drawn:
        """Actions as the training draws them; the most likely ones if the policy is greedy.

        Args:
            obs: ``(B, obs_size)`` float32.
            generator: What draws; None: torch's default.
        """
        outputs = self.outputs(obs)
        if self.epsilon is not None:
            return self._draw_epsilon_greedy(outputs, generator)
        if self.distribution == "categorical":
            log_p = torch.log_softmax(outputs, -1)
            if self.greedy:
                index = outputs.argmax(-1, keepdim=True)
            else:
                index = torch.multinomial(log_p.exp(), 1, generator=generator)
            actions = index[:, 0]
            return Drawn(actions, log_p.gather(-1, index)[:, 0], actions)
        size = len(self.low)
        if self.draw_noise is not None and not self.greedy:
            noise = self.draw_noise(generator)
        else:
            noise = torch.zeros(len(obs), size, device=obs.device)
            if not self.greedy:
                noise.normal_(generator=generator)
        if self.distribution == "deterministic":
            unit = (outputs.tanh() + self.noise * noise).clamp(-1.0, 1.0)
            actions = self._from_unit(unit)
            return Drawn(actions, actions.new_zeros(len(actions)), actions)
        if self.log_std is not None:
            outputs = torch.cat((outputs, self.log_std.expand_as(outputs)), -1)
        if self.distribution == "tanh_gaussian":
            sample = squashed_gaussian(outputs, noise, self.log_std_range)
            actions = self._from_unit(sample.actions)
            widths = ((self.high - self.low) / 2.0).log().sum()
            return Drawn(actions, sample.log_probs - widths, actions)
        mean, log_std = outputs.chunk(2, -1)
        if self.log_std is None:
            log_std = log_std.clamp(*self.log_std_range)
        actions = mean + log_std.exp() * noise
        env_actions = torch.clamp(actions, self.low, self.high) if self.clip_actions else actions
        return Drawn(actions, gaussian_log_prob(actions, mean, log_std), env_actions)

    def _draw_epsilon_greedy(self, values: Tensor, generator: torch.Generator | None) -> Drawn:
        best, number = values.argmax(-1), values.shape[-1]
        epsilon = 0.0 if self.greedy or self.epsilon is None else self.epsilon
        actions = best
        if epsilon > 0.0:
            uniform = torch.empty(best.shape, dtype=torch.float64, device=best.device)
            uniform.uniform_(generator=generator)
            # one below epsilon is, divided by it, uniform again
            others = (uniform / epsilon * number).long().clamp(max=number - 1)
            actions = torch.where(uniform < epsilon, others, best)
        shares = epsilon / number + (1.0 - epsilon) * (actions == best).float()
        return Drawn(actions, shares.log(), actions)

    def outputs(self, obs: Tensor) -> Tensor:
        """The network's outputs, ``(B, outputs)``, for observations as they are."""
        if self.obs_mean is not None and self.obs_scale is not None:
            obs = (obs - self.obs_mean) * self.obs_scale
        if self.obs_clip > 0.0:
            obs = obs.clamp(-self.obs_clip, self.obs_clip)
        return self._evaluate(obs)

    def _evaluate(self, obs: Tensor) -> Tensor:
        outputs: Tensor = self.network(obs)
        return outputs

    def reset(self, env_ids: ArrayLike | None = None) -> None:
        """New episodes begin in these environments, None: in all; here nothing is remembered."""

    @torch.no_grad()
    def act(self, obs: ArrayLike, deterministic: bool = True) -> NDArray[Any]:
        """Actions for the environment; see :meth:`pyfastenv.runs.saved.SavedPolicy.act`."""
        if isinstance(obs, tuple) and len(obs) == 2 and isinstance(obs[1], dict):
            raise ValueError("obs: expected observations alone; reset() gives them with its infos")
        given = np.asarray(obs)
        if given.ndim not in (1, 2) or given.shape[-1] != self.obs_size:
            raise ValueError(
                f"obs: expected ({self.obs_size},) or (B, {self.obs_size}), got {given.shape}"
            )
        batch = torch.from_numpy(np.ascontiguousarray(np.atleast_2d(given), np.float32))
        actions = self(batch) if deterministic else self.draw(batch).env_actions
        found: NDArray[Any] = actions.numpy().astype(self.action_space.dtype)
        return found[0] if given.ndim == 1 else found

    def _from_unit(self, actions: Tensor) -> Tensor:
        """From [-1, 1] to the action space, computed as the core does."""
        center, half = (self.high + self.low) / 2.0, (self.high - self.low) / 2.0
        return center + half * actions


def policies_of(
    network: nn.Module,
    obs_size: int,
    action_space: gymnasium.Space[Any],
    device: torch.device,
    kind: type[TorchPolicy] = TorchPolicy,
    **fields: Any,
) -> PolicySpec | list[TorchPolicy]:
    """K networks as policies: for the pool's workers, or, if they are a user's, for torch.

    Args:
        network: An MLP, a NetworkStack, or one that ``kind`` acts with.
        obs_size: Components of an observation, as they see it.
        action_space: Of one environment.
        device: Where the networks are.
        kind: What acts with a network that is no MLP.
        **fields: As of :class:`PolicySpec`.
    """
    if isinstance(network, MLP):
        return network.spec(**fields)
    networks = network.networks if isinstance(network, NetworkStack) else [network]

    def mine(k: int) -> dict[str, Any]:
        return {
            name: torch.from_numpy(value[k]).to(device) if isinstance(value, np.ndarray) else value
            for name, value in fields.items()
        }

    return [
        kind(each, obs_size, action_space, **mine(k)).to(device) for k, each in enumerate(networks)
    ]


def as_greedy(policies: PolicySpec | list[TorchPolicy]) -> PolicySpec | list[TorchPolicy]:
    """The same policies without randomness."""
    if isinstance(policies, PolicySpec):
        return policies.as_greedy()
    return [policy.as_greedy() for policy in policies]
