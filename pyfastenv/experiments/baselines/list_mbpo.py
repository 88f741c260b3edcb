"""MBPO as it is often programmed, to measure against: slow in the ways that a document describes.

Written anew after the description of a public program (docs/mbpo.md): pools are lists of tuples,
minibatches are stacked sample by sample, an update copies five arrays and reads five numbers back,
prediction runs in chunks of 1,024 on all members with gradients on, transitions are pushed one by
one, and anomaly mode may be on. Each habit can be dropped by itself (:class:`Habits`). One process,
plain PyTorch with autograd; same sizes and same arithmetic as :mod:`pyfastenv.algorithms.mbpo`.
"""

from __future__ import annotations

import copy
import itertools
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

import pyfastenv
from pyfastenv.learners.termination import termination_rule
from pyfastenv.nn.flows import CoupledFlow, donsker_varadhan_loss
from pyfastenv.nn.functional import bounded_log_var
from pyfastenv.sampling.exploration import continuous_actions

Array = NDArray[Any]
Batch = tuple[Array, Array, Array, Array, Array]  # obs, actions, rewards, next obs, continues


@dataclass(frozen=True, kw_only=True)
class Habits:
    """What slows the program down; the defaults are the document's."""

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


class ListPool:
    """The latest transitions, as a list of tuples."""

    def __init__(self, capacity: int):
        self.capacity = capacity
        self._items: list[Any] = []
        self._next = 0

    def __len__(self) -> int:
        return len(self._items)

    def push(self, *batch: Array) -> None:
        """Adds transitions one by one."""
        for row in zip(*batch, strict=True):
            if len(self._items) < self.capacity:
                self._items.append(None)
            self._items[self._next] = row
            self._next = (self._next + 1) % self.capacity

    def sample(self, n: int) -> Batch:
        """Draws n, stacked field by field."""
        rows = random.choices(self._items, k=n)
        fields = [np.stack(field) for field in zip(*rows, strict=True)]
        return (fields[0], fields[1], fields[2], fields[3], fields[4])

    def all(self) -> Batch:
        """Every transition."""
        fields = [np.stack(field) for field in zip(*self._items, strict=True)]
        return (fields[0], fields[1], fields[2], fields[3], fields[4])


class ArrayPool:
    """The same in arrays that are allocated once."""

    def __init__(self, capacity: int):
        self.capacity = capacity
        self._fields: list[Array] = []
        self._size = 0
        self._next = 0

    def __len__(self) -> int:
        return self._size

    def push(self, *batch: Array) -> None:
        """Adds transitions at once."""
        if not self._fields:
            self._fields = [
                np.empty((self.capacity, *field.shape[1:]), np.float32) for field in batch
            ]
        n = len(batch[0])
        where = (self._next + np.arange(n)) % self.capacity
        for mine, field in zip(self._fields, batch, strict=True):
            mine[where] = field
        self._next = (self._next + n) % self.capacity
        self._size = min(self._size + n, self.capacity)

    def sample(self, n: int) -> Batch:
        """Draws n."""
        rows = np.random.randint(self._size, size=n)
        drawn = [field[rows] for field in self._fields]
        return (drawn[0], drawn[1], drawn[2], drawn[3], drawn[4])

    def all(self) -> Batch:
        """Every transition."""
        fields = [field[: self._size] for field in self._fields]
        return (fields[0], fields[1], fields[2], fields[3], fields[4])


class PlainSAC:
    """Soft actor-critic with modules, autograd and an optimiser each."""

    def __init__(self, obs_size: int, action_size: int, habits: Habits):
        def mlp(inputs: int, outputs: int) -> nn.Sequential:
            hidden = [nn.Linear(inputs, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU()]
            return nn.Sequential(*hidden, nn.Linear(256, outputs))

        self._habits = habits
        self.policy = mlp(obs_size, 2 * action_size)
        self.critics = nn.ModuleList([mlp(obs_size + action_size, 1) for _ in range(2)])
        self.targets = copy.deepcopy(self.critics)
        self.log_alpha = torch.zeros(1, requires_grad=True)
        self._target_entropy = -float(action_size)
        self._policy_optimizer = torch.optim.Adam(self.policy.parameters(), lr=3e-4)
        self._critic_optimizer = torch.optim.Adam(self.critics.parameters(), lr=3e-4)
        self._alpha_optimizer = torch.optim.Adam([self.log_alpha], lr=3e-4)

    def draw(self, obs: Tensor) -> tuple[Tensor, Tensor]:
        """Actions and their log-probabilities."""
        mean, log_std = self.policy(obs).float().chunk(2, -1)
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

    def update(self, batch: Batch) -> None:
        """One gradient step."""
        with torch.autocast("cpu", torch.bfloat16, enabled=self._habits.amp):
            self._update(batch)

    def _update(self, batch: Batch) -> None:
        obs, actions, rewards, next_obs, continues = (
            torch.as_tensor(field, dtype=torch.float32) for field in batch
        )
        alpha = self.log_alpha.exp().detach()
        with torch.no_grad():
            next_actions, next_log_probs = self.draw(next_obs)
            inputs = torch.cat((next_obs, next_actions), 1)
            least = torch.min(*(target(inputs) for target in self.targets))
            soft = least - alpha * next_log_probs
            wanted = rewards[:, None] + 0.99 * continues[:, None] * soft
        values = [critic(torch.cat((obs, actions), 1)) for critic in self.critics]
        critic_losses = [nn.functional.mse_loss(value.float(), wanted) for value in values]
        self.descend(self._critic_optimizer, critic_losses[0] + critic_losses[1])
        drawn, log_probs = self.draw(obs)
        inputs = torch.cat((obs, drawn), 1)
        opinions = torch.min(*(critic(inputs) for critic in self.critics))
        policy_loss = (alpha * log_probs - opinions).mean()
        self.descend(self._policy_optimizer, policy_loss)
        alpha_loss = -(self.log_alpha * (log_probs + self._target_entropy).detach()).mean()
        self.descend(self._alpha_optimizer, alpha_loss)
        for target, online in zip(
            self.targets.parameters(), self.critics.parameters(), strict=True
        ):
            target.data.copy_(target.data * (1.0 - 0.005) + online.data * 0.005)
        if self._habits.items_per_update:
            for loss in (*critic_losses, policy_loss, alpha_loss, alpha):
                loss.item()

    @staticmethod
    def descend(optimizer: torch.optim.Optimizer, loss: Tensor) -> None:
        """A gradient step down a loss."""
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


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
        best = [1e10] * self.members
        without = 0
        epochs = 0
        while epochs < max_epochs:
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
            improved = False
            for i, error in enumerate(errors):
                if (best[i] - error) / best[i] > 0.01:
                    best[i], improved = error, True
            without = 0 if improved else without + 1
            if without > patience:
                break
        self._elites = np.argsort(errors)[: self.elites].tolist()
        return epochs

    def _train_step(self, inputs: Tensor, targets: Tensor) -> None:
        with torch.autocast("cpu", torch.bfloat16, enabled=self._habits.amp):
            mean, log_var = self.forward(inputs)
        errors = (mean - targets).square() * torch.exp(-log_var) + log_var
        loss = errors.mean((1, 2)).sum() + 0.01 * (self.high.sum() - self.low.sum())
        for layer, decay in zip(self.layers, (2.5e-5, 5e-5, 7.5e-5, 7.5e-5, 1e-4), strict=True):
            loss = loss + 0.5 * decay * layer.weight.square().sum()  # type: ignore[operator]
        self._optimizer.zero_grad()
        loss.backward()
        self._optimizer.step()

    def _held_out(self, inputs: Array, targets: Array) -> list[float]:
        with torch.no_grad():
            x = torch.from_numpy(inputs).float().expand(self.members, -1, -1)
            mean, _ = self.forward(x)
            errors = (mean - torch.from_numpy(targets).float()).square().mean((1, 2))
        return [error.item() for error in errors]

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

    def imagine(self, pairs: Tensor) -> tuple[Tensor, Tensor]:
        """Outcomes (reward, change) of ``(B, in)`` pairs and their log-probabilities, with
        gradients; all members are asked and one elite is taken for each row."""
        mean, std = (torch.from_numpy(x).float() for x in (self._mean, self._std))
        means, log_vars = self.forward(((pairs - mean) / std)[None].repeat(self.members, 1, 1))
        chosen = torch.from_numpy(np.random.choice(self._elites, size=len(pairs)))
        rows = torch.arange(len(pairs))
        normal = torch.distributions.Normal(
            means[chosen, rows], (0.5 * log_vars[chosen, rows]).exp()
        )
        outcomes = normal.rsample()
        return outcomes, normal.log_prob(outcomes).sum(-1, keepdim=True)


class PlainModelAgent:
    """Soft actor-critic whose policy is the ensemble: it improves the model by the flow's reward.

    Its state is (s, a) and its action (r, s' - s). In the public program no gradient reaches the
    ensemble (docs/mbpo.md); here one does, and it costs what it should.
    """

    def __init__(
        self,
        sizes: tuple[int, int],
        model: PlainEnsemble,
        sac: PlainSAC,
        flow: CoupledFlow,
        habits: Habits,
    ):
        def critic() -> nn.Sequential:
            hidden = [nn.Linear(inputs, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU()]
            return nn.Sequential(*hidden, nn.Linear(256, 1))

        inputs = sum(sizes) + 1 + sizes[0]
        self._habits = habits
        self._model, self._sac, self._flow = model, sac, flow
        self.critics = nn.ModuleList([critic() for _ in range(2)])
        self.targets = copy.deepcopy(self.critics)
        self.log_alpha = torch.zeros(1, requires_grad=True)
        self._target_entropy = -float(1 + sizes[0])
        self._critic_optimizer = torch.optim.Adam(self.critics.parameters(), lr=3e-4)
        self._model_optimizer = torch.optim.Adam(model.parameters(), lr=3e-4)
        self._alpha_optimizer = torch.optim.Adam([self.log_alpha], lr=3e-4)

    def update(self, batch: Batch) -> None:
        """One gradient step on real transitions."""
        with torch.autocast("cpu", torch.bfloat16, enabled=self._habits.amp):
            self._update(*(torch.as_tensor(field, dtype=torch.float32) for field in batch))

    def _update(
        self, obs: Tensor, actions: Tensor, rewards: Tensor, next_obs: Tensor, continues: Tensor
    ) -> None:
        pairs = torch.cat((obs, actions), 1)
        alpha = self.log_alpha.exp().detach()
        with torch.no_grad():
            samples = torch.cat((pairs, rewards[:, None]), 1)
            real = 1.0 - self._flow.log_ratio(samples).tanh().view(-1, 1)
            next_pairs = torch.cat((next_obs, self._sac.draw(next_obs)[0]), 1)
            outcomes, log_probs = self._model.imagine(next_pairs)
            soft = self._least(self.targets, next_pairs, outcomes) - alpha * log_probs
            wanted = real + 0.99 * continues[:, None] * soft
        inputs = torch.cat((pairs, rewards[:, None], next_obs - obs), 1)
        losses = [nn.functional.mse_loss(q(inputs).float(), wanted) for q in self.critics]
        PlainSAC.descend(self._critic_optimizer, losses[0] + losses[1])
        outcomes, log_probs = self._model.imagine(pairs)
        model_loss = (alpha * log_probs - self._least(self.critics, pairs, outcomes)).mean()
        PlainSAC.descend(self._model_optimizer, model_loss)
        alpha_loss = -(self.log_alpha * (log_probs + self._target_entropy).detach()).mean()
        PlainSAC.descend(self._alpha_optimizer, alpha_loss)
        for target, online in zip(
            self.targets.parameters(), self.critics.parameters(), strict=True
        ):
            target.data.copy_(target.data * (1.0 - 0.005) + online.data * 0.005)
        if self._habits.items_per_update:
            for loss in (*losses, model_loss, alpha_loss, alpha):
                loss.item()

    @staticmethod
    def _least(critics: nn.ModuleList, pairs: Tensor, outcomes: Tensor) -> Tensor:
        inputs = torch.cat((pairs, outcomes), 1)
        least: Tensor = torch.min(*(critic(inputs) for critic in critics)).float()
        return least


class PlainEnv:
    """One environment, reset when an episode ends, with actions in [-1, 1].

    Args:
        env_id: With continuous actions and a termination rule.
        seed: Of the environment.

    Attributes:
        obs: Where it stands, ``(1, obs_size)``.
        sizes: ``(obs_size, action_size)``.
    """

    def __init__(self, env_id: str, seed: int):
        self._envs = pyfastenv.make_vec(env_id, 1, autoreset_mode="SameStep", infos=False)
        self._rule = termination_rule(self._envs)
        self._box = continuous_actions(self._envs, "mbpo")
        self.obs: Array = self._envs.reset(seed=seed)[0]
        self.sizes = (self.obs.shape[1], len(self._box))

    def step(self, actions: Array) -> Batch:
        """One step with ``(1, action_size)`` actions."""
        scaled = self._box.center + self._box.half * torch.from_numpy(actions)
        obs = self.obs
        self.obs, rewards, terminated, truncated, infos = self._envs.step(scaled.numpy())
        self.obs = self.obs.copy()
        ended = terminated | truncated
        next_obs = np.stack(infos["final_obs"]) if ended[0] else self.obs
        return obs, actions, rewards, next_obs, 1.0 - terminated

    def close(self) -> None:
        """Frees it."""
        self._envs.close()

    def terminates(self, next_obs: Array) -> Array:
        """Whether ``(n, obs_size)`` observations are terminal."""
        terminal: Array = self._rule(torch.from_numpy(next_obs)).numpy()
        return terminal


class ListMBPO:
    """The loop around them.

    Args:
        env: The environment.
        habits: What slows it down.
        flow: Whether with the coupled flow (its cadence; see :meth:`update_flow`).
        rollout_batch: States per rollout of the model.
        max_epochs: Of a fit.
        agent_updates: Of the agent that improves the model, each time.
        say: Where prints go.

    Attributes:
        epochs: Of each fit so far.
    """

    def __init__(
        self,
        env: PlainEnv,
        habits: Habits,
        *,
        flow: bool = False,
        rollout_batch: int = 100_000,
        max_epochs: int = 1_000,
        agent_updates: int = 200,
        say: Callable[[str], object] = lambda text: None,
    ):
        self.habits = habits
        self._env = env
        self._rollout_batch, self._max_epochs = rollout_batch, max_epochs
        self._agent_updates = agent_updates
        self.epochs: list[int] = []
        self._say = say
        make_pool = ListPool if habits.list_pools else ArrayPool
        self._make_pool: Callable[[int], ListPool | ArrayPool] = make_pool
        self.env_pool = make_pool(1_000_000)
        self.model_pool = make_pool(400_000)
        self.sac = PlainSAC(*env.sizes, habits)
        self.model = PlainEnsemble(*env.sizes, habits)
        self.flow: CoupledFlow | None = None
        if flow:
            self.flow = CoupledFlow(sum(env.sizes) + 1)
            self._flow_optimizer = torch.optim.Adam(self.flow.parameters(), lr=3e-4)
            self.model_agent = PlainModelAgent(env.sizes, self.model, self.sac, self.flow, habits)
        self.steps = 0

    def explore(self, num_steps: int) -> None:
        """Random actions."""
        shape = (1, self._env.sizes[1])
        for _ in range(num_steps):
            self._step_with(np.random.uniform(-1.0, 1.0, shape).astype(np.float32))

    def run(self, num_steps: int, updates_per_step: int = 20) -> None:
        """Environment steps with all that belongs to them."""
        with self.checked():
            for _ in range(num_steps):
                self._run_step(updates_per_step)

    def checked(self) -> torch.autograd.set_detect_anomaly:
        """Anomaly mode, if that is the habit."""
        return torch.autograd.set_detect_anomaly(self.habits.anomaly_mode, check_nan=True)

    def _run_step(self, updates_per_step: int) -> None:
        if self.steps % self.habits.model_every == 0:
            self.epochs.append(self.model.fit(self.env_pool.all(), max_epochs=self._max_epochs))
            self.roll_out(self._rollout_batch, 1, self.model_pool)
        if self.flow is not None:
            if self.habits.auxiliary_rollout:
                self.roll_out_aside()
            if self.steps % 1_000 == 0:
                self.update_flow()
            if self.steps % 250 == 0:
                self.improve_model(self._agent_updates)
        self.step()
        self.learn(updates_per_step)
        self.steps += 1

    def step(self) -> None:
        """One environment step with the policy."""
        self._step_with(self.sac.act(self._env.obs))
        if self.habits.prints:
            self._say(f"step {self.steps}")

    def learn(self, num_updates: int) -> None:
        """Gradient steps of SAC."""
        for i in range(num_updates):
            self.sac.update(self.batch())
            if self.habits.prints:
                self._say(f"update {i} of {num_updates}")

    def roll_out_aside(self) -> ListPool | ArrayPool:
        """The model's rollout for the flow into a pool of its own; 999 of 1,000 are never read."""
        pool = self._make_pool(100_000)
        self.roll_out(1_000, 2, pool)
        return pool

    def batch(self) -> Batch:
        """Five in a hundred real, the rest predicted."""
        size = self.habits.batch_size
        real = int(0.05 * size)
        both = zip(self.env_pool.sample(real), self.model_pool.sample(size - real), strict=True)
        fields = [np.concatenate(pair) for pair in both]
        return (fields[0], fields[1], fields[2], fields[3], fields[4])

    def roll_out(self, num_states: int, num_steps: int, pool: ListPool | ArrayPool) -> None:
        """Follows the policy in the model."""
        obs = self.env_pool.sample(num_states)[0]
        for _ in range(num_steps):
            actions = self.sac.act(obs)
            rewards, next_obs = self.model.predict(obs, actions)
            terminated = self._env.terminates(next_obs)
            pool.push(obs, actions, rewards, next_obs, 1.0 - terminated.astype(np.float32))
            obs = next_obs[~terminated]
            if len(obs) == 0:
                return

    def update_flow(self, iterations: int = 10) -> None:
        """Teaches the flow to tell a fresh rollout from real transitions."""
        assert self.flow is not None
        fresh = self.roll_out_aside()
        for _ in range(iterations):
            ratios = []
            for pool in (fresh, self.env_pool):
                obs, actions, rewards, _, _ = pool.sample(self.habits.flow_batch_size)
                both = np.concatenate((obs, actions, rewards[:, None]), 1)
                samples = torch.as_tensor(both, dtype=torch.float32)
                ratios.append(self.flow.log_ratio(samples).tanh())
            loss = donsker_varadhan_loss(*ratios).sum()
            self._flow_optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(self.flow.parameters(), 1.0)
            self._flow_optimizer.step()

    def improve_model(self, num_updates: int) -> None:
        """Lets the flow's agent change the model."""
        for _ in range(num_updates):
            self.model_agent.update(self.env_pool.sample(self.habits.batch_size))

    def _step_with(self, actions: Array) -> None:
        self.env_pool.push(*self._env.step(actions))
