"""Soft actor-critic's gradient step (Haarnoja et al. 2018, arXiv:1812.05905) for K seeds at once.

Knows rows of transitions and nothing of where they come from: :mod:`pyfastenv.algorithms.sac`
feeds it from environments, :mod:`pyfastenv.algorithms.mbpo` from a model. Actions are in [-1, 1].
A gradient step is tensor operations only: no host synchronisation, so CUDA can replay it as a
graph. Gradients are written out: autograd's bookkeeping takes longer than the arithmetic. With
``bfloat16`` on a processor with a matrix unit (AMX) the same step is compiled (csrc/core/
sac_update.h): several times as fast.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from pyfastenv import _core
from pyfastenv.nn.cuda_graph import GraphedUpdate
from pyfastenv.nn.functional import squashed_gaussian, squashed_gaussian_gradient
from pyfastenv.nn.networks import FlatParameters, Saved, seeded_mlp
from pyfastenv.nn.optim import FusedAdam
from pyfastenv.nn.policy_spec import PolicySpec
from pyfastenv.sampling.buffers import RowLayout

METRICS = ("loss/critic", "loss/policy", "policy/entropy", "policy/temperature", "value/mean")


@dataclass(frozen=True, kw_only=True)
class SACOptions:
    """Settings of a learner."""

    hidden_sizes: tuple[int, ...] = (256, 256)
    activation: str = "relu"
    policy_learning_rate: float = 3e-4  # of the temperature too
    critic_learning_rate: float = 3e-4
    gamma: float = 0.99
    tau: float = 0.005
    temperature: float | None = None  # None: learned, from 1
    target_entropy: float | None = None  # None: minus the number of action components
    log_std_range: tuple[float, float] = (-20.0, 2.0)
    bfloat16: bool = False  # products of bfloat16 numbers, sums in float32
    num_threads: int = 1  # of the compiled step, at most one for each seed


class SACLearner:
    """A squashed Gaussian policy, twin critics and a temperature, for each of K seeds.

    Args:
        layout: Of the rows.
        seeds: K seeds of the initial networks.
        options: The settings.
        device: Where everything is.

    Attributes:
        actor: K policy networks.
        critic: 2 K critics: seed k's are 2 k and 2 k + 1.
    """

    def __init__(
        self,
        layout: RowLayout,
        seeds: Sequence[int],
        options: SACOptions,
        device: torch.device | str = "cpu",
    ):
        self.layout = layout
        self.options = options
        self.num_seeds = len(seeds)
        self.device = torch.device(device)
        hidden = options.hidden_sizes
        fields: dict[str, Any] = {"activation": options.activation, "gain": None}
        self.actor = seeded_mlp((layout.obs_size, *hidden, 2 * layout.action_size), seeds, **fields)
        num_inputs = layout.obs_size + layout.action_size
        self.critic = seeded_mlp((num_inputs, *hidden, 1), [s + 1 for s in seeds], 2, **fields)
        for module in (self.actor, self.critic):
            module.to(self.device)
        self.target = copy.deepcopy(self.critic)
        start = 1.0 if options.temperature is None else options.temperature
        self.log_temperature = nn.Parameter(
            torch.full((self.num_seeds,), math.log(start), device=self.device)
        )
        learned = options.temperature is None
        self._flat_policy = FlatParameters(
            [self.actor, self.log_temperature] if learned else [self.actor]
        )
        self._flat_critic = FlatParameters([self.critic])
        self._flat_target = FlatParameters([self.target])
        self._policy_optimizer = FusedAdam(self._flat_policy, lr=options.policy_learning_rate)
        self._critic_optimizer = FusedAdam(self._flat_critic, lr=options.critic_learning_rate)
        self._target_entropy = (
            -float(layout.action_size) if options.target_entropy is None else options.target_entropy
        )
        on_cpu = self.device.type == "cpu"
        self._compiled: _core.SacUpdate | None = None
        self._compiled_batch = 0
        self._can_compile = (
            options.bfloat16
            and on_cpu
            and options.activation == "relu"
            and len(options.hidden_sizes) > 0
            and _core.SacUpdate.available()
        )
        if options.bfloat16:
            for module in (self.actor, self.critic, self.target):
                module.compute_in(torch.bfloat16)
        self._graphed = GraphedUpdate(self.update, self.device)

    @property
    def is_compiled(self) -> bool:
        """Whether :meth:`run` takes the compiled step."""
        return self._can_compile

    def run(self, rows: Tensor, noise: Tensor, metrics: Tensor) -> None:
        """Gradient steps one after another, the fastest way there is.

        Args:
            rows: ``(U, K, B, width)`` transitions.
            noise: ``(U, K, *noise_shape(B))`` standard normal.
            metrics: ``(len(METRICS), K)``: where the last step's :data:`METRICS` are written.
        """
        if self._can_compile:
            self._run_compiled(rows, noise, metrics)
            return
        last = len(rows) - 1
        for i in range(len(rows)):
            self._graphed(rows[i], noise[i], metrics, wanted=i == last)

    @torch.no_grad()
    def _run_compiled(self, rows: Tensor, noise: Tensor, metrics: Tensor) -> None:
        size = rows.shape[2]
        if self._compiled is None or size != self._compiled_batch:
            self._compiled = _core.SacUpdate(
                obs_size=self.layout.obs_size,
                action_size=self.layout.action_size,
                hidden_sizes=list(self.options.hidden_sizes),
                num_seeds=self.num_seeds,
                batch_size=size,
                num_threads=self.options.num_threads,
            )
            self._compiled_batch = size
        policy, critic = self._policy_optimizer, self._critic_optimizer
        self._compiled.run(
            rows=rows.contiguous().numpy(),
            noise=noise.contiguous().numpy(),
            step=policy.num_steps,
            hyper=self._hyper(),
            policy=policy.arrays(),
            critic=critic.arrays(),
            target=self._flat_target.parameter.detach().numpy(),
            log_temperature=self.log_temperature.detach().numpy(),
            metrics=metrics.numpy(),
        )
        for optimizer in (policy, critic):
            optimizer.num_steps += len(rows)
        for module in (self.actor, self.critic, self.target):
            module.refresh()

    def _hyper(self) -> _core.SacHyper:
        options = self.options
        hyper = _core.SacHyper()
        hyper.policy_lr, hyper.critic_lr = (
            options.policy_learning_rate,
            options.critic_learning_rate,
        )
        hyper.gamma, hyper.tau = options.gamma, options.tau
        hyper.log_std_min, hyper.log_std_max = options.log_std_range
        hyper.target_entropy = self._target_entropy
        hyper.learn_temperature = options.temperature is None
        return hyper

    def noise_shape(self, batch_size: int) -> tuple[int, int]:
        """What :meth:`update` needs of standard normal numbers for each seed."""
        return (2 * batch_size, self.layout.action_size)

    @torch.no_grad()
    def update(self, rows: Tensor, noise: Tensor, metrics: Tensor | None = None) -> None:
        """One gradient step of critics, policy, temperature, and of the targets after them.

        Args:
            rows: ``(K, B, width)`` transitions.
            noise: ``(K, *noise_shape(B))`` standard normal.
            metrics: ``(len(METRICS), K)``: where to write :data:`METRICS`; None: not wanted.
        """
        layout, options = self.layout, self.options
        size = rows.shape[1]
        obs = layout.obs(rows)
        temperature = self.log_temperature.exp()  # (K,)

        # the policy has not changed when it is improved: one pass serves both its uses
        outputs, policy_saved = self.actor.evaluate(torch.cat((obs, layout.next_obs(rows)), 1))
        sample = squashed_gaussian(outputs, noise, options.log_std_range)

        # critics: down the squared error to the entropy-regularised target (eq. 5 and 6)
        next_inputs = torch.cat((layout.next_obs(rows), sample.actions[:, size:]), -1)
        next_values = self._twin(self.target.evaluate(self._for_twins(next_inputs))[0]).amin(1)
        soft = next_values - temperature[:, None] * sample.log_probs[:, size:]
        targets = layout.rewards(rows) + options.gamma * layout.continues(rows) * soft  # (K, B)
        values, critic_saved = self.critic.evaluate(self._for_twins(layout.obs_actions(rows)))
        errors = self._twin(values) - targets[:, None]  # (K, 2, B)
        by_values = (errors * (1.0 / size)).view(2 * self.num_seeds, size, 1)
        self.critic.write_gradients(critic_saved, by_values)
        self._critic_optimizer.step()
        self.critic.refresh()

        # policy: up the smaller critic's opinion and the entropy (eq. 7), reparameterised
        inputs = torch.cat((obs, sample.actions[:, :size]), -1)
        opinions, opinion_saved = self.critic.evaluate(self._for_twins(inputs))
        pair = self._twin(opinions)  # (K, 2, B)
        first = (pair[:, 0] <= pair[:, 1]).to(pair.dtype)
        by_pair = torch.stack((first, 1.0 - first), 1).mul_(-1.0 / size)
        columns = slice(layout.obs_size, None)
        by_actions = self.critic.input_gradient(
            opinion_saved, by_pair.view(2 * self.num_seeds, size, 1), columns
        )
        by_actions = by_actions.view(self.num_seeds, 2, size, layout.action_size).sum(1)
        mine = type(sample)(*(part[:, :size] for part in sample))
        weight = (temperature * (1.0 / size))[:, None].expand(-1, size)
        by_outputs = squashed_gaussian_gradient(mine, by_actions, weight)
        half = Saved(*([part[:, :size] for part in parts] for parts in policy_saved))
        self.actor.write_gradients(half, by_outputs)
        entropy = -mine.log_probs.mean(1)  # (K,)
        if options.temperature is None:
            # eq. 18, with the logarithm in place of the temperature as is usual
            assert self.log_temperature.grad is not None
            self.log_temperature.grad.copy_(entropy - self._target_entropy)
        self._policy_optimizer.step()
        self.actor.refresh()
        self._flat_target.parameter.lerp_(self._flat_critic.parameter, options.tau)
        self.target.refresh()
        if metrics is not None:
            opinion = pair.amin(1).mean(1)
            policy_loss = -opinion - temperature * entropy
            critic_loss = errors.square().mean((1, 2))
            metrics.copy_(torch.stack((critic_loss, policy_loss, entropy, temperature, opinion)))

    @torch.no_grad()
    def act(self, obs: Tensor, noise: Tensor) -> Tensor:
        """Actions ``(K, n, action_size)`` in [-1, 1] for ``(K, n, obs_size)`` observations.

        Args:
            obs: Observations.
            noise: ``(K, n, action_size)`` standard normal.
        """
        outputs, _ = self.actor.evaluate(obs)
        mean, raw = outputs.chunk(2, -1)
        return torch.addcmul(mean, raw.clamp(*self.options.log_std_range).exp(), noise).tanh_()

    def is_finite(self) -> bool:
        """Whether all policies are. Synchronises with the device."""
        return bool(self._flat_policy.parameter.isfinite().all())

    def policy_spec(self) -> PolicySpec:
        """The K policies as the pool runs them."""
        return self.actor.spec(
            distribution="tanh_gaussian", log_std_range=self.options.log_std_range
        )

    def _for_twins(self, inputs: Tensor) -> Tensor:
        """``(K, B, n)`` to ``(2 K, B, n)``: each seed's inputs twice."""
        num_seeds, *rest = inputs.shape
        return inputs[:, None].expand(-1, 2, -1, -1).reshape(2 * num_seeds, *rest)

    def _twin(self, values: Tensor) -> Tensor:
        """``(2 K, B, 1)`` to ``(K, 2, B)``."""
        return values.view(self.num_seeds, 2, -1)

    def state_dict(self) -> dict[str, Any]:
        """Networks, temperature and optimisers."""
        return {
            "actor": self.actor.state_dict(),
            "critic": self.critic.state_dict(),
            "target": self.target.state_dict(),
            "log_temperature": self.log_temperature.detach(),
            "policy_optimizer": self._policy_optimizer.state_dict(),
            "critic_optimizer": self._critic_optimizer.state_dict(),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restores :meth:`state_dict`."""
        for name in ("actor", "critic", "target"):
            module = getattr(self, name)
            module.load_state_dict(state[name])
            module.refresh()
        self.log_temperature.data.copy_(state["log_temperature"])
        self._policy_optimizer.load_state_dict(state["policy_optimizer"])
        self._critic_optimizer.load_state_dict(state["critic_optimizer"])
