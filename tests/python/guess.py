"""A small algorithm that is not one, to drive what all algorithms share, and its rollouts."""

import types
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
import torch

import pyfastenv
from pyfastenv.nn.spans import span
from pyfastenv.runs.config import RunConfig
from pyfastenv.training.loop import RunResult, run


@dataclass(kw_only=True)
class Config(RunConfig):
    algorithm: ClassVar[str] = "guess"
    env_id: str = "CartPole-v1"
    num_envs: int = 3
    total_steps: int = 480
    eval_every: int = 120
    eval_episodes: int = 4
    checkpoint_every: int = 120
    loggers: tuple[str, ...] = ()
    quiet: bool = True
    learning_rate: float = 0.01
    hidden: tuple[int, ...] = (4, 2)


class Guess:
    """Draws from both random streams, steps environments, learns something of it."""

    def __init__(self, config: Config):
        self.global_step = 0
        self.envs = pyfastenv.make_vec(config.env_id, config.num_envs, num_threads=1)
        self.obs, _ = self.envs.reset(seed=config.seed)
        self.network = torch.nn.Linear(4, 2)
        self.optimiser = torch.optim.Adam(self.network.parameters(), config.learning_rate)
        self.generator = torch.Generator().manual_seed(config.seed)

    def iterate(self) -> dict[str, float]:
        total = 0.0
        for _ in range(8):
            with span("forward"), torch.no_grad():
                logits = self.network(torch.from_numpy(self.obs))
                noise = torch.rand(logits.shape, generator=self.generator) + torch.rand(())
                actions = (logits + noise).argmax(1).numpy()
            with span("env"):
                self.obs, rewards, *_ = self.envs.step(actions)
            total += float(rewards.sum())
        self.global_step += 8 * self.envs.num_envs
        with span("backward"):
            loss = self.network(torch.from_numpy(self.obs)).square().mean()
            self.optimiser.zero_grad()
            loss.backward()
        with span("optimiser"):
            self.optimiser.step()
        return {"loss/guess": float(loss.detach()), "train/return": total}

    def eval_policy(self) -> Any:
        return Policy(self.network.state_dict())

    def state_dict(self) -> dict[str, Any]:
        return {
            "global_step": self.global_step,
            "network": self.network.state_dict(),
            "optimiser": self.optimiser.state_dict(),
            "generator": self.generator.get_state(),
            "envs": self.envs.get_state(),
            "obs": self.obs,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.global_step = state["global_step"]
        self.network.load_state_dict(state["network"])
        self.optimiser.load_state_dict(state["optimiser"])
        self.generator.set_state(state["generator"])
        self.envs.set_state(state["envs"].numpy())
        self.obs = state["obs"].numpy()


class Policy:
    """A deterministic policy that (as it should not) draws from torch's generator."""

    def __init__(self, state: dict[str, Any]):
        self.weight, self.bias = state["weight"].clone(), state["bias"].clone()

    def __call__(self, obs: Any) -> Any:
        torch.rand(3)
        return (torch.from_numpy(obs) @ self.weight.T + self.bias).argmax(1).numpy()


def fake_rollout(envs: Any, policy: Any, num_steps: int, *, policy_id: Any = None) -> Any:
    """pyfastenv.rollout's episodes, for environments that have just been reset."""
    obs, _ = envs.reset() if num_steps == 1 else (np.zeros((envs.num_envs, 4), np.float32), None)
    returns, lengths = np.zeros(envs.num_envs), np.zeros(envs.num_envs, int)
    ended: list[tuple[int, int, float, int]] = []
    for step in range(num_steps):
        obs, rewards, terminations, truncations, _ = envs.step(policy(obs))
        returns += rewards
        lengths += 1
        for i in np.flatnonzero(terminations | truncations):
            ended.append((step, int(i), returns[i], int(lengths[i])))
            returns[i] = lengths[i] = 0
    return batch(ended)


def batch(ended: list[tuple[int, int, float, int]]) -> Any:
    columns = [torch.tensor([row[i] for row in sorted(ended)]) for i in range(4)]
    names = ("steps", "env_ids", "returns", "lengths")
    return types.SimpleNamespace(
        episodes=types.SimpleNamespace(**dict(zip(names, columns, strict=True)), infos={})
    )


def train(folder: Path, make: Any = Guess, **options: Any) -> RunResult:
    return run(make, Config(run_dir=folder, **options))


def stopping(at: int, action: Any) -> Any:
    """The algorithm, with something happening within the iteration that reaches step ``at``."""

    class Stopped(Guess):
        def iterate(self) -> dict[str, float]:
            metrics = super().iterate()
            if self.global_step == at:
                metrics |= action() or {}
            return metrics

    return Stopped


def die() -> None:
    raise RuntimeError("killed")


def train_killed(folder: Path, at: int, **options: Any) -> None:
    """A training that dies in the iteration that reaches step ``at``."""
    with pytest.raises(RuntimeError, match="killed"):
        train(folder, stopping(at, die), **options)
