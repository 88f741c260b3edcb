"""The coupled flow of MBPO's variant, and the agent that treats the dynamics model as its policy.

A pair of flows measures how real a transition looks; an actor-critic whose state is (s, a), whose
action is (r, s') and whose policy is the ensemble makes the model's transitions look more real.
docs/mbpo.md says where this differs from the public program and why. Knows rows and the ensemble;
nothing of environments.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from pyfastenv.algorithms.mbpo.dynamics import EnsembleDynamics
from pyfastenv.nn.flows import CoupledFlow, donsker_varadhan_loss
from pyfastenv.nn.functional import LOG_TWO_PI, bounded_log_var
from pyfastenv.nn.mlp_function import MLPFunction
from pyfastenv.nn.networks import FlatParameters, seeded_mlp, stack_seeds
from pyfastenv.nn.optim import FlatAdam
from pyfastenv.nn.spans import span
from pyfastenv.nn.streams import SeedStreams
from pyfastenv.sampling.buffers import RowLayout

_MIN_STD = 1e-6


@dataclass(frozen=True, kw_only=True)
class FlowOptions:
    """Settings of flow and agent; the defaults are the public program's."""

    num_couplings: int = 2
    hidden_size: int = 256
    num_hidden: int = 2
    flow_learning_rate: float = 3e-4
    likelihood_coef: float = 1.0  # weight of the flows' own log-likelihoods
    max_grad_norm: float = 1.0  # of each seed's pair
    critic_hidden_sizes: tuple[int, ...] = (256, 256)
    learning_rate: float = 3e-4  # of the agent: critics, temperature and the model
    gamma: float = 0.99
    tau: float = 0.005
    # the model's loss: its likelihood of the real outcomes, plus this times the agent's loss
    # (scaled to values of size one); without the likelihood a few steps undo the fit
    agent_coef: float = 0.1


class Actor(Protocol):
    """Who acts in the states that follow."""

    def act(self, obs: Tensor, noise: Tensor) -> Tensor:
        """Actions ``(K, n, action_size)`` of observations and standard normal noise."""
        ...


class FlowAgent:
    """Flows, critics and temperature of K seeds, and what they do to a dynamics model.

    Args:
        layout: Of the rows.
        seeds: K seeds of the initial networks.
        options: The settings.
        dynamics: The model; its parameters are changed by :meth:`improve_model`.
        learner: Whose policy acts in the states that follow.
    """

    def __init__(
        self,
        layout: RowLayout,
        seeds: Sequence[int],
        options: FlowOptions,
        dynamics: EnsembleDynamics,
        learner: Actor,
    ):
        self.layout = layout
        self.options = options
        self.dynamics = dynamics
        self.learner = learner
        self.num_seeds = len(seeds)
        device = dynamics.device
        pair_size = layout.obs_size + layout.action_size
        self.flow = stack_seeds(
            lambda count: CoupledFlow(
                pair_size + 1,
                num_networks=count,
                num_couplings=options.num_couplings,
                hidden_size=options.hidden_size,
                num_hidden=options.num_hidden,
            ),
            seeds,
        ).to(device)
        self._flat_flow = FlatParameters([self.flow])
        self._flow_optimizer = FlatAdam(self._flat_flow, lr=options.flow_learning_rate, fused=True)

        sizes = (pair_size + 1 + layout.obs_size, *options.critic_hidden_sizes, 1)
        critic_seeds = [seed + 1 for seed in seeds]  # as SAC's
        self.critic = seeded_mlp(sizes, critic_seeds, 2, activation="relu", gain=None).to(device)
        self.target = copy.deepcopy(self.critic)
        self._flat_critic = FlatParameters([self.critic])
        self._flat_target = FlatParameters([self.target])
        self.log_temperature = nn.Parameter(torch.zeros(self.num_seeds, device=device))
        flat_temperature = FlatParameters([self.log_temperature])
        self._critic_optimizer = FlatAdam(self._flat_critic, lr=options.learning_rate, fused=True)
        self._temperature_optimizer = FlatAdam(
            flat_temperature, lr=options.learning_rate, fused=True
        )
        self._model_optimizer = FlatAdam(dynamics.flat, lr=options.learning_rate, fused=True)
        # scale of (r, s' - s), so that the critics see numbers around one
        self._outcome_std = torch.ones(self.num_seeds, 1, 1 + layout.obs_size, device=device)

    # ---- the flow ----------------------------------------------------------------------------

    @torch.no_grad()
    def standardise_by(self, rows: Tensor) -> None:
        """Takes the scales of flow and critics from real rows ``(K, n, width)``."""
        samples = self._samples(rows)
        self.flow.set_standardisation(samples.mean(1), samples.std(1).clamp_(min=_MIN_STD))
        self._outcome_std.copy_(self._outcomes(rows).std(1, keepdim=True).clamp_(min=_MIN_STD))

    def update_flow(self, env_rows: Tensor, model_rows: Tensor) -> Tensor:
        """One step towards telling the model's transitions from real ones.

        ``x = tanh(log p1 - log p2)`` of (s, a, r); down :func:`donsker_varadhan_loss` of x plus
        both flows' negative log-likelihoods: p1's on the model's samples, p2's on the real ones.

        Args:
            env_rows: ``(K, B, width)``.
            model_rows: ``(K, B, width)``.

        Returns:
            The losses, ``(K,)``.
        """
        size = env_rows.shape[1]
        samples = torch.cat((self._samples(env_rows), self._samples(model_rows)), 1)
        with torch.enable_grad():
            with span("forward"):
                log_probs = self._flow_log_probs(samples)  # (K, 2, 2 B)
                ratio = (log_probs[:, 0] - log_probs[:, 1]).tanh()
                likelihood = log_probs[:, 0, size:].mean(1) + log_probs[:, 1, :size].mean(1)
                losses = donsker_varadhan_loss(ratio[:, size:], ratio[:, :size])
                losses = losses - self.options.likelihood_coef * likelihood
            with span("backward"):
                self._flat_flow.grad.zero_()
                losses.sum().backward()
        self._clip_flow_gradients()
        self._flow_optimizer.step()
        return losses.detach()

    @torch.no_grad()
    def reward(self, rows: Tensor) -> Tensor:
        """``1 - x``, in (0, 2): how real transitions look, ``(K, B)``."""
        return 1.0 - self.flow.log_ratio(self._samples(rows)).tanh()

    def _samples(self, rows: Tensor) -> Tensor:
        """(s, a, r)."""
        return torch.cat((self.layout.obs_actions(rows), self.layout.rewards(rows)[..., None]), -1)

    def _flow_log_probs(self, samples: Tensor) -> Tensor:
        both = samples[:, None].expand(-1, 2, -1, -1).flatten(0, 1)
        return self.flow.flows.log_prob(both).view(self.num_seeds, 2, -1)

    @torch.no_grad()
    def _clip_flow_gradients(self) -> None:
        grads = [p.grad.view(self.num_seeds, -1) for p in self.flow.parameters()]  # type: ignore[union-attr]
        norm = torch.stack([grad.square().sum(1) for grad in grads]).sum(0).sqrt()  # (K,)
        scale = (self.options.max_grad_norm / (norm + 1e-6)).clamp_(max=1.0)
        for grad in grads:
            grad.mul_(scale[:, None])

    # ---- the model as a policy ---------------------------------------------------------------

    def improve_model(self, batches: Tensor, streams: SeedStreams) -> Tensor:
        """Soft actor-critic with the ensemble as the policy, one gradient step per batch.

        The temperature keeps the entropy that the model has at the beginning. The model's optimiser
        starts anew: the model has been fitted since.

        Args:
            batches: ``(U, K, B, width)`` real rows.
            streams: Draw what policy and model do.

        Returns:
            The flow's mean reward of the last batch, ``(K,)``.
        """
        count, _, size, _ = batches.shape
        size -= size % self.dynamics.options.num_elites
        batches = batches[:, :, :size]
        outcome_size = 1 + self.layout.obs_size
        self._model_optimizer.reset()
        entropy: Tensor | None = None
        for i in range(count):
            noise = streams.normal(2, size, outcome_size)
            action_noise = streams.normal(size, self.layout.action_size)
            with torch.no_grad():
                rewards = self._update_critic(batches[i], action_noise, noise[:, 0])
            entropy = self._update_model(batches[i], noise[:, 1], entropy)
        self.dynamics.network.refresh()
        self.dynamics.refresh()
        return rewards.mean(1)

    def _update_critic(self, rows: Tensor, action_noise: Tensor, noise: Tensor) -> Tensor:
        layout, options = self.layout, self.options
        rewards = self.reward(rows)
        next_obs = layout.next_obs(rows)
        next_pairs = torch.cat((next_obs, self.learner.act(next_obs, action_noise)), -1)
        mean, log_var = self._moments(next_pairs)
        outcome, log_probs = mean + (0.5 * log_var).exp() * noise, _log_probs(noise, log_var)
        following = self._values(self.target.evaluate(self._inputs(next_pairs, outcome))[0])
        soft = following.amin(1) - self.log_temperature.exp()[:, None] * log_probs
        targets = rewards + options.gamma * layout.continues(rows) * soft
        inputs = self._inputs(layout.obs_actions(rows), self._outcomes(rows))
        values, saved = self.critic.evaluate(inputs)
        errors = self._values(values) - targets[:, None]
        self.critic.write_gradients(saved, errors.view(values.shape) * (1.0 / rows.shape[1]))
        self._critic_optimizer.step()
        self._flat_target.parameter.lerp_(self._flat_critic.parameter, options.tau)
        return rewards

    def _update_model(self, rows: Tensor, noise: Tensor, target_entropy: Tensor | None) -> Tensor:
        """One step of model and temperature; returns the entropy that is aimed at, ``(K,)``."""
        dynamics = self.dynamics
        pairs = self.layout.obs_actions(rows)
        with torch.enable_grad():
            mean, log_var = self._moments(pairs)
            outcome = mean + (0.5 * log_var).exp() * noise
            log_probs = _log_probs(noise, log_var)
            values = self._values(self._critic_values(self._inputs(pairs, outcome))).amin(1)
            temperature = self.log_temperature.detach().exp()[:, None]
            agent_loss = (temperature * log_probs - values).mean(1)
            agent_loss = agent_loss / (1.0 + values.detach().abs().mean(1))
            errors = (mean - self._outcomes(rows)).square() * torch.exp(-log_var) + log_var
            loss = (errors.mean((1, 2)) + self.options.agent_coef * agent_loss).sum()
            parameters = [
                *dynamics.network.parameters(),
                dynamics.max_log_var,
                dynamics.min_log_var,
            ]
            with span("backward"):
                gradients = torch.autograd.grad(loss, parameters)
        for parameter, gradient in zip(parameters, gradients, strict=True):
            assert parameter.grad is not None
            parameter.grad.copy_(gradient)
        self._model_optimizer.step()
        entropy = -log_probs.detach().mean(1)
        if target_entropy is None:
            return entropy
        assert self.log_temperature.grad is not None
        self.log_temperature.grad.copy_(entropy - target_entropy)
        self._temperature_optimizer.step()
        return target_entropy

    def _moments(self, pairs: Tensor) -> tuple[Tensor, Tensor]:
        """Means and log-variances of the outcomes (r, s' - s), ``(K, B, 1 + obs_size)``.

        Row i is its seed's (i mod E)-th elite's, as in :meth:`EnsembleDynamics.predict`.
        """
        dynamics = self.dynamics
        count, members = dynamics.options.num_elites, dynamics.options.ensemble_size
        num_seeds, size, _ = pairs.shape
        offsets = torch.arange(num_seeds, device=pairs.device)[:, None] * members
        chosen = (dynamics.elites + offsets).flatten()
        network = dynamics.network
        layers = [
            parameter.index_select(0, chosen)
            for parameter in (*network.weight_list, *network.bias_list)
        ]
        inputs = (pairs - dynamics.input_mean) / dynamics.input_std
        grouped = inputs.view(num_seeds, size // count, count, -1).transpose(1, 2).flatten(0, 1)
        outputs = MLPFunction.apply(grouped, network.activation, *layers)
        mean, raw = outputs.chunk(2, -1)
        low, high = dynamics.min_log_var, dynamics.max_log_var
        log_var = bounded_log_var(raw, low.index_select(0, chosen), high.index_select(0, chosen))

        def in_order(x: Tensor) -> Tensor:
            grouped = x.view(num_seeds, count, size // count, -1)
            return grouped.transpose(1, 2).reshape(num_seeds, size, -1)

        return in_order(mean), in_order(log_var)

    def _outcomes(self, rows: Tensor) -> Tensor:
        change = self.layout.next_obs(rows) - self.layout.obs(rows)
        return torch.cat((self.layout.rewards(rows)[..., None], change), -1)

    def _inputs(self, pairs: Tensor, outcome: Tensor) -> Tensor:
        """The inputs of the critics, ``(2 K, B, …)``."""
        dynamics = self.dynamics
        state = (pairs - dynamics.input_mean) / dynamics.input_std
        both = torch.cat((state, outcome / self._outcome_std), -1)
        return both[:, None].expand(-1, 2, -1, -1).flatten(0, 1)

    def _critic_values(self, inputs: Tensor) -> Tensor:
        critic = self.critic
        values: Tensor = MLPFunction.apply(
            inputs, critic.activation, *critic.weight_list, *critic.bias_list
        )
        return values

    def _values(self, values: Tensor) -> Tensor:
        return values.view(self.num_seeds, 2, -1)

    # ---- saving ------------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Any]:
        """Flows, critics, temperature and optimisers (the model is saved by itself)."""
        return {
            "flow": self.flow.state_dict(),
            "critic": self.critic.state_dict(),
            "target": self.target.state_dict(),
            "log_temperature": self.log_temperature.detach(),
            "outcome_std": self._outcome_std,
            "flow_optimizer": self._flow_optimizer.state_dict(),
            "critic_optimizer": self._critic_optimizer.state_dict(),
            "temperature_optimizer": self._temperature_optimizer.state_dict(),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restores :meth:`state_dict`."""
        for name in ("flow", "critic", "target"):
            getattr(self, name).load_state_dict(state[name])
        self.log_temperature.data.copy_(state["log_temperature"])
        self._outcome_std.copy_(state["outcome_std"])
        for name in ("flow_optimizer", "critic_optimizer", "temperature_optimizer"):
            getattr(self, f"_{name}").load_state_dict(state[name])


def _log_probs(noise: Tensor, log_var: Tensor) -> Tensor:
    """Log-densities of ``mean + exp(log_var / 2) * noise``, summed over components."""
    return -0.5 * (noise.square() + log_var + LOG_TWO_PI).sum(-1)
