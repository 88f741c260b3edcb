"""PPO's epochs (algorithms/ppo/spec.py) in faster ways; tests hold each against the plain ones."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, ClassVar, Protocol

import torch
from torch import Tensor, nn

from pyfastenv import _core
from pyfastenv.nn.functional import PPO_METRICS
from pyfastenv.nn.networks import MLP, FlatParameters
from pyfastenv.nn.optim import FlatAdam
from pyfastenv.nn.spans import span
from pyfastenv.sampling.obs_groups import Seen
from pyfastenv.training.accelerators import IN_BFLOAT16, Accelerator, Kind, why_not_bfloat16
from pyfastenv.vector.cpus import available_cpus

_METHODS = ("epochs", "epoch", "backward", "_evaluate")


class Learner(Protocol):
    """The parts of :class:`pyfastenv.algorithms.ppo.PPO` that accelerators use."""

    config: Any
    device: torch.device
    world_size: int
    obs_size: int
    discrete: bool
    entropy_coef: float
    policy: MLP
    value: MLP
    log_std: nn.Parameter
    flat: FlatParameters
    optimizer: FlatAdam
    mirror: Any

    @property
    def seen(self) -> Seen: ...

    @property
    def rows_per_minibatch(self) -> int: ...

    def epochs(
        self, packed: Tensor, orders: Tensor, backward: Callable[[Tensor], Tensor] | None = None
    ) -> list[dict[str, float]]:
        """Passes over the batch."""
        ...


class CompiledEpoch(Accelerator):
    """Whole passes over the batch in C++ (csrc/learn/ppo_update.h), float32; where several
    processes learn together, each minibatch's gradient."""

    name: ClassVar[str] = "epochs compiled in C++"
    bfloat16: ClassVar[bool] = False
    functions: ClassVar[tuple[str, ...]] = ("ppo_loss",)
    methods: ClassVar[tuple[str, ...]] = (*_METHODS, "_columns", "refresh")
    reads: ClassVar[type] = Learner
    _learner: Learner

    @classmethod
    def why_not(cls, learner: Learner) -> str | None:
        """It is for learning on the CPU; with amp, too, where bfloat16 epochs cannot be."""
        if learner.device.type != "cpu":
            return "only on the CPU"
        networks = (learner.policy, learner.value)
        if len({(each.activation, bool(each.norm_list)) for each in networks}) > 1:
            return "only for networks of one kind"
        return "without a mirror loss" if learner.config.mirror_coef > 0.0 else None

    @classmethod
    def vectors(cls, learner: Learner) -> Mapping[str, tuple[str, ...]]:
        """Both networks' and the logarithms of a Gaussian's deviations."""
        return {"flat": ("policy", "value", *(() if learner.discrete else ("log_std",)))}

    @classmethod
    def optimizers(cls, learner: Learner) -> Mapping[str, str]:
        """It makes Adam's steps itself."""
        return {"optimizer": "flat"}

    def __init__(self, learner: Learner):
        self._learner = learner
        num_threads = learner.config.num_threads or available_cpus()
        if learner.world_size > 1:  # which share the CPUs as torchrun tells PyTorch to
            num_threads = torch.get_num_threads()
        self._update = _core.PpoUpdate(
            obs_size=learner.obs_size,
            policy_sizes=list(learner.policy.sizes),
            value_sizes=list(learner.value.sizes),
            policy_begin=learner.seen.policy.start,
            value_begin=learner.seen.critic.start,
            activation=learner.policy.activation,
            discrete=learner.discrete,
            layer_norm=bool(learner.policy.norm_list),
            bfloat16=self.bfloat16,
            num_threads=num_threads,
        )

    def epochs(self, packed: Tensor, orders: Tensor) -> list[dict[str, float]]:
        """As :meth:`pyfastenv.algorithms.ppo.PPO.epochs`."""
        learner = self._learner
        if learner.world_size > 1:
            return learner.epochs(packed, orders, self._backward)
        adam = learner.optimizer
        hyper = self._hyper()
        with span("update"):
            metrics: list[dict[str, float]] = self._update.run_epochs(
                packed.numpy(), orders.numpy(), hyper, adam.num_steps, *adam.arrays()
            )
        learner.policy.refresh_later()
        learner.value.refresh_later()
        adam.num_steps += len(orders) * (orders.shape[1] // hyper.minibatch_size)
        if learner.config.desired_kl is not None:
            adam.lr = hyper.lr
        return metrics

    def _backward(self, rows: Tensor) -> Tensor:
        flat = self._learner.flat
        with span("update"):
            metrics = self._update.gradient(
                rows.numpy(), self._hyper(), flat.parameter.detach().numpy(), flat.grad.numpy()
            )
        return torch.tensor([metrics[name] for name in PPO_METRICS])

    def _hyper(self) -> _core.PpoHyper:
        config, adam = self._learner.config, self._learner.optimizer
        hyper = _core.PpoHyper()
        hyper.minibatch_size = self._learner.rows_per_minibatch
        hyper.mirrored = self._learner.mirror is not None
        hyper.lr = adam.lr
        hyper.beta1, hyper.beta2 = adam.betas
        hyper.eps = adam.eps
        hyper.clip = config.clip
        hyper.value_clip = config.value_clip
        hyper.entropy_coef = self._learner.entropy_coef
        hyper.value_coef = config.value_coef
        hyper.max_grad_norm = config.max_grad_norm
        hyper.normalize_advantages = config.normalize_advantages
        hyper.desired_kl = config.desired_kl or 0.0
        hyper.min_lr, hyper.max_lr = config.learning_rate_bounds
        if config.min_std > 0.0:
            hyper.min_log_std = math.log(config.min_std)
        return hyper

    def values(self, obs: Tensor) -> Tensor:
        """As :meth:`pyfastenv.algorithms.ppo.PPO.values`."""
        parameters, _, _ = self._learner.optimizer.arrays()
        return torch.from_numpy(self._update.values(obs.numpy(), parameters))


class CompiledBfloat16(CompiledEpoch):
    """The same with products of bfloat16 numbers and sums in float32: mixed precision only."""

    name: ClassVar[str] = f"epochs compiled in C++, {IN_BFLOAT16}"
    bfloat16: ClassVar[bool] = True

    @classmethod
    def why_not(cls, learner: Learner) -> str | None:
        """It needs AMX or AVX512-BF16, and normalised observations, of which 8 bits will do."""
        reason = why_not_bfloat16(learner.config.amp, learner.device) or super().why_not(learner)
        return reason or (None if learner.config.normalize_obs else "only with normalize_obs")


class Compiled(Accelerator):
    """The loss through torch.compile, which takes a minute to begin with."""

    name: ClassVar[str] = "torch.compile"
    kind: ClassVar[Kind] = "compile"
    functions: ClassVar[tuple[str, ...]] = ("ppo_loss",)
    methods: ClassVar[tuple[str, ...]] = _METHODS

    def __init__(self, learner: Any):
        super().__init__(learner)
        self._loss = torch.compile(learner.functions.ppo_loss)

    def epochs(self, packed: Tensor, orders: Tensor) -> list[dict[str, float]]:
        """As :meth:`pyfastenv.algorithms.ppo.PPO.epochs`."""
        backward = partial(self._learner.backward, loss=self._loss)
        metrics: list[dict[str, float]] = self._learner.epochs(packed, orders, backward)
        return metrics
