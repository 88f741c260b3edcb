"""DQN's gradient steps (``spec``) in a faster way, which a test holds against them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Protocol

import torch
from torch import Tensor

from pyfastenv.nn.networks import MLP, FlatParameters
from pyfastenv.nn.optim import FlatAdam
from pyfastenv.sampling.buffers import RowLayout
from pyfastenv.training.accelerators import Accelerator


class Learner(Protocol):
    """The parts of :class:`pyfastenv.algorithms.dqn.spec.DQNLearner` that it uses."""

    layout: RowLayout
    options: Any
    actor: MLP
    target: MLP
    discount: Tensor
    flat_policy: FlatParameters
    flat_target: FlatParameters
    critic_optimizer: FlatAdam

    def refresh(self) -> None:
        """Brings copies of the parameters up to date."""
        ...


class WrittenOut(Accelerator):
    """Gradients written out: on small networks autograd's bookkeeping takes most of the time."""

    name: ClassVar[str] = "written-out gradients"
    functions: ClassVar[tuple[str, ...]] = ("value_loss", "target_update")
    methods: ClassVar[tuple[str, ...]] = ("update", "learning", "mixed_precision")
    reads: ClassVar[type] = Learner
    _learner: Learner
    targets: ClassVar[Mapping[str, tuple[str, ...]]] = {"flat_target": ("target",)}

    @classmethod
    def vectors(cls, learner: Learner) -> Mapping[str, tuple[str, ...]]:
        """The network's."""
        return {"flat_policy": ("actor",)}

    @torch.no_grad()
    def run(self, rows: Tensor, noise: Tensor, metrics: Tensor) -> None:
        """Gradient steps one after another."""
        layout = self._learner.layout
        # of all minibatches at once: what needs no network
        taken = layout.actions(rows).long()
        discounts = self._learner.discount * layout.continues(rows)
        for i in range(len(rows)):
            errors = self._update(rows[i], taken[i], discounts[i])
        delta, sizes = self._learner.options.huber_delta, errors.abs()
        linear = delta * (sizes - 0.5 * delta)
        losses = torch.where(sizes < delta, 0.5 * errors.square(), linear)
        metrics.copy_(losses.mean(1)[None])

    def _update(self, rows: Tensor, taken: Tensor, discounts: Tensor) -> Tensor:
        """One step; returns the errors ``(K, B)`` before it."""
        learner = self._learner
        layout, options, online = learner.layout, learner.options, learner.actor
        next_obs = layout.next_obs(rows)[..., layout.policy]
        next_values, _ = learner.target.evaluate(next_obs)
        judged = online.evaluate(next_obs)[0] if options.double else next_values
        future = next_values.gather(-1, judged.argmax(-1, keepdim=True))[..., 0]
        goals = torch.addcmul(layout.rewards(rows), discounts, future)
        values, saved = online.evaluate(layout.obs(rows)[..., layout.policy])
        errors = values.gather(-1, taken)[..., 0] - goals
        # the slope of value_loss
        slopes = errors.clamp(-options.huber_delta, options.huber_delta) / errors.shape[1]
        online.write_gradients(
            saved, torch.zeros_like(values).scatter_(-1, taken, slopes[..., None])
        )
        learner.critic_optimizer.step()
        if learner.critic_optimizer.num_steps % options.target_every == 0:
            learner.flat_target.parameter.lerp_(learner.flat_policy.parameter, options.tau)
        learner.refresh()
        return errors
