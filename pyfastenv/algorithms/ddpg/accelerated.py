"""DDPG's gradient steps (``spec``) in a faster way, which a test holds against them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Protocol

import torch
from torch import Tensor

from pyfastenv.nn.networks import MLP, FlatParameters, Saved
from pyfastenv.nn.optim import FlatAdam
from pyfastenv.nn.spans import span
from pyfastenv.sampling.buffers import RowLayout
from pyfastenv.training.accelerators import Native
from pyfastenv.training.actor_critic import ActorCriticOptions


class Learner(Protocol):
    """The parts of :class:`pyfastenv.algorithms.ddpg.spec.DDPGLearner` that it uses."""

    layout: RowLayout
    options: ActorCriticOptions
    actor: MLP
    critic: MLP
    target_actor: MLP
    target_critic: MLP
    center: Tensor
    half: Tensor
    discount: Tensor
    flat_policy: FlatParameters
    flat_critic: FlatParameters
    flat_target_policy: FlatParameters
    flat_target_critic: FlatParameters
    policy_optimizer: FlatAdam
    critic_optimizer: FlatAdam

    def average(self, flat: FlatParameters) -> None:
        """Takes the gradients' means over torchrun's processes."""
        ...

    def refresh(self) -> None:
        """Brings copies of the parameters up to date."""
        ...


class WrittenOut(Native):
    """Gradients written out: on small networks autograd's bookkeeping takes most of the time."""

    name: ClassVar[str] = "written-out gradients"
    functions: ClassVar[tuple[str, ...]] = ("critic_loss", "policy_loss", "target_update")
    methods: ClassVar[tuple[str, ...]] = ("update", "learning", "mixed_precision")
    reads: ClassVar[type] = Learner
    targets: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "flat_target_policy": ("target_actor",),
        "flat_target_critic": ("target_critic",),
    }

    @classmethod
    def vectors(cls, learner: Learner) -> Mapping[str, tuple[str, ...]]:
        """The policy's and the critic's."""
        return {"flat_policy": ("actor",), "flat_critic": ("critic",)}

    def __init__(self, learner: Learner):
        self._learner = learner

    @torch.no_grad()
    def run(self, rows: Tensor, noise: Tensor, metrics: Tensor) -> None:
        """Gradient steps one after another."""
        layout = self._learner.layout
        # of all minibatches at once: what needs no network
        actions = layout.obs_actions(rows)[..., layout.obs_size :]
        env_actions = torch.addcmul(self._learner.center, actions, self._learner.half)
        pairs = torch.cat((layout.obs(rows), env_actions), -1)
        discounts = self._learner.discount * layout.continues(rows)
        last = len(rows) - 1
        for i in range(len(rows)):
            self._update(rows[i], pairs[i], discounts[i], metrics if i == last else None)

    def _update(
        self, rows: Tensor, pairs: Tensor, discounts: Tensor, metrics: Tensor | None
    ) -> None:
        learner = self._learner
        layout, critic, actor = learner.layout, learner.critic, learner.actor
        size = rows.shape[1]
        obs, next_obs = layout.obs(rows), layout.next_obs(rows)
        # the slope of critic_loss
        with span("forward"):
            next_actions, _, _ = self._act(learner.target_actor, next_obs)
            next_values, _ = learner.target_critic.evaluate(torch.cat((next_obs, next_actions), -1))
            targets = torch.addcmul(layout.rewards(rows), discounts, next_values[..., 0])
            values, critic_saved = critic.evaluate(pairs)
            errors = values[..., 0] - targets  # (K, B)
        critic.write_gradients(critic_saved, (errors * (2.0 / size))[..., None])
        learner.average(learner.flat_critic)
        learner.critic_optimizer.step()
        critic.refresh()

        # the slope of policy_loss
        with span("forward"):
            actions, squashed, policy_saved = self._act(actor, obs)
            policy_values, value_saved = critic.evaluate(torch.cat((obs, actions), -1))
        with span("backward"):
            by_value = torch.full_like(policy_values, -1.0 / size)
            columns = slice(layout.obs_size, None)
            by_action = critic.input_gradient(value_saved, by_value, columns)
            by_output = by_action * learner.half * (1.0 - squashed.square())
        actor.write_gradients(policy_saved, by_output)
        learner.average(learner.flat_policy)
        learner.policy_optimizer.step()
        tau = learner.options.tau
        learner.flat_target_critic.parameter.lerp_(learner.flat_critic.parameter, tau)
        learner.flat_target_policy.parameter.lerp_(learner.flat_policy.parameter, tau)
        learner.refresh()
        if metrics is not None:
            metrics.copy_(torch.stack((errors.square().mean(1), -policy_values.mean((1, 2)))))

    def _act(self, policy: MLP, obs: Tensor) -> tuple[Tensor, Tensor, Saved]:
        """Actions ``(K, B, A)``, the same in [-1, 1], and what the backward pass needs."""
        outputs, saved = policy.evaluate(obs)
        squashed = outputs.tanh()
        learner = self._learner
        return torch.addcmul(learner.center, squashed, learner.half), squashed, saved
