"""A probabilistic ensemble that predicts rewards and next observations, for K seeds at once.

Seven Gaussian networks per seed, trained as one batched network, of which the five best on held-out
data (the elites) predict: PETS (Chua et al. 2018, arXiv:1805.12114) as used in MBPO (Janner et al.
2019, arXiv:1906.08253). Knows rows of transitions, nothing of environments and policies.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from pyfastenv.algorithms.mbpo.accelerated import CompiledBfloat16, CompiledTraining
from pyfastenv.nn.functional import bounded_gaussian_gradients, bounded_log_var
from pyfastenv.nn.networks import MLP, FlatParameters, mlp_forward, seeded_mlp
from pyfastenv.nn.optim import FlatAdam
from pyfastenv.nn.streams import SeedStreams
from pyfastenv.sampling.buffers import RowLayout
from pyfastenv.training.accelerators import Choice, Chooser, in_bfloat16
from pyfastenv.training.changes import as_written

# rows of each network that are evaluated at a time: activations stay in the second-level cache
_CHUNK_ROWS = 512
_MIN_STD = 1e-12
# Adam's count between fits: moments are kept without bias, so that there is nothing to correct
_NO_BIAS = 1_000_000


@dataclass(frozen=True, kw_only=True)
class DynamicsOptions:
    """Settings of an ensemble; the defaults are MBPO's official ones."""

    ensemble_size: int = 7
    num_elites: int = 5
    hidden_sizes: tuple[int, ...] = (200, 200, 200, 200)
    activation: str = "silu"
    learning_rate: float = 1e-3
    # of the first layer, the hidden ones in between (the last of them repeated), the output layer
    weight_decays: tuple[float, ...] = (2.5e-5, 5e-5, 7.5e-5, 7.5e-5, 1e-4)
    # weight of the log-variance bounds' distance beside the sum of the members' losses: of a
    # member, whose bounds are its own here, a part (official: one pair of bounds for all members)
    bound_coef: float = 0.01
    restart_optimizer: bool = False  # with each fit: `make bench NAME=learners` says what it costs
    batch_size: int = 256
    holdout_ratio: float = 0.2
    max_holdout: int = 5_000
    patience: int = 5  # epochs without an improvement of any member
    min_improvement: float = 0.01  # of the held-out error, relative
    max_epochs: int = 1_000
    max_epoch_rows: int | None = None  # of a member's samples, drawn anew for each epoch; None: all
    bfloat16: bool = False  # products of bfloat16 numbers, sums in float32
    native: bool = True  # the training compiled, where it can be
    num_threads: int = 1  # of the compiled training

    @property
    def member_bound_coef(self) -> float:
        """:attr:`bound_coef` of one member."""
        return self.bound_coef / self.ensemble_size

    def decay(self, layer: int) -> float:
        """Weight decay of a layer."""
        if layer == len(self.hidden_sizes):
            return self.weight_decays[-1]
        return self.weight_decays[min(layer, len(self.weight_decays) - 2)]


class FitReport(NamedTuple):
    """The results of a fit."""

    holdout_errors: Tensor  # (K, ensemble_size) mean squared errors of the restored networks
    num_epochs: list[int]  # of each seed


class Prediction(NamedTuple):
    """The predictions of the elites."""

    rewards: Tensor  # (K, n)
    next_obs: Tensor  # (K, n, obs_size)


@as_written
class EnsembleDynamics:
    """The ensemble.

    Args:
        layout: Of the rows it learns from.
        seeds: K seeds of the initial networks.
        options: The settings.
        device: Where everything is.

    Attributes:
        optimizer: Adam, of the networks and their bounds.
        network: ``K * ensemble_size`` networks, seed by seed: (obs, action), standardised, to means
            and raw log-variances of (reward, next obs - obs).
        elites: ``(K, num_elites)`` int64: which of a seed's members predict.
    """

    def __init__(
        self,
        layout: RowLayout,
        seeds: Sequence[int],
        options: DynamicsOptions,
        device: torch.device | str = "cpu",
    ):
        self.layout = layout
        self.options = options
        self.device = torch.device(device)
        self.num_seeds = len(seeds)
        self.num_outputs = 1 + layout.obs_size
        size = options.ensemble_size
        num_inputs = layout.obs_size + layout.action_size
        self.network = seeded_mlp(
            (num_inputs, *options.hidden_sizes, 2 * self.num_outputs),
            seeds,
            size,
            activation=options.activation,
            gain=None,
            initialise=_initialise,
        ).to(self.device)
        # each member has its own bounds: members train independently of each other
        shape = (self.num_seeds * size, 1, self.num_outputs)
        self.max_log_var = nn.Parameter(torch.full(shape, 0.5, device=self.device))
        self.min_log_var = nn.Parameter(torch.full(shape, -10.0, device=self.device))
        self.flat = FlatParameters([self.network, self.max_log_var, self.min_log_var])
        self.optimizer = FlatAdam(self.flat, lr=options.learning_rate, fused=True)
        self.input_mean = torch.zeros(self.num_seeds, 1, num_inputs, device=self.device)
        self.input_std = torch.ones_like(self.input_mean)
        self.elites = torch.arange(options.num_elites, device=self.device).repeat(self.num_seeds, 1)
        if in_bfloat16(options.bfloat16, self.device):
            self.network.compute_in(torch.bfloat16)
        self._chooser: Chooser[EnsembleDynamics] = Chooser(
            self,
            (CompiledBfloat16, CompiledTraining),
            "native" if options.native else "none",
            what="The model's training",
        )
        self._elite_layers = self._gather_elites()

    @property
    def choice(self) -> Choice:
        """The accelerator that trains it; it looks again at parts that have changed since."""
        return self._chooser.choice

    # ---- fitting -----------------------------------------------------------------------------

    @torch.no_grad()
    def fit(self, rows: Tensor, streams: SeedStreams) -> FitReport:
        """Trains on all rows until no member improves any more; restores each member's best.

        Networks and the optimiser's moments go on from where they are. A seed that has stopped
        keeps its own while others go on.

        Args:
            rows: ``(K, n, width)``.
            streams: Draw the held-out rows, the members' samples and their order.

        Raises:
            ValueError: Too few rows.
        """
        options = self.options
        num_rows = rows.shape[1]
        num_holdout = min(int(options.holdout_ratio * num_rows), options.max_holdout)
        num_train = num_rows - num_holdout
        if num_holdout < 1 or num_train < 2:
            raise ValueError(f"rows: expected at least 5 transitions to fit, got {num_rows}")
        order = streams.uniform(num_rows).argsort(1)
        holdout = _take(rows, order[:, :num_holdout])
        train = _take(rows, order[:, num_holdout:])
        self._standardise_by(self.layout.obs_actions(train))
        held, samples = self._pairs(holdout), self._pairs(train)

        size = options.ensemble_size
        members = (streams.uniform(size, num_train) * num_train).long()  # (K, M, n): bootstrap
        if options.restart_optimizer:
            self.optimizer.reset()
        first_fit = self.optimizer.num_steps == 0
        best = torch.full((self.num_seeds, size), torch.inf, device=self.device)
        trained = [*self.network.parameters(), self.max_log_var, self.min_log_var]  # by member
        best_parameters = [parameter.detach().clone() for parameter in trained]
        moments = [
            part
            for vector in (self.optimizer.mean, self.optimizer.square)
            for part in self.flat.cut(vector)
        ]
        last_moments = [moment.clone() for moment in moments]
        active = torch.ones(self.num_seeds, dtype=torch.bool, device=self.device)
        without = torch.zeros(self.num_seeds, dtype=torch.int64, device=self.device)
        epochs = torch.zeros_like(without)
        epoch_rows = min(num_train, options.max_epoch_rows or num_train)
        shuffling = streams.fork()  # for as many epochs as the slowest seed needs
        for _ in range(options.max_epochs):
            shuffled = shuffling.uniform(size, num_train).argsort(2)[..., :epoch_rows]
            self._epoch(samples, members.gather(2, shuffled))
            errors = self._holdout_errors(held)
            improved = (best - errors > options.min_improvement * best) | best.isinf()
            improved &= active[:, None]
            best = torch.where(improved, errors, best)
            _copy_members(best_parameters, trained, improved.flatten())
            _copy_members(last_moments, moments, active.repeat_interleave(size))
            epochs += active
            without = torch.where(improved.any(1), 0, without + 1)
            active &= without <= options.patience
            if not active.any():
                break
        for kept, parameter in zip(best_parameters, trained, strict=True):
            parameter.data.copy_(kept)
        for kept, moment in zip(last_moments, moments, strict=True):
            moment.copy_(kept)
        if first_fit:
            self._correct_moments(epochs * math.ceil(epoch_rows / options.batch_size))
        self.optimizer.num_steps = _NO_BIAS
        self.network.refresh()
        self.elites = best.argsort(1)[:, : options.num_elites]
        self.refresh()
        return FitReport(best, epochs.tolist())

    def _correct_moments(self, num_steps: Tensor) -> None:
        """Takes out the bias of moments that began as zeros (Adam, section 3), ``(K,)`` steps ago.

        Seeds stop after different numbers of steps; from here on all of them count alike.
        """
        steps = num_steps.repeat_interleave(self.options.ensemble_size)
        optimizer = self.optimizer
        for vector, beta in zip((optimizer.mean, optimizer.square), optimizer.betas, strict=True):
            bias = 1.0 - torch.pow(beta, steps.double())
            for part in self.flat.cut(vector):
                part.div_(bias.to(part.dtype).view(-1, *(1,) * (part.dim() - 1)))

    def _standardise_by(self, inputs: Tensor) -> None:
        """Takes the mean and the standard deviation of ``(K, n, in)``; constants are left alone."""
        std = inputs.std(1, correction=0, keepdim=True)
        self.input_mean.copy_(inputs.mean(1, keepdim=True))
        self.input_std.copy_(torch.where(std < _MIN_STD, 1.0, std))

    def _pairs(self, rows: Tensor) -> Tensor:
        """Standardised inputs and targets side by side, ``(K, n, in + 1 + obs_size)``."""
        layout = self.layout
        inputs = (layout.obs_actions(rows) - self.input_mean) / self.input_std
        change = layout.next_obs(rows) - layout.obs(rows)
        return torch.cat((inputs, layout.rewards(rows)[..., None], change), -1)

    def _epoch(self, samples: Tensor, members: Tensor) -> None:
        """One pass of minibatches; ``members`` is ``(K, M, n)``, each member's rows in order."""
        accelerator = self.choice.accelerator
        if accelerator is not None:
            accelerator.epoch(samples, members)
            return
        num_seeds, num_members, num_rows = members.shape
        mine = _take(samples, members.flatten(1)).view(num_seeds * num_members, num_rows, -1)
        num_inputs = samples.shape[-1] - self.num_outputs
        for part in mine.split(self.options.batch_size, 1):
            self._train_step(part[..., :num_inputs], part[..., num_inputs:])

    def _train_step(self, inputs: Tensor, targets: Tensor) -> None:
        """Down the likelihood loss of a minibatch ``(K * M, B, …)``, with decay and bounds."""
        options = self.options
        self.flat.require_gradients()
        outputs, saved = self.network.evaluate(inputs)
        gradients = bounded_gaussian_gradients(outputs, targets, self.min_log_var, self.max_log_var)
        self.network.write_gradients(saved, gradients.outputs)
        for i, weight in enumerate(self.network.weight_list):
            assert weight.grad is not None
            weight.grad.add_(weight, alpha=options.decay(i))
        for bound, by_bound, sign in (
            (self.max_log_var, gradients.max_log_var, 1.0),
            (self.min_log_var, gradients.min_log_var, -1.0),
        ):
            assert bound.grad is not None
            bound.grad.copy_(by_bound[:, None] + sign * options.member_bound_coef)
        self.optimizer.step()
        self.network.refresh()

    def _holdout_errors(self, samples: Tensor) -> Tensor:
        """Mean squared errors ``(K, M)`` of the means."""
        accelerator = self.choice.accelerator
        if accelerator is not None:
            errors: Tensor = accelerator.errors(samples)
            return errors
        size = self.options.ensemble_size
        total = torch.zeros(self.num_seeds, size, device=self.device)
        num_inputs = samples.shape[-1] - self.num_outputs
        for part in samples.split(_CHUNK_ROWS, 1):
            outputs, _ = self.network.evaluate(part[..., :num_inputs].repeat_interleave(size, 0))
            means = outputs[..., : self.num_outputs].view(self.num_seeds, size, part.shape[1], -1)
            total += (means - part[:, None, :, num_inputs:]).square().sum((2, 3))
        return total / (samples.shape[1] * self.num_outputs)

    # ---- predicting --------------------------------------------------------------------------

    def refresh(self) -> None:
        """To be called when parameters or elites have been changed from outside."""
        self._elite_layers = self._gather_elites()

    def _gather_elites(self) -> tuple[list[Tensor], list[Tensor], Tensor, Tensor]:
        size = self.options.ensemble_size
        offsets = torch.arange(self.num_seeds, device=self.device)[:, None] * size
        chosen = (self.elites + offsets).flatten()
        weights, biases = self.network.layers
        return (
            [weight.detach().index_select(0, chosen) for weight in weights],
            [bias.detach().index_select(0, chosen) for bias in biases],
            self.min_log_var.detach().index_select(0, chosen),
            self.max_log_var.detach().index_select(0, chosen),
        )

    @torch.no_grad()
    def predict(self, obs_actions: Tensor, noise: Tensor) -> Prediction:
        """Samples what follows; each row is evaluated on one elite only: row i on the (i mod E)-th.

        Rows that come in random order so meet random elites, the same number each.

        Args:
            obs_actions: ``(K, n, obs_size + action_size)``, n a multiple of E = ``num_elites``.
            noise: ``(K, n, 1 + obs_size)`` standard normal.
        """
        num_seeds, num_rows, num_inputs = obs_actions.shape
        count = self.options.num_elites
        weights, biases, low, high = self._elite_layers
        groups = (num_seeds, num_rows // count, count)
        inputs = obs_actions.view(*groups, num_inputs)
        deltas = torch.empty_like(noise)
        out = deltas.view(*groups, self.num_outputs)
        mean, std = self.input_mean[:, None], self.input_std[:, None]
        by_group = noise.view(*groups, self.num_outputs)
        for start in range(0, groups[1], _CHUNK_ROWS):
            part = slice(start, start + _CHUNK_ROWS)
            x = ((inputs[:, part] - mean) / std).transpose(1, 2).flatten(0, 1)  # (K E, chunk, in)
            outputs, _ = mlp_forward(x, weights, biases, self.options.activation)
            means, raw = outputs.chunk(2, -1)
            log_var = bounded_log_var(raw, low, high)
            shape = (num_seeds, count, -1, self.num_outputs)
            spread = (0.5 * log_var).exp_().view(shape).transpose(1, 2)
            out[:, part] = means.view(shape).transpose(1, 2) + spread * by_group[:, part]
        next_obs = obs_actions[..., : self.layout.obs_size] + deltas[..., 1:]
        return Prediction(deltas[..., 0], next_obs)

    # ---- saving ------------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Any]:
        """Networks, bounds, standardisation, elites, and the optimiser."""
        return {
            "network": self.network.state_dict(),
            "max_log_var": self.max_log_var.detach(),
            "min_log_var": self.min_log_var.detach(),
            "input_mean": self.input_mean,
            "input_std": self.input_std,
            "elites": self.elites,
            "optimizer": self.optimizer.state_dict(),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restores :meth:`state_dict`."""
        self.network.load_state_dict(state["network"])
        if "optimizer" in state:  # not in checkpoints from when every fit restarted it
            self.optimizer.load_state_dict(state["optimizer"])
        for name in ("max_log_var", "min_log_var", "input_mean", "input_std", "elites"):
            getattr(self, name).data.copy_(state[name])
        self.network.refresh()
        self.refresh()


def _initialise(network: MLP) -> None:
    """Truncated normal weights of standard deviation 1 / (2 sqrt(inputs)), biases zero."""
    for weight, bias in zip(network.weight_list, network.bias_list, strict=True):
        std = 0.5 / math.sqrt(weight.shape[1])
        nn.init.trunc_normal_(weight, std=std, a=-2.0 * std, b=2.0 * std)
        nn.init.zeros_(bias)


def _take(rows: Tensor, indices: Tensor) -> Tensor:
    """Each seed's rows ``(K, n, width)`` by its indices ``(K, m)``: ``(K, m, width)``."""
    offsets = torch.arange(len(rows), device=rows.device)[:, None] * rows.shape[1]
    flat = rows.reshape(-1, rows.shape[-1])
    return flat.index_select(0, (indices + offsets).flatten()).view(*indices.shape, -1)


def _copy_members(targets: list[Tensor], sources: Sequence[Tensor], chosen: Tensor) -> None:
    """Copies of tensors ``(members, …)`` the members that are chosen, ``(members,)`` bool."""
    for target, source in zip(targets, sources, strict=True):
        target.copy_(torch.where(chosen.view(-1, *(1,) * (target.dim() - 1)), source, target))
