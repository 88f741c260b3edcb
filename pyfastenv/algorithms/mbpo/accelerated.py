"""The ensemble's training (``dynamics``), compiled."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, ClassVar, Protocol

import torch
from torch import Tensor, nn

from pyfastenv import _core
from pyfastenv.nn.networks import MLP, FlatParameters
from pyfastenv.nn.optim import FlatAdam
from pyfastenv.sampling.buffers import RowLayout
from pyfastenv.training.accelerators import Accelerator, InBfloat16


class Ensemble(Protocol):
    """The parts of :class:`pyfastenv.algorithms.mbpo.dynamics.EnsembleDynamics` that it uses."""

    layout: RowLayout
    options: Any
    device: torch.device
    num_seeds: int
    num_outputs: int
    network: MLP
    max_log_var: nn.Parameter
    min_log_var: nn.Parameter
    flat: FlatParameters
    optimizer: FlatAdam


class CompiledTraining(Accelerator):
    """Epochs and held-out errors in float32 (csrc/learn/ensemble_update.h)."""

    name: ClassVar[str] = "compiled in float32"
    bfloat16: ClassVar[bool] = False
    methods: ClassVar[tuple[str, ...]] = ("_train_step",)
    reads: ClassVar[type] = Ensemble

    @classmethod
    def why_not(cls, learner: Ensemble) -> str | None:
        """It needs a CPU, and hidden layers of SiLU."""
        options, network = learner.options, learner.network
        if learner.device.type != "cpu":
            return "only on the CPU"
        if network.activation != "silu" or not options.hidden_sizes:
            return "only for hidden layers of SiLU"
        num_inputs = learner.layout.obs_size + learner.layout.action_size
        if network.sizes != (num_inputs, *options.hidden_sizes, 2 * learner.num_outputs):
            return "only for networks of the sizes that the options say"
        return None

    @classmethod
    def vectors(cls, learner: Ensemble) -> Mapping[str, tuple[str, ...]]:
        """All members' and their bounds."""
        return {"flat": ("network", "max_log_var", "min_log_var")}

    @classmethod
    def optimizers(cls, learner: Ensemble) -> Mapping[str, str]:
        """It makes Adam's steps itself."""
        return {"optimizer": "flat"}

    def __init__(self, learner: Ensemble):
        self._ensemble = learner
        options = learner.options
        self._update = _core.EnsembleUpdate(
            num_inputs=learner.layout.obs_size + learner.layout.action_size,
            num_targets=learner.num_outputs,
            hidden_sizes=list(options.hidden_sizes),
            bfloat16=self.bfloat16,
            num_networks=learner.num_seeds * options.ensemble_size,
            num_seeds=learner.num_seeds,
            batch_size=options.batch_size,
            num_threads=options.num_threads,
        )

    def epoch(self, samples: Tensor, members: Tensor) -> None:
        """One pass of minibatches.

        Args:
            samples: ``(K, n, in + out)``, standardised inputs and targets.
            members: ``(K, M, m)`` int64, each member's rows in order.
        """
        optimizer, batch_size = self._ensemble.optimizer, self._ensemble.options.batch_size
        self._update.run_epoch(
            samples=samples.numpy(),
            order=members.flatten(0, 1).numpy(),
            step=optimizer.num_steps,
            hyper=self._hyper(),
            vectors=optimizer.arrays(),
        )
        optimizer.num_steps += math.ceil(members.shape[2] / batch_size)
        self._ensemble.network.refresh_later()

    def errors(self, samples: Tensor) -> Tensor:
        """Mean squared errors ``(K, M)`` of the members' means."""
        ensemble = self._ensemble
        errors = torch.zeros(ensemble.num_seeds, ensemble.options.ensemble_size)
        parameters = ensemble.optimizer.arrays()[0]
        self._update.errors(samples.numpy(), parameters, errors.view(-1).numpy())
        return errors

    def _hyper(self) -> _core.EnsembleHyper:
        options, optimizer = self._ensemble.options, self._ensemble.optimizer
        hyper = _core.EnsembleHyper()
        hyper.lr = optimizer.lr
        hyper.beta1, hyper.beta2 = optimizer.betas
        hyper.eps = optimizer.eps
        hyper.bound_coef = options.member_bound_coef
        hyper.decays = [options.decay(i) for i in range(len(self._ensemble.network.weight_list))]
        return hyper


class CompiledBfloat16(InBfloat16, CompiledTraining):
    """The same with products of bfloat16 numbers and sums in float32: mixed precision only."""
