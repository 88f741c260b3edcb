"""MBPO as it is often programmed, to measure against: slow in the ways that a document describes.

Written anew after the description of a public program (docs/mbpo.md): pools are lists of tuples,
minibatches are stacked sample by sample, an update copies five arrays and reads five numbers back,
prediction runs in chunks of 1,024 on all members with gradients on, transitions are pushed one by
one, and anomaly mode may be on. Each habit can be dropped by itself (:class:`Habits`). One process,
plain PyTorch with autograd; same sizes and same arithmetic as :mod:`pyfastenv.algorithms.mbpo`.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from torch import nn

import pyfastenv
from pyfastenv.algorithms.mbpo.termination import termination_rule
from pyfastenv.experiments.baselines.plain_learners import (
    Habits,
    PlainEnsemble,
    PlainModelAgent,
    PlainSAC,
)
from pyfastenv.experiments.baselines.pools import Array, ArrayPool, Batch, ListPool
from pyfastenv.nn.flows import CoupledFlow, donsker_varadhan_loss
from pyfastenv.sampling.exploration import continuous_actions


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
        return tuple(np.concatenate(pair) for pair in both)

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
