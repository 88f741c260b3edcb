"""PPO and DDPG as a public textbook programs them, to measure against.

Written anew after the description in document 001: one gymnasium environment, a policy call in
torch per step, transitions in Python lists, plain autograd. It samples and learns where a placement
says, moving networks to and fro as the document does. Its faults are kept: a time limit counts as
an end, and by default every episode starts in the same state. Knows nothing of ours.
"""

from __future__ import annotations

import copy
import random
import time
import warnings
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import gymnasium
import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from pyfastenv.experiments.baselines.plain import descend, follow, mlp

Array = NDArray[Any]
Trajectory = dict[str, Any]
POOL_SIZE = 4  # latest trajectories in the pool; the document does not say how many its own held


@dataclass(frozen=True)
class Placement:
    """Where the policy acts, and where policy and critic learn: devices."""

    act: str = "cpu"
    actor: str = "cpu"
    critic: str = "cpu"
    copies: bool = False  # a second network acts, copied each time; else the network itself moves
    side_by_side: bool = False  # policy and critic learn in two threads

    @property
    def needs_cuda(self) -> bool:
        """Whether one of them is a GPU."""
        return "cuda" in (self.act, self.actor, self.critic)


PLACEMENTS = {
    "cpu": Placement(),
    "cpu, a copy acts": Placement(copies=True),
    "cpu, actor beside critic": Placement(side_by_side=True),
    "cuda": Placement("cuda", "cuda", "cuda"),
    "sample-cpu": Placement("cpu", "cuda", "cuda"),
    "actor cpu, critic cuda": Placement("cpu", "cpu", "cuda"),
}


@dataclass
class Run:
    """The results of a training, and where its time went [s]."""

    returns: list[float] = field(default_factory=list)  # of each episode
    seconds: list[float] = field(default_factory=list)  # since the start, at each episode's end
    env_steps: int = 0
    updates: int = 0  # PPO: ten passes over one trajectory (or the pool); DDPG: one minibatch
    sample_s: float = 0.0  # acting and stepping
    update_s: float = 0.0
    copy_s: float = 0.0  # networks that move


class Textbook:
    """The base of both trainers: devices, clocks and the environment.

    Args:
        env_id: gymnasium's.
        placement: A name in :data:`PLACEMENTS`.
        copy_every: So many episodes (PPO) or steps (DDPG) are sampled with one copy of the policy,
            then as many updates follow.
        fixed_start: Every episode begins with ``reset(seed=0)``; else only the first is seeded.
        seed: Of networks, actions and (unless ``fixed_start``) environment.
    """

    gamma = 0.98

    def __init__(
        self,
        env_id: str,
        *,
        placement: str = "cpu",
        copy_every: int = 1,
        fixed_start: bool = True,
        seed: int = 0,
    ):
        torch.manual_seed(seed)
        random.seed(seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # v0 is what the document has
            self.env: gymnasium.Env[Any, Any] = gymnasium.make(env_id)
        self.env.reset(seed=seed)
        self.placement = PLACEMENTS[placement]
        self.copy_every, self.fixed_start = copy_every, fixed_start
        self.run = Run()
        self.actor: nn.Module
        self._acting: nn.Module | None = None
        self._began = time.perf_counter()

    def reset(self) -> Array:
        """The first observation of an episode."""
        obs: Array = self.env.reset(seed=0 if self.fixed_start else None)[0]
        return obs

    def ended(self, episode_return: float) -> None:
        """Notes an episode."""
        self.run.returns.append(episode_return)
        self.run.seconds.append(time.perf_counter() - self._began)

    @contextmanager
    def clock(self, name: str) -> Iterator[None]:
        """Adds the block's time to ``run.<name>``."""
        began = time.perf_counter()
        yield
        if self.placement.needs_cuda:
            torch.cuda.synchronize()
        setattr(self.run, name, getattr(self.run, name) + time.perf_counter() - began)

    @contextmanager
    def sampling(self) -> Iterator[nn.Module]:
        """Gives the policy to where it acts, and back afterwards; counts the time of both."""
        place = self.placement
        with self.clock("copy_s"):
            if place.copies:
                self._acting = self._acting or copy.deepcopy(self.actor)
                self._acting.load_state_dict(self.actor.state_dict())
            elif place.act != place.actor:
                self.actor.to(place.act)
        with self.clock("sample_s"):
            yield self._acting or self.actor
        if place.act != place.actor:
            with self.clock("copy_s"):
                self.actor.to(place.actor)


def _tensor(values: Any, device: str) -> Tensor:
    return torch.tensor(np.asarray(values), dtype=torch.float32).to(device)


class TextbookPPO(Textbook):
    """PPO on discrete actions: an update after each episode, actor lr 1e-3, critic lr 1e-2.

    Args:
        hidden_sizes: Of policy and value network each.
        env_id: gymnasium's.
        pool_size: Each update is on the latest so many trajectories (the trajectory pool).
        length: Every episode has so many steps, going on in a new one if it ends: as much work
            whatever has been learned. None: as long as it lasts.
        **options: :class:`Textbook`'s.
    """

    lmbda, epochs, clip = 0.95, 10, 0.2

    def __init__(
        self,
        hidden_sizes: Sequence[int],
        *,
        env_id: str = "CartPole-v0",
        pool_size: int = 1,
        length: int | None = None,
        **options: Any,
    ):
        super().__init__(env_id, **options)
        inputs, num_actions = self.env.observation_space.shape[0], self.env.action_space.n  # type: ignore[index, attr-defined]
        self.actor = mlp(inputs, *hidden_sizes, int(num_actions)).to(self.placement.actor)
        self.critic = mlp(inputs, *hidden_sizes, 1).to(self.placement.critic)
        self.actor_optimizer = torch.optim.Adam(self.actor.parameters(), lr=1e-3)
        self.critic_optimizer = torch.optim.Adam(self.critic.parameters(), lr=1e-2)
        self.pool: deque[Trajectory] = deque(maxlen=pool_size)
        self.length = length

    def train(self, num_episodes: int) -> Run:
        """Trains for so many episodes."""
        self._began = time.perf_counter()
        with ThreadPoolExecutor(1) as beside:
            while len(self.run.returns) < num_episodes:
                count = min(self.copy_every, num_episodes - len(self.run.returns))
                with self.sampling() as policy:
                    trajectories = [self._episode(policy) for _ in range(count)]
                with self.clock("update_s"):
                    for trajectory in trajectories:
                        self._prepare(trajectory)
                    for trajectory in trajectories:
                        self.pool.append(trajectory)
                        self._update(beside)
                self.run.updates += count
        self.run.seconds[-1] = time.perf_counter() - self._began
        return self.run

    def _episode(self, policy: nn.Module) -> Trajectory:
        names = ("states", "actions", "next_states", "rewards", "dones")
        trajectory: Trajectory = {name: [] for name in names}
        state, ended = self.reset(), False
        while not ended:
            probs = torch.softmax(policy(_tensor([state], self.placement.act)), dim=1)
            action = int(torch.distributions.Categorical(probs).sample().item())
            next_state, reward, terminated, truncated, _ = self.env.step(action)
            done = ended = terminated or truncated
            for name, value in zip(names, (state, action, next_state, reward, done), strict=True):
                trajectory[name].append(value)
            state = next_state
            if self.length is not None:
                ended = len(trajectory["dones"]) == self.length
                state = self.reset() if done else state
        self.run.env_steps += len(trajectory["rewards"])
        self.ended(float(np.sum(trajectory["rewards"])))
        return trajectory

    def _prepare(self, trajectory: Trajectory) -> None:
        """Makes tensors of the lists, and keeps the probabilities that the actions had."""
        for name, values in trajectory.items():
            trajectory[name] = _tensor(values, self.placement.critic)
        with torch.no_grad():
            trajectory["log_probs"] = self._log_probs(trajectory)

    def _log_probs(self, batch: Trajectory) -> Tensor:
        states, actions = (batch[name].to(self.placement.actor) for name in ("states", "actions"))
        return torch.log_softmax(self.actor(states), dim=1).gather(1, actions.long().view(-1, 1))

    def _update(self, beside: ThreadPoolExecutor) -> None:
        batches = [self._with_advantages(trajectory) for trajectory in self.pool]
        names = ("states", "actions", "log_probs", "target", "advantage")
        batch = {name: torch.cat([each[name] for each in batches]) for name in names}
        if self.placement.side_by_side:
            critic = beside.submit(self._improve_critic, batch)
            self._improve_actor(batch)
            critic.result()
        else:
            self._improve_actor(batch)
            self._improve_critic(batch)

    def _improve_actor(self, batch: Trajectory) -> None:
        advantage = batch["advantage"]
        for _ in range(self.epochs):
            ratio = torch.exp(self._log_probs(batch) - batch["log_probs"])
            clipped = torch.clamp(ratio, 1.0 - self.clip, 1.0 + self.clip)
            loss = -torch.min(ratio * advantage, clipped * advantage).mean()
            descend(self.actor_optimizer, loss)

    def _improve_critic(self, batch: Trajectory) -> None:
        for _ in range(self.epochs):
            loss = nn.functional.mse_loss(self.critic(batch["states"]), batch["target"])
            descend(self.critic_optimizer, loss)

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
        made = _tensor(advantages[::-1], self.placement.actor)
        return trajectory | {"target": target, "advantage": made}


class TextbookDDPG(Textbook):
    """DDPG: a minibatch after each step, lr 3e-4 and 3e-3, replay of 10,000 tuples.

    Args:
        hidden_sizes: Of policy and critic each.
        env_id: gymnasium's.
        minimum: Transitions before learning begins.
        **options: :class:`Textbook`'s.
    """

    sigma, batch_size, capacity = 0.01, 64, 10_000

    def __init__(
        self,
        hidden_sizes: Sequence[int],
        *,
        env_id: str = "Pendulum-v1",
        minimum: int = 1_000,
        **options: Any,
    ):
        super().__init__(env_id, **options)
        inputs, box = self.env.observation_space.shape[0], self.env.action_space  # type: ignore[index]
        assert isinstance(box, gymnasium.spaces.Box)
        self.bound, outputs = float(box.high[0]), box.shape[0]
        self.actor = mlp(inputs, *hidden_sizes, outputs).to(self.placement.actor)
        self.critic = mlp(inputs + outputs, *hidden_sizes, 1).to(self.placement.critic)
        self.target_actor = copy.deepcopy(self.actor)
        self.target_critic = copy.deepcopy(self.critic)
        self.actor_optimizer = torch.optim.Adam(self.actor.parameters(), lr=3e-4)
        self.critic_optimizer = torch.optim.Adam(self.critic.parameters(), lr=3e-3)
        self.minimum = minimum
        self.replay: deque[tuple[Any, ...]] = deque(maxlen=self.capacity)
        self.noise = np.random.default_rng(options.get("seed", 0))

    def train(self, num_episodes: int) -> Run:
        """Trains for so many episodes."""
        self._began = time.perf_counter()
        state, episode_return = self.reset(), 0.0
        while len(self.run.returns) < num_episodes:
            with self.sampling() as policy:
                for _ in range(self.copy_every):
                    action = self._take_action(policy, state)
                    next_state, reward, terminated, truncated, _ = self.env.step(action)
                    done = terminated or truncated
                    self.replay.append((state, action, float(reward), next_state, done))
                    state = next_state
                    episode_return += float(reward)
                    self.run.env_steps += 1
                    if done:
                        self.ended(episode_return)
                        state, episode_return = self.reset(), 0.0
            if len(self.replay) > self.minimum:
                with self.clock("update_s"):
                    for _ in range(self.copy_every):
                        self._update()
                self.run.updates += self.copy_every
        self.run.seconds[-1] = time.perf_counter() - self._began
        return self.run

    def _take_action(self, policy: nn.Module, state: Array) -> Array:
        action = torch.tanh(policy(_tensor([state], self.placement.act))) * self.bound
        noisy: Array = action[0].detach().cpu().numpy() + self.sigma * self.noise.normal(size=1)
        return noisy

    def _act(self, actor: nn.Module, states: Tensor) -> Tensor:
        """Actions where the critic wants them."""
        actions: Tensor = torch.tanh(actor(states.to(self.placement.actor))) * self.bound
        return actions.to(self.placement.critic)

    def _update(self) -> None:
        columns = zip(*random.sample(self.replay, self.batch_size), strict=True)
        states, actions, rewards, next_states, dones = (
            _tensor(np.array(column), self.placement.critic) for column in columns
        )
        next_actions = self._act(self.target_actor, next_states)
        next_values = self.target_critic(torch.cat((next_states, next_actions), 1))
        targets = rewards.view(-1, 1) + self.gamma * next_values * (1 - dones.view(-1, 1))
        values = self.critic(torch.cat((states, actions), 1))
        descend(self.critic_optimizer, nn.functional.mse_loss(values, targets.detach()))
        policy_values = self.critic(torch.cat((states, self._act(self.actor, states)), 1))
        descend(self.actor_optimizer, -policy_values.mean())
        follow(self.target_actor, self.actor)
        follow(self.target_critic, self.critic)
