"""Proximal policy optimisation (Schulman et al. 2017, arXiv:1707.06347).

The specification, in plain PyTorch. Read it top to bottom: options, the loss, advantages, update,
saving. The networks and how they act are in :mod:`pyfastenv.training.actor_value`; collecting is in
:mod:`pyfastenv.training.on_policy`, the pool samples by a copy of the policy. What makes the update
fast computes the same steps in another way and is tested against this file (``--accelerate``,
:mod:`pyfastenv.algorithms.ppo.accelerated`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple, Self

import torch
from torch import Tensor

from pyfastenv.algorithms.ppo.accelerated import Compiled, CompiledBfloat16, CompiledEpoch
from pyfastenv.nn.functional import LOG_TWO_PI, PPO_METRICS, gae, gaussian_log_prob
from pyfastenv.nn.networks import MLP, learning
from pyfastenv.nn.spans import span
from pyfastenv.runs.options import (
    FINITE,
    FRACTION,
    MAY_DIFFER,
    POSITIVE,
    POSITIVE_OR_INFINITE,
    at_least,
    check_fixed,
)
from pyfastenv.sampling.rollouts import RolloutBatch
from pyfastenv.tasks.language.symmetry import Mirror
from pyfastenv.training import distributed
from pyfastenv.training.accelerators import Choice, Chooser, autocast, changed_functions
from pyfastenv.training.actor_value import ActorValue, ActorValueConfig
from pyfastenv.training.changes import as_written
from pyfastenv.training.entry_points import entry_points
from pyfastenv.training.on_policy import Samples
from pyfastenv.training.presets import presets_of


@dataclass(kw_only=True)
class Config(ActorValueConfig):
    """Proximal policy optimisation."""

    algorithm: ClassVar[str] = "ppo"
    presets = presets_of("ppo")
    begins_with = ("distillation",)

    num_envs: int = 16
    """How many environments are stepped at once (in each process)."""
    total_steps: int = 1_000_000
    """Environment steps to train for."""
    update_epochs: int = field(default=10, metadata=at_least(1))
    """Passes over the collected steps."""
    minibatch_size: int = field(default=128, metadata=at_least(1))
    """Steps per gradient step (of all processes together)."""
    anneal: bool = True
    """Lower the learning rate linearly to 0 (not where desired_kl moves it)."""
    anneal_steps: int | None = field(default=None, metadata=at_least(1) | MAY_DIFFER)
    """Environment steps until it is 0; None: total_steps as they were when the run began."""
    gae_lambda: float = field(default=0.95, metadata=FRACTION)
    """λ of the advantage estimates."""
    clip: float = field(default=0.2, metadata=POSITIVE_OR_INFINITE)
    """How far a probability ratio is followed."""
    value_clip: float = field(default=0.0, metadata=at_least(0.0))
    """How far a value may move from its old one; 0: as far as it likes."""
    entropy_coef: float = field(default=0.0, metadata=FINITE)
    """Weight of the entropy bonus, at the start."""
    entropy_coef_end: float | None = field(default=None, metadata=FINITE)
    """The same where anneal_steps end, linearly in between; None: as at the start."""
    value_coef: float = field(default=0.5, metadata=at_least(0.0))
    """Weight of the value loss."""
    max_grad_norm: float = field(default=0.5, metadata=POSITIVE_OR_INFINITE)
    """The gradient is scaled down to this norm."""
    target_kl: float | None = field(default=None, metadata=POSITIVE)
    """Stop the passes once the policy has moved this far (None: never)."""
    desired_kl: float | None = field(default=None, metadata=POSITIVE)
    """Move the learning rate so that the policy moves about this far (None: do not)."""
    learning_rate_bounds: tuple[float, float] = (1e-5, 1e-2)
    """The least and the most to which desired_kl moves it."""
    min_std: float = field(default=0.0, metadata=at_least(0.0))
    """Below which no standard deviation of actions falls."""
    symmetry: bool = False
    """Learn from the mirrored copy of each step too, as the task says how it mirrors."""
    mirror_coef: float = field(default=0.0, metadata=at_least(0.0))
    """Weight of the mirror loss, which wants mirrored actions for mirrored observations."""
    normalize_advantages: bool = True
    """Per minibatch."""

    def check(self) -> None:
        super().check()
        if self.normalize_advantages and self.minibatch_size == 1:
            raise ValueError(
                "minibatch_size: expected at least 2 with normalize_advantages: one advantage has "
                "no deviation to be divided by"
            )
        least, most = self.learning_rate_bounds
        if not 0.0 < least <= most < math.inf:
            raise ValueError(
                f"learning_rate_bounds: expected 0 < least <= most, got {self.learning_rate_bounds}"
            )
        if self.desired_kl is not None and not least <= self.learning_rate <= most:
            raise ValueError(
                f"learning_rate: expected one within learning_rate_bounds with desired_kl, {least} "
                f"to {most}, got {self.learning_rate}"
            )
        if self.min_std > math.exp(self.log_std_init):
            raise ValueError(
                f"min_std: expected at most exp(log_std_init) = {math.exp(self.log_std_init):.3g}, "
                f"the initial deviation, got {self.min_std}"
            )
        # the first batch is alone in the trajectory pool
        batch = self._check_minibatches(self.minibatch_size)
        if self.normalize_obs and self.total_steps <= batch:
            raise ValueError(
                f"total_steps: expected more than num_envs * num_steps = {batch}, in which the "
                f"observations' moments are taken before anything is learned, got "
                f"{self.total_steps}"
            )
        if not self.falls and self.entropy_coef_end is None:
            why = "neither learning rate nor entropy_coef falls (of a preset: --anneal-steps None)"
            check_fixed(self, ("anneal_steps", None, why))
        if self.falls and self.anneal_steps is not None and self.anneal_steps < self.total_steps:
            raise ValueError(
                f"anneal_steps: expected at least total_steps = {self.total_steps} (the learning "
                f"rate is 0 from there on), got {self.anneal_steps}"
            )

    @property
    def falls(self) -> bool:
        """Whether the learning rate falls to 0 along ``anneal_steps``."""
        return self.anneal and self.desired_kl is None


# ---- what is learned -----------------------------------------------------------------------------


class Columns(NamedTuple):
    """B steps of a minibatch."""

    policy_obs: Tensor  # (B, seen by the policy), normalised
    critic_obs: Tensor  # (B, seen by the value network), normalised
    actions: Tensor  # (B, A) float32 as drawn, or (B,) int64
    log_probs: Tensor  # (B,) when they were drawn
    advantages: Tensor  # (B,), normalised or not
    returns: Tensor  # (B,) targets of the values
    old_values: Tensor  # (B,) values when the actions were drawn


class Mirroring(NamedTuple):
    """Observations or actions ``(…, n)`` mirrored: element i is signs[i] times element order[i]."""

    order: Tensor  # (n,) int64
    signs: Tensor  # (n,)

    @classmethod
    def of(cls, mirror: Mirror, device: torch.device) -> Self:
        """On the learner's device."""
        order, signs = torch.from_numpy(mirror.order), torch.from_numpy(mirror.signs)
        return cls(order.to(device), signs.float().to(device))

    def __call__(self, values: Tensor) -> Tensor:
        return values[..., self.order] * self.signs


class PPOLoss(NamedTuple):
    """The results of :func:`ppo_loss`."""

    loss: Tensor  # () what is minimised
    metrics: Tensor  # (5,): PPO_METRICS, without gradient


def ppo_loss(
    outputs: Tensor,
    log_std: Tensor | None,
    values: Tensor,
    columns: Columns,
    *,
    clip: float,
    value_clip: float,
    entropy_coef: float,
    value_coef: float,
) -> PPOLoss:
    """The clipped surrogate, values and entropy (eq. 7 and 9).

    Args:
        outputs: ``(B, A)`` the means of Gaussians, or logits.
        log_std: ``(A,)``; None: the policy is categorical.
        values: ``(B,)``.
        columns: The minibatch.
        clip: ε of the probability ratio.
        value_clip: ε of the values (as in OpenAI's baselines); 0: not clipped.
        entropy_coef: Weight of the entropy bonus.
        value_coef: Weight of the value loss, the mean of ``0.5 * (value - return)^2``.
    """
    if log_std is None:
        log_p = torch.log_softmax(outputs, -1)
        log_probs = log_p.gather(-1, columns.actions[:, None])[:, 0]
        entropy = -(log_p.exp() * log_p).sum(-1).mean()
    else:
        log_probs = gaussian_log_prob(columns.actions, outputs, log_std)
        entropy = (log_std + 0.5 * LOG_TWO_PI + 0.5).sum()
    log_ratio = log_probs - columns.log_probs
    ratio = log_ratio.exp()
    clipped = ratio.clamp(1.0 - clip, 1.0 + clip)
    surrogate = torch.minimum(columns.advantages * ratio, columns.advantages * clipped)
    policy_loss = -surrogate.mean()

    squared = (values - columns.returns).square()
    if value_clip > 0.0:
        near = columns.old_values + (values - columns.old_values).clamp(-value_clip, value_clip)
        squared = torch.maximum(squared, (near - columns.returns).square())
    value_loss = 0.5 * squared.mean()

    kl = (ratio - 1.0 - log_ratio).mean()  # http://joschu.net/blog/kl-approx.html, k3
    clip_fraction = ((ratio - 1.0).abs() > clip).to(ratio.dtype).mean()
    return PPOLoss(
        policy_loss + value_coef * value_loss - entropy_coef * entropy,
        torch.stack((policy_loss, value_loss, entropy, kl, clip_fraction)).detach(),
    )


def mirror_loss(mirrored: Tensor, outputs: Tensor) -> Tensor:
    """The policy's asymmetry (Mittal et al. 2024, arXiv:2403.04359, as rsl_rl has it).

    Args:
        mirrored: ``(B, A)`` means for mirrored observations.
        outputs: ``(B, A)`` mirrored means for the observations themselves, which stay as they are.
    """
    return (mirrored - outputs.detach()).square().mean()


def adapted_rate(rate: float, kl: float, desired_kl: float, bounds: tuple[float, float]) -> float:
    """The learning rate of a gradient step from where the policy has already moved by ``kl``.

    It is divided by 1.5 where that is more than twice the desired, and multiplied where it is less
    than half of it (rsl_rl's adaptive schedule). Below 1e-6 it is float32's rounding: nothing has
    moved yet.
    """
    if kl > 2.0 * desired_kl:
        return max(rate / 1.5, bounds[0])
    if 1e-6 < kl < 0.5 * desired_kl:
        return min(rate * 1.5, bounds[1])
    return rate


class Functions(NamedTuple):
    """The parts of learning that a subclass may replace: ``class Mine(PPO): functions = …``."""

    ppo_loss: Callable[..., PPOLoss] = ppo_loss


# ---- the training --------------------------------------------------------------------------------


@as_written
class PPO(ActorValue[Config]):
    """The algorithm; :func:`train` drives it. ``restore`` is a :meth:`state_dict` to go on from.

    Attributes:
        mirror: Of observations and actions, where steps are mirrored.
    """

    functions: ClassVar[Functions] = Functions()

    def __init__(self, config: Config, restore: dict[str, Any] | None = None):
        super().__init__(config)
        self.entropy_coef = config.entropy_coef
        self.mirror = self._mirror() if config.symmetry or config.mirror_coef else None
        changed_functions(self.functions)  # raises what is none
        self.chooser: Chooser[PPO] = Chooser(
            self,
            (CompiledBfloat16, CompiledEpoch, Compiled),
            config.accelerate,
            own_networks=self.own_networks,
        )

        self.anneal_steps = config.anneal_steps or config.total_steps
        self.begin(restore, in_torch=config.device == "cuda" or not isinstance(self.policy, MLP))

    @property
    def acceleration(self) -> Choice:
        """The accelerator of the epochs; it looks again at parts that have changed since."""
        return self.chooser.choice

    def _mirror(self) -> tuple[Mirroring, Mirroring]:
        symmetry = getattr(self.envs, "symmetry", None)
        if symmetry is None:
            raise ValueError(
                f"symmetry: {self.envs.env_id} does not say how it mirrors; expected an own task "
                "with a method symmetry(self)"
            )
        obs, actions = (Mirroring.of(each, self.device) for each in symmetry)
        return obs, actions

    def _schedule(self) -> None:
        config, left = self.config, max(1.0 - self.global_step / self.anneal_steps, 0.0)
        if config.desired_kl is None:
            self.optimizer.lr = config.learning_rate * (left if config.anneal else 1.0)
        if config.entropy_coef_end is not None:
            change = config.entropy_coef - config.entropy_coef_end
            self.entropy_coef = config.entropy_coef_end + left * change

    # ---- advantages --------------------------------------------------------------------------

    def learn(self, batch: RolloutBatch) -> dict[str, float]:
        """Advantages, then passes over the batch, and the earlier ones of the trajectory pool."""
        self._schedule()
        with span("transfer"):
            samples = self._samples(batch)
        batches = (*self.pool, samples)
        packed = torch.cat([self._pack(each) for each in batches])
        if self.mirror is not None:
            copies = self._mirrored(packed, torch.cat([each.obs for each in batches]))
            packed = torch.cat((packed, copies))
        metrics = self._update(packed)
        self.pool.append(samples)
        self.normalizer.update(batch.obs)
        return metrics

    @torch.no_grad()
    def _pack(self, samples: Samples) -> Tensor:
        """``(n, obs_size + A + 4)``: all that a minibatch needs of a step, in one row.

        One gather then shuffles everything. Columns: normalised observation, action, log-prob,
        advantage, return, value.
        """
        with span("forward"):
            parts = (samples.obs, samples.last_obs, samples.final_obs)
            obs = self.normalizer(torch.cat(parts))
            values, last_values, final_values = self._values(obs, samples)
            obs = obs[: len(samples.obs)]
            values = values.view_as(samples.rewards)
            next_values = torch.cat((values[1:], last_values[None]))
            # what a truncated episode would still have given; nothing where it was terminated
            next_values[samples.end_steps, samples.end_env_ids] = (
                final_values * ~samples.end_terminated
            )
        advantages = gae(
            samples.rewards,
            values,
            next_values,
            samples.ended,
            gamma=self.config.gamma,
            gae_lambda=self.config.gae_lambda,
        )
        actions = samples.actions[:, None].float() if self.discrete else samples.actions
        rest = (samples.log_probs, advantages, advantages + values, values)
        return torch.cat((obs, actions, torch.stack([x.flatten() for x in rest], 1)), 1)

    def _mirrored(self, packed: Tensor, obs: Tensor) -> Tensor:
        """Rows of mirrored steps, whose other columns are those of the steps themselves.

        Args:
            packed: ``(n, obs_size + A + 4)`` rows of :meth:`_pack`.
            obs: ``(n, obs_size)``, not normalised.
        """
        assert self.mirror is not None
        mirror_obs, mirror_actions = self.mirror
        actions = mirror_actions(packed[:, self.obs_size : -4])
        return torch.cat((self.normalizer(mirror_obs(obs)), actions, packed[:, -4:]), 1)

    def _values(self, obs: Tensor, samples: Samples) -> Sequence[Tensor]:
        """Values of the normalised ``obs``, ``last_obs`` and ``final_obs`` of samples."""
        sizes = [len(samples.obs), len(samples.last_obs), len(samples.final_obs)]
        values: Sequence[Tensor] = self.values(obs).split(sizes)
        return values

    def values(self, obs: Tensor) -> Tensor:
        """The value network's outputs ``(n,)`` for normalised observations ``(n, obs_size)``."""
        accelerator = self.acceleration.accelerator
        if isinstance(accelerator, CompiledEpoch):
            return accelerator.values(obs)
        values: Tensor = self.value(obs[None, :, self.seen.critic])
        return values.flatten()

    # ---- update ------------------------------------------------------------------------------

    def _update(self, packed: Tensor) -> dict[str, float]:
        config = self.config
        accelerator = self.acceleration.accelerator
        run_epochs = self.epochs if accelerator is None else accelerator.epochs
        at_once = config.update_epochs if config.target_kl is None else 1
        epochs: list[dict[str, float]] = []  # metrics of each pass's last minibatch
        while len(epochs) < config.update_epochs:
            orders = torch.stack([self._order(len(packed)) for _ in range(at_once)])
            epochs += run_epochs(packed, orders)
            if config.target_kl is not None and epochs[-1]["policy/kl"] > config.target_kl:
                break
        result = {name: sum(e[name] for e in epochs) / len(epochs) for name in epochs[0]}
        result["train/epochs"] = float(len(epochs))
        result["train/learning_rate"] = self.optimizer.lr
        if not self.discrete:
            result["policy/std"] = float(self.log_std.detach().exp().mean())
        return result

    def _order(self, n: int) -> Tensor:
        """The order of a pass over n rows; the second half of a minibatch mirrors the first."""
        if self.mirror is None:
            return torch.randperm(n, generator=self.generator)
        size = self.config.minibatch_size // self.world_size
        steps = torch.randperm(n // 2, generator=self.generator)
        steps = steps[: n // 2 // size * size].view(-1, size)
        return torch.cat((steps, steps + n // 2), 1).flatten()

    @property
    def rows_per_minibatch(self) -> int:
        """Steps of this process, and their copies, per gradient step."""
        return self.config.minibatch_size // self.world_size * (1 if self.mirror is None else 2)

    def epochs(
        self, packed: Tensor, orders: Tensor, backward: Callable[[Tensor], Tensor] | None = None
    ) -> list[dict[str, float]]:
        """Passes over the batch, one for each order of its rows: ``(epochs, n)``."""
        return [self.epoch(packed, order, backward) for order in orders]

    def epoch(
        self, packed: Tensor, order: Tensor, backward: Callable[[Tensor], Tensor] | None = None
    ) -> dict[str, float]:
        """A pass over the batch, a gradient step per minibatch.

        Args:
            packed: ``(n, …, obs_size + A + 4)`` from the collected steps, which are shuffled along
                the first axis.
            order: ``(m,)`` int64: of the rows; an incomplete last minibatch is left out.
            backward: What puts a minibatch's gradients in place and returns PPO_METRICS; None:
                :meth:`backward`.
        """
        config, backward = self.config, backward or self.backward
        size = self.rows_per_minibatch // packed[0, ..., 0].numel()
        shuffled = packed[order.to(self.device)]
        for rows in shuffled.split(size)[: len(order) // size]:
            if config.normalize_advantages:
                rows[..., -3] = distributed.standardized(rows[..., -3])
            metrics = backward(rows)
            if config.desired_kl is not None:
                kl = float(distributed.mean(metrics)[PPO_METRICS.index("policy/kl")])
                rate, bounds = self.optimizer.lr, config.learning_rate_bounds
                self.optimizer.lr = adapted_rate(rate, kl, config.desired_kl, bounds)
            with span("optimiser"):
                distributed.average_gradients([self.flat.parameter])
                norm = self.flat.clip_grad_norm(config.max_grad_norm)
                self.optimizer.step()
                if config.min_std > 0.0:
                    self.log_std.data.clamp_(min=math.log(config.min_std))
                self.refresh()
        names = (*PPO_METRICS, "train/grad_norm")
        values = distributed.mean(torch.cat((metrics, norm[None])))
        return dict(zip(names, values.tolist(), strict=True))

    def backward(self, rows: Tensor, loss: Callable[..., PPOLoss] | None = None) -> Tensor:
        """Puts the loss's gradients where the optimiser finds them; returns PPO_METRICS."""
        config = self.config
        columns, outputs, values = self._evaluate(rows)

        def loss_of(part: slice) -> PPOLoss:
            return (loss or self.functions.ppo_loss)(
                outputs[part],
                None if self.discrete else self.log_std,
                values[part],
                Columns(*(column[part] for column in columns)),
                clip=config.clip,
                value_clip=config.value_clip,
                entropy_coef=self.entropy_coef,
                value_coef=config.value_coef,
            )

        if self.mirror is None:
            total, metrics = loss_of(slice(None))
        else:
            steps, copies = slice(len(outputs) // 2), slice(len(outputs) // 2, None)
            total, metrics = loss_of(steps)
            if config.symmetry:
                total = 0.5 * (total + loss_of(copies).loss)
            if config.mirror_coef > 0.0:
                asymmetry = mirror_loss(outputs[copies], self.mirror[1](outputs[steps]))
                total = total + config.mirror_coef * asymmetry
        self.flat.backward(total)
        return metrics

    def _evaluate(self, rows: Tensor) -> tuple[Columns, Tensor, Tensor]:
        """A minibatch's columns, the policy's outputs ``(B, outputs)`` and values ``(B,)``."""
        columns = self._columns(rows)
        # what MLP.compute_in does for ours
        precision = autocast(self.own_networks and self.config.amp, self.device)
        with span("forward"), learning(self.policy, self.value), precision:
            outputs = self.policy(columns.policy_obs[None])[0].float()
            values = self.value(columns.critic_obs[None]).flatten().float()
        return columns, outputs, values

    def _columns(self, rows: Tensor) -> Columns:
        """The columns of rows of :meth:`_pack`."""
        actions = rows[..., self.obs_size : -4]
        log_probs, advantages, returns, old_values = rows[..., -4:].unbind(-1)
        return Columns(
            rows[..., self.seen.policy],
            rows[..., self.seen.critic],
            actions[..., 0].long() if self.discrete else actions,
            log_probs,
            advantages,
            returns,
            old_values,
        )

    # ---- saving ------------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Any]:
        """Everything that the training goes on from, bit for bit."""
        return {
            **super().state_dict(),
            "anneal_steps": self.anneal_steps,
            "learning_rate": self.optimizer.lr,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restores :meth:`state_dict`. The learning rate's schedule stays the one that it began
        with, unless ``anneal_steps`` sets another.

        Raises:
            ValueError: That schedule ends before ``total_steps``.
        """
        self._continue_schedule(state["anneal_steps"])
        super().load_state_dict(state)
        # schedules compute theirs; checkpoints of earlier versions have none
        self.optimizer.lr = state.get("learning_rate", self.optimizer.lr)

    def _continue_schedule(self, began_with: int) -> None:
        config = self.config
        if config.anneal_steps is None:
            self.anneal_steps = began_with
        if config.falls and self.anneal_steps < config.total_steps:
            raise ValueError(
                f"total_steps: the learning rate falls to 0 at step {self.anneal_steps}, where the "
                f"run was to end, got {config.total_steps}; to train on, set anneal_steps too "
                f"(--anneal-steps {config.total_steps}): the rate then rises to what that "
                "schedule has"
            )


train, load_policy = entry_points(lambda: PPO)
