"""PPO's epochs (algorithms/ppo.py) in faster ways; tests hold each against the plain ones.

``learner`` is a :class:`pyfastenv.algorithms.ppo.PPO`.
"""

from __future__ import annotations

from typing import Any, ClassVar

import torch
from torch import Tensor

from pyfastenv import _core
from pyfastenv.learners.accelerators import Kind
from pyfastenv.nn.functional import ppo_gradients
from pyfastenv.nn.spans import span
from pyfastenv.vector.cpus import available_cpus


class CompiledEpoch:
    """Whole passes over the batch in C++ (csrc/learn/ppo_update.h), float32."""

    name = "epochs compiled in C++"
    kind: ClassVar[Kind] = "native"
    functions = ("ppo_loss",)

    @classmethod
    def why_not(cls, learner: Any) -> str | None:
        """It is for a single process that learns on the CPU in float32."""
        if learner.device.type != "cpu":
            return "only on the CPU"
        if learner.world_size > 1:
            return "only in a single process"
        return "only in float32" if learner.config.amp else None

    def __init__(self, learner: Any):
        self._learner = learner
        self._update = _core.PpoUpdate(
            obs_size=learner.obs_size,
            policy_sizes=list(learner.policy.sizes),
            value_sizes=list(learner.value.sizes),
            policy_begin=learner.seen.policy.start,
            value_begin=learner.seen.critic.start,
            activation=learner.config.activation,
            discrete=learner.discrete,
            num_threads=learner.config.num_threads or available_cpus(),
        )

    def epochs(self, packed: Tensor, orders: Tensor) -> list[dict[str, float]]:
        """As :meth:`pyfastenv.algorithms.ppo.PPO.epochs`."""
        learner = self._learner
        config, adam = learner.config, learner.optimizer
        hyper = _core.PpoHyper()
        hyper.minibatch_size = config.minibatch_size
        hyper.lr = adam.lr
        hyper.beta1, hyper.beta2 = adam.betas
        hyper.eps = adam.eps
        hyper.clip = config.clip
        hyper.value_clip = config.value_clip
        hyper.entropy_coef = config.entropy_coef
        hyper.value_coef = config.value_coef
        hyper.max_grad_norm = config.max_grad_norm
        hyper.normalize_advantages = config.normalize_advantages
        with span("update"):
            metrics: list[dict[str, float]] = self._update.run_epochs(
                packed.numpy(), orders.numpy(), hyper, adam.num_steps, *adam.arrays()
            )
        adam.num_steps += len(orders) * (len(packed) // config.minibatch_size)
        return metrics

    def values(self, obs: Tensor) -> Tensor:
        """As :meth:`pyfastenv.algorithms.ppo.PPO.values`."""
        parameters, _, _ = self._learner.optimizer.arrays()
        return torch.from_numpy(self._update.values(obs.numpy(), parameters))


class WrittenOut:
    """Minibatches in torch with gradients written out: autograd's bookkeeping takes longer."""

    name = "written-out gradients"
    kind: ClassVar[Kind] = "native"
    functions = ("ppo_loss",)

    @classmethod
    def why_not(cls, learner: Any) -> str | None:
        """It always can."""
        return None

    def __init__(self, learner: Any):
        self._learner = learner

    @torch.no_grad()
    def epochs(self, packed: Tensor, orders: Tensor) -> list[dict[str, float]]:
        """As :meth:`pyfastenv.algorithms.ppo.PPO.epochs`."""
        return list(self._learner.epochs(packed, orders, self._backward))

    def _backward(self, columns: Any, *, metrics: bool) -> Tensor | None:
        learner, config = self._learner, self._learner.config
        with span("forward"):
            outputs, policy_saved = learner.policy.evaluate(columns.policy_obs[None])
            values, value_saved = learner.value.evaluate(columns.critic_obs[None])
            gradients = ppo_gradients(
                outputs[0],
                None if learner.discrete else learner.log_std,
                values.flatten(),
                columns.actions,
                columns.log_probs,
                columns.advantages,
                columns.returns,
                columns.old_values,
                clip=config.clip,
                value_clip=config.value_clip,
                entropy_coef=config.entropy_coef,
                value_coef=config.value_coef,
                metrics=metrics,
            )
        learner.policy.write_gradients(policy_saved, gradients.outputs[None])
        learner.value.write_gradients(value_saved, gradients.values[None, :, None])
        if gradients.log_std is not None:
            learner.log_std.grad.copy_(gradients.log_std)
        return gradients.metrics


class Compiled:
    """The loss through torch.compile, which takes a minute to begin with."""

    name = "torch.compile"
    kind: ClassVar[Kind] = "compile"
    functions = ("ppo_loss",)

    @classmethod
    def why_not(cls, learner: Any) -> str | None:
        """It always can try."""
        return None

    def __init__(self, learner: Any):
        self._learner = learner
        self._loss = torch.compile(learner.functions.ppo_loss)

    def epochs(self, packed: Tensor, orders: Tensor) -> list[dict[str, float]]:
        """As :meth:`pyfastenv.algorithms.ppo.PPO.epochs`."""

        def backward(columns: Any, *, metrics: bool) -> Tensor | None:
            result: Tensor | None = self._learner.backward(
                columns, metrics=metrics, loss=self._loss
            )
            return result

        return list(self._learner.epochs(packed, orders, backward))
