"""Soft actor-critic, an ensemble and the agent that improves it, in plain PyTorch with autograd.

Only as fast as their habits let them be (:class:`Habits`); used by :mod:`.list_mbpo`.
"""

from __future__ import annotations

import copy
import itertools
from abc import abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from pyfastenv.experiments.baselines.plain import descend, follow, mlp
from pyfastenv.experiments.baselines.pools import Array, Batch
from pyfastenv.nn.flows import CoupledFlow
from pyfastenv.nn.functional import bounded_log_var


@dataclass(frozen=True, kw_only=True)
class Habits:
    """The habits that slow the program down; the defaults are the document's."""

    anomaly_mode: bool = True
    list_pools: bool = True  # lists of tuples; else arrays written and drawn at once
    chunk_size: int = 1_024  # rows per prediction; 0: all at once
    gradients_on: bool = True  # while predicting
    items_per_update: bool = True  # five numbers read back per gradient step
    prints: bool = True  # a line per environment step and per update
    auxiliary_rollout: bool = True  # of the model, at every environment step
    model_every: int = 250
    batch_size: int = 256
    flow_batch_size: int = 100
    amp: bool = False  # products of bfloat16 numbers


class _SoftActorCritic:
    """Twin critics, their targets and the temperature, with an optimiser each.

    Args:
        critic_inputs: Of the critics.
        entropy_size: Components of what is drawn: the entropy aimed at is minus that.
        drawn_by: Parameters of what draws: a policy, or the model.
        habits: What slows it down.
    """

    def __init__(
        self,
        critic_inputs: int,
        entropy_size: int,
        drawn_by: Iterable[nn.Parameter],
        habits: Habits,
    ):
        self._habits = habits
        self.critics = nn.ModuleList([mlp(critic_inputs, 256, 256, 1) for _ in range(2)])
        self.targets = copy.deepcopy(self.critics)
        self.log_alpha = torch.zeros(1, requires_grad=True)
        self._target_entropy = -float(entropy_size)
        self._policy_optimizer = torch.optim.Adam(drawn_by, lr=3e-4)
        self._critic_optimizer = torch.optim.Adam(self.critics.parameters(), lr=3e-4)
        self._alpha_optimizer = torch.optim.Adam([self.log_alpha], lr=3e-4)

    def update(self, batch: Batch) -> None:
        """One gradient step."""
        with torch.autocast("cpu", torch.bfloat16, enabled=self._habits.amp):
            self._update(*(torch.as_tensor(field, dtype=torch.float32) for field in batch))

    @abstractmethod
    def _update(
        self, obs: Tensor, actions: Tensor, rewards: Tensor, next_obs: Tensor, continues: Tensor
    ) -> None: ...

    @abstractmethod
    def draw(self, states: Tensor) -> tuple[Tensor, Tensor]:
        """Draws actions in states; returns them and their log-probabilities ``(B, 1)``."""

    def _soft_value(self, critics: nn.ModuleList, states: Tensor) -> tuple[Tensor, Tensor]:
        """The smaller critic's value, entropy included, of actions drawn in states."""
        drawn, log_probs = self.draw(states)
        inputs = torch.cat((states, drawn), 1)
        least = torch.min(*(critic(inputs) for critic in critics)).float()
        return least - self.log_alpha.exp().detach() * log_probs, log_probs

    def _improve(
        self, states: Tensor, done: Tensor, rewards: Tensor, following: Tensor, continues: Tensor
    ) -> None:
        """Critics, then what is drawn from, then temperature and targets."""
        with torch.no_grad():
            later = self._soft_value(self.targets, following)[0]
            wanted = rewards.view(-1, 1) + 0.99 * continues.view(-1, 1) * later
        inputs = torch.cat((states, done), 1)
        losses = [nn.functional.mse_loss(q(inputs).float(), wanted) for q in self.critics]
        descend(self._critic_optimizer, losses[0] + losses[1])
        value, log_probs = self._soft_value(self.critics, states)
        loss = self._drawing_loss(value, done)
        descend(self._policy_optimizer, loss)
        alpha_loss = -(self.log_alpha * (log_probs + self._target_entropy).detach()).mean()
        descend(self._alpha_optimizer, alpha_loss)
        follow(self.targets, self.critics)
        if self._habits.items_per_update:
            for number in (*losses, loss, alpha_loss, self.log_alpha.exp()):
                number.item()

    def _drawing_loss(self, value: Tensor, done: Tensor) -> Tensor:
        """Policy loss of a stochastic actor: minus its latest sample's value, entropy included."""
        return -value.mean()


class PlainSAC(_SoftActorCritic):
    """Soft actor-critic with modules, autograd and an optimiser each."""

    def __init__(self, obs_size: int, action_size: int, habits: Habits):
        self.policy = mlp(obs_size, 256, 256, 2 * action_size)
        super().__init__(obs_size + action_size, action_size, self.policy.parameters(), habits)

    def draw(self, states: Tensor) -> tuple[Tensor, Tensor]:
        """Actions and their log-probabilities."""
        mean, log_std = self.policy(states).float().chunk(2, -1)
        normal = torch.distributions.Normal(mean, log_std.clamp(-20.0, 2.0).exp())
        before = normal.rsample()
        actions = torch.tanh(before)
        log_probs = normal.log_prob(before) - torch.log(1.0 - actions.square() + 1e-6)
        return actions, log_probs.sum(-1, keepdim=True)

    def act(self, obs: Array) -> Array:
        """Actions for NumPy observations."""
        with torch.autocast("cpu", torch.bfloat16, enabled=self._habits.amp):
            actions = self.draw(torch.as_tensor(obs, dtype=torch.float32))[0]
        array: Array = actions.detach().numpy()
        return array

    def _update(
        self, obs: Tensor, actions: Tensor, rewards: Tensor, next_obs: Tensor, continues: Tensor
    ) -> None:
        self._improve(obs, actions, rewards, next_obs, continues)


class _EnsembleLayer(nn.Module):
    def __init__(self, members: int, inputs: int, outputs: int):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(members, inputs, outputs))
        self.bias = nn.Parameter(torch.zeros(members, 1, outputs))
        nn.init.trunc_normal_(self.weight, std=0.5 / inputs**0.5)

    def forward(self, x: Tensor) -> Tensor:
        return torch.baddbmm(self.bias, x, self.weight)


class PlainEnsemble:
    """Seven Gaussian networks, trained from NumPy arrays minibatch by minibatch."""

    members = 7
    elites = 5

    def __init__(self, obs_size: int, action_size: int, habits: Habits):
        self._habits = habits
        self._outputs = 1 + obs_size
        sizes = [obs_size + action_size, 200, 200, 200, 200, 2 * self._outputs]
        self.layers = nn.ModuleList(
            _EnsembleLayer(self.members, a, b) for a, b in itertools.pairwise(sizes)
        )
        self.high = nn.Parameter(torch.full((1, 1, self._outputs), 0.5))
        self.low = nn.Parameter(torch.full((1, 1, self._outputs), -10.0))
        self._optimizer = torch.optim.Adam(self.parameters(), 1e-3)
        self._mean, self._std = np.zeros(sizes[0]), np.ones(sizes[0])
        self._elites = list(range(self.elites))

    def parameters(self) -> list[nn.Parameter]:
        """The layers' and the log-variances' bounds."""
        return [*self.layers.parameters(), self.high, self.low]

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Means and log-variances ``(7, B, D)`` of ``(7, B, in)``."""
        for layer in self.layers[:-1]:
            x = nn.functional.silu(layer(x))
        mean, raw = self.layers[-1](x).float().chunk(2, -1)
        return mean, bounded_log_var(raw, self.low, self.high)

    def fit(self, batch: Batch, patience: int = 5, max_epochs: int = 1_000) -> int:
        """Trains until no member improves on held-out data; returns the number of epochs."""
        obs, actions, rewards, next_obs, _ = batch
        inputs = np.concatenate((obs, actions), 1)
        targets = np.concatenate((rewards[:, None], next_obs - obs), 1)
        order = np.random.permutation(len(inputs))
        inputs, targets = inputs[order], targets[order]
        held = int(0.2 * len(inputs))
        self._mean, self._std = inputs[held:].mean(0), inputs[held:].std(0)
        self._std[self._std < 1e-12] = 1.0
        inputs = (inputs - self._mean) / self._std
        best, without, epochs = np.full(self.members, 1e10), 0, 0
        while epochs < max_epochs and without <= patience:
            epochs += 1
            shuffled = np.vstack(
                [np.random.permutation(len(inputs) - held) + held for _ in range(self.members)]
            )
            for start in range(0, shuffled.shape[1], 256):
                rows = shuffled[:, start : start + 256]
                self._train_step(
                    torch.from_numpy(inputs[rows]).float(), torch.from_numpy(targets[rows]).float()
                )
            errors = self._held_out(inputs[:held], targets[:held])
            improved = (best - errors) / best > 0.01
            best = np.where(improved, errors, best)
            without = 0 if improved.any() else without + 1
        self._elites = np.argsort(errors)[: self.elites].tolist()
        return epochs

    def _train_step(self, inputs: Tensor, targets: Tensor) -> None:
        with torch.autocast("cpu", torch.bfloat16, enabled=self._habits.amp):
            mean, log_var = self.forward(inputs)
        errors = (mean - targets).square() * torch.exp(-log_var) + log_var
        loss = errors.mean((1, 2)).sum() + 0.01 * (self.high.sum() - self.low.sum())
        for layer, decay in zip(self.layers, (2.5e-5, 5e-5, 7.5e-5, 7.5e-5, 1e-4), strict=True):
            loss = loss + 0.5 * decay * layer.weight.square().sum()  # type: ignore[operator]
        descend(self._optimizer, loss)

    def _held_out(self, inputs: Array, targets: Array) -> Array:
        with torch.no_grad():
            x = torch.from_numpy(inputs).float().expand(self.members, -1, -1)
            mean, _ = self.forward(x)
            errors = (mean - torch.from_numpy(targets).float()).square().mean((1, 2))
        return np.array([error.item() for error in errors])

    def predict(self, obs: Array, actions: Array) -> tuple[Array, Array]:
        """Rewards and next observations, each row's from a random elite."""
        inputs = (np.concatenate((obs, actions), 1) - self._mean) / self._std
        size = self._habits.chunk_size or len(inputs)
        means: list[Array] = []
        variances: list[Array] = []
        with (
            torch.set_grad_enabled(self._habits.gradients_on),
            torch.autocast("cpu", torch.bfloat16, enabled=self._habits.amp),
        ):
            for start in range(0, len(inputs), size):
                x = torch.from_numpy(inputs[start : start + size]).float()
                mean, log_var = self.forward(x[None].repeat(self.members, 1, 1))
                means.append(mean.detach().numpy())
                variances.append(log_var.exp().detach().numpy())
        std = np.sqrt(np.hstack(variances))
        samples = np.hstack(means) + np.random.normal(size=std.shape) * std
        chosen = np.random.choice(self._elites, size=len(inputs))
        drawn = samples[chosen, np.arange(len(inputs))]
        return drawn[:, 0], obs + drawn[:, 1:]

    def imagined(self, pairs: Tensor) -> torch.distributions.Normal:
        """Outcomes' distribution for ``(B, in)`` pairs, each by a random elite, with gradients."""
        mean, std = (torch.from_numpy(part).float() for part in (self._mean, self._std))
        means, log_vars = self.forward(((pairs - mean) / std)[None].repeat(self.members, 1, 1))
        chosen = torch.from_numpy(np.random.choice(self._elites, size=len(pairs)))
        rows = torch.arange(len(pairs))
        return torch.distributions.Normal(means[chosen, rows], (0.5 * log_vars[chosen, rows]).exp())


class PlainModelAgent(_SoftActorCritic):
    """Soft actor-critic whose policy is the ensemble: it improves the model by the flow's reward.

    Its state is (s, a) and its action (r, s' - s). In the public program no gradient reaches the
    ensemble (docs/mbpo.md); here one does, and it costs what it should. The loss is ours
    (algorithms/mbpo/flow.py): by the value alone the model is soon so far off that a fit takes a
    thousand epochs to bring it back.
    """

    def __init__(
        self,
        sizes: tuple[int, int],
        model: PlainEnsemble,
        sac: PlainSAC,
        flow: CoupledFlow,
        habits: Habits,
    ):
        outcome = 1 + sizes[0]
        super().__init__(sum(sizes) + outcome, outcome, model.parameters(), habits)
        self._model, self._sac, self._flow = model, sac, flow

    def draw(self, states: Tensor) -> tuple[Tensor, Tensor]:
        """Draws outcomes of pairs from the model."""
        self._imagined = self._model.imagined(states)
        outcomes = self._imagined.rsample()
        return outcomes, self._imagined.log_prob(outcomes).sum(-1, keepdim=True)

    def _drawing_loss(self, value: Tensor, done: Tensor) -> Tensor:
        likelihood: Tensor = self._imagined.log_prob(done).mean()
        loss: Tensor = -0.1 * value.mean() / (1.0 + value.detach().abs().mean())
        return loss - 2.0 * likelihood

    def _update(
        self, obs: Tensor, actions: Tensor, rewards: Tensor, next_obs: Tensor, continues: Tensor
    ) -> None:
        pairs, rewards = torch.cat((obs, actions), 1), rewards[:, None]
        with torch.no_grad():
            real = 1.0 - self._flow.log_ratio(torch.cat((pairs, rewards), 1)).tanh()
            next_pairs = torch.cat((next_obs, self._sac.draw(next_obs)[0]), 1)
        outcomes = torch.cat((rewards, next_obs - obs), 1)
        self._improve(pairs, outcomes, real, next_pairs, continues)
