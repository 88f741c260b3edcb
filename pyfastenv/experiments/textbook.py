"""PPO and DDPG as a public textbook programs them, to measure against.

Written anew after the description in document 001: one gymnasium environment, a policy call in
torch per step, transitions in Python lists, plain autograd. It can sample and learn on different
devices, by moving the networks to and fro as the document does. Its faults are kept: a time limit
counts as an end, and by default every episode starts in the same state. Knows nothing of ours.
"""

from __future__ import annotations

import copy
import random
import time
import warnings
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import gymnasium
import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

Array = NDArray[Any]
# where the policy acts and where everything learns
PLACEMENTS = {"cpu": ("cpu", "cpu"), "cuda": ("cuda", "cuda"), "sample-cpu": ("cpu", "cuda")}
# how many of the latest trajectories the pool holds; the document does not say
POOL_SIZE = 4


@dataclass
class Run:
    """What a training did, and where its time went.

    Attributes:
        returns: Of each episode.
        seconds: Since the start, at each episode's end.
        env_steps: Environment steps.
        updates: PPO: ten passes over one trajectory (or the pool). DDPG: one minibatch.
        sample_s: Time in which the policy acted and the environment moved [s].
        update_s: Time of updates [s].
        copy_s: Time in which networks moved between devices [s].
    """

    returns: list[float] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    env_steps: int = 0
    updates: int = 0
    sample_s: float = 0.0
    update_s: float = 0.0
    copy_s: float = 0.0


class Textbook:
    """What both trainers share: devices, clocks and the environment.

    Args:
        env_id: gymnasium's.
        hidden_sizes: Hidden layers, of each network.
        placement: A name in :data:`PLACEMENTS`.
        fixed_start: Every episode begins with ``reset(seed=0)``; else only the first is seeded.
        seed: Of networks, actions and (unless ``fixed_start``) environment.

    Raises:
        ValueError: Unknown placement, or there is no GPU for it.
    """

    def __init__(
        self,
        env_id: str,
        hidden_sizes: Sequence[int],
        *,
        placement: str = "cpu",
        fixed_start: bool = True,
        seed: int = 0,
    ):
        if placement not in PLACEMENTS:
            raise ValueError(f"placement: expected one of {', '.join(PLACEMENTS)}, got {placement}")
        self.sample_device, self.learn_device = map(torch.device, PLACEMENTS[placement])
        if self.learn_device.type == "cuda" and not torch.cuda.is_available():
            raise ValueError(f"placement: {placement} needs CUDA, and PyTorch finds none here")
        torch.manual_seed(seed)
        random.seed(seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # v0 is what the document has
            self.env: gymnasium.Env[Array, Any] = gymnasium.make(env_id)
        self.env.reset(seed=seed)
        self.hidden_sizes = tuple(hidden_sizes)
        self.fixed_start = fixed_start
        self.run = Run()

    def mlp(self, num_inputs: int, num_outputs: int) -> nn.Sequential:
        """A ReLU network on the learner's device."""
        layers: list[nn.Module] = []
        for size in self.hidden_sizes:
            layers += [nn.Linear(num_inputs, size), nn.ReLU()]
            num_inputs = size
        return nn.Sequential(*layers, nn.Linear(num_inputs, num_outputs)).to(self.learn_device)

    def reset(self) -> Array:
        """The first observation of an episode."""
        obs: Array = self.env.reset(seed=0 if self.fixed_start else None)[0]
        return obs

    @contextmanager
    def clock(self, name: str) -> Iterator[None]:
        """Adds the block's time to ``run.<name>``."""
        began = time.perf_counter()
        yield
        if self.learn_device.type == "cuda":
            torch.cuda.synchronize()
        setattr(self.run, name, getattr(self.run, name) + time.perf_counter() - began)

    def move(self, module: nn.Module, device: torch.device) -> None:
        """Copies a network to where it is needed, if that is elsewhere."""
        if self.sample_device != self.learn_device:
            with self.clock("copy_s"):
                module.to(device)

    def tensor(self, values: Any, device: torch.device) -> Tensor:
        """float32 on a device."""
        return torch.tensor(np.asarray(values), dtype=torch.float32).to(device)


Trajectory = dict[str, Any]


class TextbookPPO(Textbook):
    """PPO on discrete actions: an update after each episode, actor lr 1e-3, critic lr 1e-2.

    Args:
        hidden_sizes: Of policy and value network each.
        env_id: gymnasium's.
        copy_every: So many episodes are sampled with one copy of the policy, then each is
            learned from.
        pool_size: Each update is on the latest so many trajectories (the trajectory pool).
        placement: See :class:`Textbook`, as the rest.
        fixed_start: As there.
        seed: As there.
    """

    gamma, lmbda, epochs, clip = 0.98, 0.95, 10, 0.2

    def __init__(
        self,
        hidden_sizes: Sequence[int],
        *,
        env_id: str = "CartPole-v0",
        copy_every: int = 1,
        pool_size: int = 1,
        placement: str = "cpu",
        fixed_start: bool = True,
        seed: int = 0,
    ):
        super().__init__(
            env_id, hidden_sizes, placement=placement, fixed_start=fixed_start, seed=seed
        )
        obs_shape, actions = self.env.observation_space.shape, self.env.action_space
        assert obs_shape is not None and isinstance(actions, gymnasium.spaces.Discrete)
        self.actor = self.mlp(obs_shape[0], int(actions.n))
        self.critic = self.mlp(obs_shape[0], 1)
        self.actor_optimizer = torch.optim.Adam(self.actor.parameters(), lr=1e-3)
        self.critic_optimizer = torch.optim.Adam(self.critic.parameters(), lr=1e-2)
        self.copy_every = copy_every
        self.pool: deque[Trajectory] = deque(maxlen=pool_size)

    def train(self, num_episodes: int, stop: Callable[[Run], bool] = lambda run: False) -> Run:
        """Trains for so many episodes, or until ``stop`` says so after an update."""
        began = time.perf_counter()
        while len(self.run.returns) < num_episodes and not stop(self.run):
            count = min(self.copy_every, num_episodes - len(self.run.returns))
            self.move(self.actor, self.sample_device)
            with self.clock("sample_s"):
                trajectories = [self._episode(began) for _ in range(count)]
            self.move(self.actor, self.learn_device)
            with self.clock("update_s"):
                for trajectory in trajectories:
                    self._prepare(trajectory)
                for trajectory in trajectories:
                    self.pool.append(trajectory)
                    self._update()
            self.run.updates += count
        self.run.seconds[-1] = time.perf_counter() - began
        return self.run

    def _episode(self, began: float) -> Trajectory:
        names = ("states", "actions", "next_states", "rewards", "dones")
        trajectory: Trajectory = {name: [] for name in names}
        state, done = self.reset(), False
        while not done:
            action = self._take_action(state)
            next_state, reward, terminated, truncated, _ = self.env.step(action)
            done = terminated or truncated
            for name, value in zip(names, (state, action, next_state, reward, done), strict=True):
                trajectory[name].append(value)
            state = next_state
        self.run.env_steps += len(trajectory["rewards"])
        self.run.returns.append(float(np.sum(trajectory["rewards"])))
        self.run.seconds.append(time.perf_counter() - began)
        return trajectory

    def _take_action(self, state: Array) -> int:
        probs = torch.softmax(self.actor(self.tensor([state], self.sample_device)), dim=1)
        return int(torch.distributions.Categorical(probs).sample().item())

    def _prepare(self, trajectory: Trajectory) -> None:
        """Makes tensors of the lists, and keeps the probabilities that the actions had."""
        for name, values in trajectory.items():
            trajectory[name] = self.tensor(values, self.learn_device)
        with torch.no_grad():
            trajectory["log_probs"] = self._log_probs(trajectory)

    def _log_probs(self, trajectory: Trajectory) -> Tensor:
        all_log_probs = torch.log_softmax(self.actor(trajectory["states"]), dim=1)
        return all_log_probs.gather(1, trajectory["actions"].long().view(-1, 1))

    def _update(self) -> None:
        batches = [self._with_advantages(trajectory) for trajectory in self.pool]
        batch = {name: torch.cat([each[name] for each in batches]) for name in batches[0]}
        for _ in range(self.epochs):
            ratio = torch.exp(self._log_probs(batch) - batch["log_probs"])
            clipped = torch.clamp(ratio, 1.0 - self.clip, 1.0 + self.clip)
            advantage = batch["advantage"]
            actor_loss = -torch.min(ratio * advantage, clipped * advantage).mean()
            critic_loss = nn.functional.mse_loss(self.critic(batch["states"]), batch["target"])
            self.actor_optimizer.zero_grad()
            self.critic_optimizer.zero_grad()
            actor_loss.backward()
            critic_loss.backward()
            self.actor_optimizer.step()
            self.critic_optimizer.step()

    @torch.no_grad()
    def _with_advantages(self, trajectory: Trajectory) -> Trajectory:
        rewards, dones = trajectory["rewards"].view(-1, 1), trajectory["dones"].view(-1, 1)
        next_values = self.critic(trajectory["next_states"])
        target = rewards + self.gamma * next_values * (1 - dones)
        deltas = (target - self.critic(trajectory["states"])).cpu().numpy()
        advantages, advantage = [], 0.0
        for delta in deltas[::-1]:
            advantage = self.gamma * self.lmbda * advantage + delta
            advantages.append(advantage)
        made = self.tensor(advantages[::-1], self.learn_device)
        kept = {name: trajectory[name] for name in ("states", "actions", "log_probs")}
        return {**kept, "target": target, "advantage": made}


class TextbookDDPG(Textbook):
    """DDPG: a minibatch after each step, lr 3e-4 and 3e-3, replay of 10,000 tuples.

    Args:
        hidden_sizes: Of policy and critic each.
        env_id: gymnasium's.
        copy_every: So many steps are sampled with one copy of the policy, then as many minibatches
            are learned from.
        minimum: Transitions before learning begins.
        placement: See :class:`Textbook`, as the rest.
        fixed_start: As there.
        seed: As there.
    """

    gamma, tau, sigma, batch_size, capacity = 0.98, 0.005, 0.01, 64, 10_000

    def __init__(
        self,
        hidden_sizes: Sequence[int],
        *,
        env_id: str = "Pendulum-v1",
        copy_every: int = 1,
        minimum: int = 1_000,
        placement: str = "cpu",
        fixed_start: bool = True,
        seed: int = 0,
    ):
        super().__init__(
            env_id, hidden_sizes, placement=placement, fixed_start=fixed_start, seed=seed
        )
        obs_shape, actions = self.env.observation_space.shape, self.env.action_space
        assert obs_shape is not None and isinstance(actions, gymnasium.spaces.Box)
        self.bound = float(actions.high[0])
        self.actor = self.mlp(obs_shape[0], actions.shape[0])
        self.critic = self.mlp(obs_shape[0] + actions.shape[0], 1)
        self.target_actor = copy.deepcopy(self.actor)
        self.target_critic = copy.deepcopy(self.critic)
        self.actor_optimizer = torch.optim.Adam(self.actor.parameters(), lr=3e-4)
        self.critic_optimizer = torch.optim.Adam(self.critic.parameters(), lr=3e-3)
        self.copy_every, self.minimum = copy_every, minimum
        self.replay: deque[tuple[Any, ...]] = deque(maxlen=self.capacity)
        self.noise = np.random.default_rng(seed)

    def train(self, num_episodes: int) -> Run:
        """Trains for so many episodes."""
        began = time.perf_counter()
        state = self.reset()
        episode_return = 0.0
        while len(self.run.returns) < num_episodes:
            self.move(self.actor, self.sample_device)
            with self.clock("sample_s"):
                for _ in range(self.copy_every):
                    action = self._take_action(state)
                    next_state, reward, terminated, truncated, _ = self.env.step(action)
                    done = terminated or truncated
                    self.replay.append((state, action, float(reward), next_state, done))
                    state = next_state
                    episode_return += float(reward)
                    self.run.env_steps += 1
                    if done:
                        self.run.returns.append(episode_return)
                        self.run.seconds.append(time.perf_counter() - began)
                        state, episode_return = self.reset(), 0.0
            self.move(self.actor, self.learn_device)
            if len(self.replay) > self.minimum:
                with self.clock("update_s"):
                    for _ in range(self.copy_every):
                        self._update()
                self.run.updates += self.copy_every
        self.run.seconds[-1] = time.perf_counter() - began
        return self.run

    def _act(self, actor: nn.Module, states: Tensor) -> Tensor:
        actions: Tensor = torch.tanh(actor(states)) * self.bound
        return actions

    def _take_action(self, state: Array) -> Array:
        action = self._act(self.actor, self.tensor([state], self.sample_device))
        noisy: Array = action[0].detach().cpu().numpy() + self.sigma * self.noise.normal(size=1)
        return noisy

    def _update(self) -> None:
        columns = zip(*random.sample(self.replay, self.batch_size), strict=True)
        states, actions, rewards, next_states, dones = (
            self.tensor(np.array(column), self.learn_device) for column in columns
        )
        next_actions = self._act(self.target_actor, next_states)
        next_values = self.target_critic(torch.cat((next_states, next_actions), 1))
        targets = rewards.view(-1, 1) + self.gamma * next_values * (1 - dones.view(-1, 1))
        values = self.critic(torch.cat((states, actions), 1))
        critic_loss = nn.functional.mse_loss(values, targets.detach())
        self.critic_optimizer.zero_grad()
        critic_loss.backward()
        self.critic_optimizer.step()
        opinions = self.critic(torch.cat((states, self._act(self.actor, states)), 1))
        self.actor_optimizer.zero_grad()
        (-opinions.mean()).backward()
        self.actor_optimizer.step()
        for online, target in (
            (self.actor, self.target_actor),
            (self.critic, self.target_critic),
        ):
            for p, q in zip(online.parameters(), target.parameters(), strict=True):
                q.data.copy_(q.data * (1.0 - self.tau) + p.data * self.tau)
