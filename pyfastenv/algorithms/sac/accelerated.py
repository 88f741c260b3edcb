"""SAC's gradient steps (``spec``) in faster ways; tests hold each against the plain ones.

All of them are tensor operations without host synchronisation.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Protocol

import torch
from torch import Tensor

from pyfastenv import _core
from pyfastenv.nn.cuda_graph import GraphedUpdate
from pyfastenv.nn.functional import squashed_gaussian, squashed_gaussian_gradient
from pyfastenv.nn.networks import MLP, FlatParameters, Saved
from pyfastenv.nn.optim import FlatAdam
from pyfastenv.sampling.buffers import RowLayout
from pyfastenv.training.accelerators import Accelerator, InBfloat16, Kind
from pyfastenv.training.actor_critic import Batch

_OPTIMIZERS = {"policy_optimizer": "flat_policy", "critic_optimizer": "flat_critic"}


class Learner(Protocol):
    """The parts of :class:`pyfastenv.algorithms.sac.spec.SACLearner` that accelerators use."""

    layout: RowLayout
    options: Any
    device: torch.device
    num_seeds: int
    actor: MLP
    critic: MLP
    target: MLP
    log_temperature: Tensor
    learns_temperature: bool
    target_entropy: float
    discount: Tensor
    flat_policy: FlatParameters
    flat_critic: FlatParameters
    flat_target: FlatParameters
    policy_optimizer: FlatAdam
    critic_optimizer: FlatAdam

    def update(
        self, rows: Tensor, noise: Tensor, metrics: Tensor | None = None, functions: Any = None
    ) -> None:
        """One gradient step in plain PyTorch."""
        ...


class _WholeStep(Accelerator):
    """The base of those that stand for all of a step."""

    functions: ClassVar[tuple[str, ...]] = (
        "critic_loss",
        "policy_loss",
        "temperature_loss",
        "target_update",
    )
    methods: ClassVar[tuple[str, ...]] = ("update", "learning", "mixed_precision", "refresh")
    reads: ClassVar[type] = Learner
    _learner: Learner
    targets: ClassVar[Mapping[str, tuple[str, ...]]] = {"flat_target": ("target",)}

    @classmethod
    def vectors(cls, learner: Learner) -> Mapping[str, tuple[str, ...]]:
        """The policy's with the temperature, if that is learned, and the critics'."""
        temperature = ("log_temperature",) if learner.learns_temperature else ()
        return {"flat_policy": ("actor", *temperature), "flat_critic": ("critic",)}


class WrittenOut(_WholeStep):
    """Gradients written out: autograd's bookkeeping takes longer than the arithmetic.

    Twin critics are one batched network; one pass of the policy serves both its uses, for it does
    not change until it is improved; of the critics' values only the gradient by the action is
    computed. On CUDA the step is replayed as a graph.
    """

    name: ClassVar[str] = "written-out gradients"

    @classmethod
    def optimizers(cls, learner: Learner) -> Mapping[str, str]:
        """On CUDA both: a graph repeats what their steps launched."""
        return _OPTIMIZERS if learner.device.type == "cuda" else {}

    def __init__(self, learner: Learner):
        self._learner = learner
        self._graphed = GraphedUpdate(self.update, learner.device)

    def run(self, rows: Tensor, noise: Tensor, metrics: Tensor) -> None:
        """Gradient steps one after another."""
        last = len(rows) - 1
        for i in range(len(rows)):
            self._graphed(rows[i], noise[i], metrics, wanted=i == last)

    @torch.no_grad()
    def update(self, rows: Tensor, noise: Tensor, metrics: Tensor | None = None) -> None:
        """As :meth:`pyfastenv.algorithms.sac.spec.SACLearner.update`."""
        learner = self._learner
        layout, options, num_seeds = learner.layout, learner.options, learner.num_seeds
        actor, critic, target = learner.actor, learner.critic, learner.target
        size = rows.shape[1]
        batch = Batch.of(rows, layout)
        temperature = learner.log_temperature.exp()  # (K,)
        outputs, policy_saved = actor.evaluate(torch.cat((batch.obs, batch.next_obs), 1))
        sample = squashed_gaussian(outputs, noise, options.log_std_range)

        # the slope of critic_loss
        next_inputs = torch.cat((batch.next_critic_obs, sample.actions[:, size:]), -1)
        next_values = self._twin(target.evaluate(for_twins(next_inputs))[0]).amin(1)
        soft = next_values - temperature[:, None] * sample.log_probs[:, size:]
        targets = batch.rewards + learner.discount * batch.continues * soft  # (K, B)
        begin = torch.cat((batch.critic_obs, batch.actions), -1)
        values, critic_saved = critic.evaluate(for_twins(begin))
        errors = self._twin(values) - targets[:, None]  # (K, 2, B)
        by_values = (errors * (1.0 / size)).view(2 * num_seeds, size, 1)
        critic.write_gradients(critic_saved, by_values)
        learner.critic_optimizer.step()
        critic.refresh()

        # the slope of policy_loss
        inputs = torch.cat((batch.critic_obs, sample.actions[:, :size]), -1)
        policy_values, value_saved = critic.evaluate(for_twins(inputs))
        pair = self._twin(policy_values)  # (K, 2, B)
        first = (pair[:, 0] <= pair[:, 1]).to(pair.dtype)
        by_pair = torch.stack((first, 1.0 - first), 1).mul_(-1.0 / size)
        by_actions = critic.input_gradient(
            value_saved, by_pair.view(2 * num_seeds, size, 1), slice(layout.critic_size, None)
        )
        by_actions = by_actions.view(num_seeds, 2, size, layout.action_size).sum(1)
        mine = type(sample)(*(part[:, :size] for part in sample))
        weight = (temperature * (1.0 / size))[:, None].expand(-1, size)
        by_outputs = squashed_gaussian_gradient(mine, by_actions, weight)
        half = Saved(*([part[:, :size] for part in parts] for parts in policy_saved))
        actor.write_gradients(half, by_outputs)
        entropy = -mine.log_probs.mean(1)  # (K,)
        if learner.learns_temperature:  # the slope of temperature_loss
            assert learner.log_temperature.grad is not None
            learner.log_temperature.grad.copy_(entropy - learner.target_entropy)
        learner.policy_optimizer.step()
        actor.refresh()
        learner.flat_target.parameter.lerp_(learner.flat_critic.parameter, options.tau)
        target.refresh()
        if metrics is not None:
            value = pair.amin(1).mean(1)
            policy_loss = -value - temperature * entropy
            critic_loss = errors.square().mean((1, 2))
            metrics.copy_(torch.stack((critic_loss, policy_loss, entropy, temperature, value)))

    def _twin(self, values: Tensor) -> Tensor:
        """``(2 K, B, 1)`` to ``(K, 2, B)``."""
        return values.view(self._learner.num_seeds, 2, -1)


def for_twins(inputs: Tensor) -> Tensor:
    """``(K, B, n)`` to ``(2 K, B, n)``: each seed's inputs twice."""
    num_seeds, *rest = inputs.shape
    return inputs[:, None].expand(-1, 2, -1, -1).reshape(2 * num_seeds, *rest)


class CompiledStep(_WholeStep):
    """The whole step compiled, in float32 (csrc/learn/sac_update.h)."""

    name: ClassVar[str] = "compiled in float32"
    bfloat16: ClassVar[bool] = False

    @classmethod
    def why_not(cls, learner: Learner) -> str | None:
        """It needs a CPU, and hidden layers of ReLU."""
        options, layout = learner.options, learner.layout
        if learner.device.type != "cpu":
            return "only on the CPU"
        networks = (learner.actor, learner.critic, learner.target)
        if {network.activation for network in networks} != {"relu"} or not options.hidden_sizes:
            return "only for hidden layers of ReLU"
        if len({bool(network.norm_list) for network in networks}) > 1:
            return "only where all networks' layers are normalised, or none's"
        size, num_actions = layout.obs_size, layout.action_size
        if (layout.policy_size, layout.critic_size) != (size, size):
            return "only where policy and critic see the same"
        ends = ((size, 2 * num_actions), (size + num_actions, 1), (size + num_actions, 1))
        for network, (first, last) in zip(networks, ends, strict=True):
            if network.sizes != (first, *options.hidden_sizes, last):
                return "only for networks of the sizes that the options say"
        policy, critics = learner.policy_optimizer, learner.critic_optimizer
        if (policy.betas, policy.eps) != (critics.betas, critics.eps):
            return "only where both optimisers have the same betas and eps"
        if policy.num_steps != critics.num_steps:
            return "only where both optimisers have made as many steps"
        return None

    @classmethod
    def optimizers(cls, learner: Learner) -> Mapping[str, str]:
        """It makes both optimisers' steps itself."""
        return _OPTIMIZERS

    def __init__(self, learner: Learner):
        self._learner = learner
        self._update: _core.SacUpdate | None = None
        self._batch_size = 0

    @torch.no_grad()
    def run(self, rows: Tensor, noise: Tensor, metrics: Tensor) -> None:
        """Gradient steps one after another."""
        learner = self._learner
        policy, critic = learner.policy_optimizer, learner.critic_optimizer
        self._sized(rows.shape[2]).run(
            rows=rows.contiguous().numpy(),
            noise=noise.contiguous().numpy(),
            step=policy.num_steps,
            hyper=self._hyper(),
            policy=policy.arrays(),
            critic=critic.arrays(),
            target=learner.flat_target.parameter.detach().numpy(),
            log_temperature=learner.log_temperature.detach().numpy(),
            metrics=metrics.numpy(),
        )
        for optimizer in (policy, critic):
            optimizer.num_steps += len(rows)
        for network in (learner.actor, learner.critic, learner.target):
            network.refresh_later()

    def _sized(self, batch_size: int) -> _core.SacUpdate:
        """The compiled step for minibatches of this size."""
        learner = self._learner
        if self._update is None or batch_size != self._batch_size:
            self._update = _core.SacUpdate(
                obs_size=learner.layout.obs_size,
                action_size=learner.layout.action_size,
                hidden_sizes=list(learner.options.hidden_sizes),
                layer_norm=bool(learner.actor.norm_list),
                bfloat16=self.bfloat16,
                num_seeds=learner.num_seeds,
                batch_size=batch_size,
                num_threads=learner.options.num_threads,
            )
            self._batch_size = batch_size
        return self._update

    def _hyper(self) -> _core.SacHyper:
        learner, options = self._learner, self._learner.options
        hyper = _core.SacHyper()
        hyper.policy_lr = learner.policy_optimizer.lr
        hyper.critic_lr = learner.critic_optimizer.lr
        hyper.beta1, hyper.beta2 = learner.policy_optimizer.betas  # the critics' too
        hyper.eps = learner.policy_optimizer.eps
        hyper.gamma, hyper.tau = float(learner.discount), options.tau
        hyper.log_std_min, hyper.log_std_max = options.log_std_range
        hyper.target_entropy = learner.target_entropy
        hyper.learn_temperature = learner.learns_temperature
        return hyper


class CompiledBfloat16(InBfloat16, CompiledStep):
    """The same with products of bfloat16 numbers and sums in float32: mixed precision only."""


class Compiled(Accelerator):
    """The losses through torch.compile, which takes a minute to begin with."""

    name: ClassVar[str] = "torch.compile"
    kind: ClassVar[Kind] = "compile"
    functions: ClassVar[tuple[str, ...]] = ("critic_loss", "policy_loss")
    methods: ClassVar[tuple[str, ...]] = ("update", "learning")

    def __init__(self, learner: Any):
        super().__init__(learner)
        self._losses: dict[str, Callable[..., Any]] = {
            name: torch.compile(getattr(learner.functions, name)) for name in self.functions
        }

    def run(self, rows: Tensor, noise: Tensor, metrics: Tensor) -> None:
        """Gradient steps one after another."""
        functions = self._learner.functions._replace(**self._losses)
        last = len(rows) - 1
        for i in range(len(rows)):
            self._learner.update(
                rows[i], noise[i], metrics if i == last else None, functions=functions
            )
