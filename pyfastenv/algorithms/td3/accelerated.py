"""TD3's (and DDPG's) gradient steps (``spec``) in a faster way, which a test holds against them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, NamedTuple, Protocol

import torch
from torch import Tensor

from pyfastenv.nn.networks import MLP, FlatParameters, Saved, mlp_backward, mlp_forward
from pyfastenv.nn.optim import FlatAdam
from pyfastenv.nn.spans import span
from pyfastenv.sampling.buffers import RowLayout
from pyfastenv.training.accelerators import Accelerator
from pyfastenv.training.actor_critic import Batch


class Learner(Protocol):
    """The parts of :class:`pyfastenv.algorithms.td3.spec.TD3Learner` that it uses."""

    layout: RowLayout
    options: Any
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


class PolicySlope(NamedTuple):
    """A policy's loss, and its slopes by what the policy's actions lead to."""

    loss: Tensor  # (K,)
    by_value: Tensor  # (K, B, 1): by the critic's value
    by_unit: Tensor | None  # (K, B, A): by the actions in [-1, 1], beside what the critic says


class WrittenOut(Accelerator):
    """Gradients written out: on small networks autograd's bookkeeping takes most of the time."""

    name: ClassVar[str] = "written-out gradients"
    functions: ClassVar[tuple[str, ...]] = ("critic_loss", "policy_loss", "target_update")
    methods: ClassVar[tuple[str, ...]] = ("update", "as_networks", "learning", "mixed_precision")
    reads: ClassVar[type] = Learner
    _learner: Learner
    targets: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "flat_target_policy": ("target_actor",),
        "flat_target_critic": ("target_critic",),
    }

    @classmethod
    def vectors(cls, learner: Learner) -> Mapping[str, tuple[str, ...]]:
        """The policy's and the critic's."""
        return {"flat_policy": ("actor",), "flat_critic": ("critic",)}

    @torch.no_grad()
    def run(self, rows: Tensor, noise: Tensor, metrics: Tensor) -> None:
        """Gradient steps one after another."""
        layout = self._learner.layout
        # of all minibatches at once: what needs no network
        actions = layout.actions(rows)
        env_actions = torch.addcmul(self._learner.center, actions, self._learner.half)
        pairs = torch.cat((layout.obs(rows)[..., layout.critic], env_actions), -1)
        discounts = self._learner.discount * layout.continues(rows)
        bound = self._learner.options.target_noise_clip
        spread = noise.mul(self._learner.options.target_noise).clamp_(-bound, bound)
        last = len(rows) - 1
        for i in range(len(rows)):
            wanted = metrics if i == last else None
            self._update(rows[i], pairs[i], discounts[i], spread[i], wanted)

    def _update(
        self,
        rows: Tensor,
        pairs: Tensor,
        discounts: Tensor,
        spread: Tensor,
        metrics: Tensor | None,
    ) -> None:
        learner = self._learner
        layout, options, critic, actor = (
            learner.layout,
            learner.options,
            learner.critic,
            learner.actor,
        )
        size = rows.shape[1]
        batch = Batch.of(rows, layout)
        # the slope of critic_loss
        with span("forward"):
            next_actions, next_squashed, _ = self._act(learner.target_actor, batch.next_obs)
            if options.target_noise > 0.0:
                unit = next_squashed.add_(spread).clamp_(-1.0, 1.0)
                next_actions = torch.addcmul(learner.center, unit, learner.half)
            next_pairs = torch.cat((batch.next_critic_obs, next_actions), -1)
            next_values, _ = learner.target_critic.evaluate(self._for_critics(next_pairs))
            least = self._by_seed(next_values).amin(1)
            targets = torch.addcmul(batch.rewards, discounts, least)
            values, critic_saved = critic.evaluate(self._for_critics(pairs))
            errors = self._by_seed(values) - targets[:, None]  # (K, C, B)
        critic.write_gradients(critic_saved, (errors * (2.0 / size)).view_as(values))
        learner.average(learner.flat_critic)
        learner.critic_optimizer.step()
        critic.refresh()

        # the slope of policy_loss
        due = learner.critic_optimizer.num_steps % options.policy_delay == 0
        if due or metrics is not None:
            weights, biases, norms = (
                [each[:: options.num_critics] for each in x]
                for x in (*critic.layers, critic.norm_list)
            )
            with span("forward"):
                actions, squashed, policy_saved = self._act(actor, batch.obs)
                inputs = torch.cat((batch.critic_obs, actions), -1)
                policy_values, saved = mlp_forward(
                    inputs, weights, biases, critic.activation, norms
                )
            slope = self._policy_slope(policy_values, squashed, rows)
        if due:
            with span("backward"):
                columns = slice(layout.critic_size, None)
                by_action = mlp_backward(
                    slope.by_value,
                    saved,
                    weights,
                    critic.activation,
                    None,
                    None,
                    norms,
                    input_columns=columns,
                )
                assert by_action is not None
                by_unit = by_action * learner.half
                if slope.by_unit is not None:
                    by_unit += slope.by_unit
                by_output = by_unit * (1.0 - squashed.square())
            actor.write_gradients(policy_saved, by_output)
            learner.average(learner.flat_policy)
            learner.policy_optimizer.step()
            tau = options.tau
            learner.flat_target_critic.parameter.lerp_(learner.flat_critic.parameter, tau)
            learner.flat_target_policy.parameter.lerp_(learner.flat_policy.parameter, tau)
            learner.refresh()
        if metrics is not None:
            critic_loss = errors.square().mean(2).sum(1)
            metrics.copy_(torch.stack((critic_loss, slope.loss)))

    def _policy_slope(self, values: Tensor, unit: Tensor, rows: Tensor) -> PolicySlope:
        """That of policy_loss.

        Args:
            values: ``(K, B, 1)`` the first critic's of the policy's actions.
            unit: ``(K, B, A)`` these actions in [-1, 1].
            rows: ``(K, B, width)`` the minibatch.
        """
        by_value = torch.full_like(values, -1.0 / values.shape[1])
        return PolicySlope(-values.mean((1, 2)), by_value, None)

    def _act(self, policy: MLP, obs: Tensor) -> tuple[Tensor, Tensor, Saved]:
        """Actions ``(K, B, A)``, the same in [-1, 1], and what the backward pass needs."""
        outputs, saved = policy.evaluate(obs)
        squashed = outputs.tanh()
        learner = self._learner
        return torch.addcmul(learner.center, squashed, learner.half), squashed, saved

    def _for_critics(self, inputs: Tensor) -> Tensor:
        """``(K, B, n)`` to ``(K C, B, n)``: each seed's inputs for each of its critics."""
        return inputs.repeat_interleave(self._learner.options.num_critics, 0)

    def _by_seed(self, values: Tensor) -> Tensor:
        """``(K C, B, 1)`` to ``(K, C, B)``."""
        return values.view(-1, self._learner.options.num_critics, values.shape[1])
