"""Datasets as Minari would give them, for tests of what learns offline; needs no Minari."""

from functools import cache
from types import SimpleNamespace
from typing import Any

import gymnasium
import numpy as np

from pyfastenv.tasks.pool.env import make_limited


def swing_up(obs: Any, rng: np.random.Generator) -> Any:
    """Pendulum-v1's action: swings while it hangs, holds what stands; with noise."""
    angle, speed = np.arctan2(obs[1], obs[0]), obs[2]
    energy = speed * speed / 2.0 + 15.0 * (np.cos(angle) - 1.0)
    action = -10.0 * angle - 2.0 * speed if abs(angle) < 0.6 else np.sign(-energy * speed)
    return np.clip(2.0 * action + rng.normal(0.0, 0.4, 1), -2.0, 2.0).astype(np.float32)


@cache
def dataset_of(env_id: str) -> SimpleNamespace:
    """A few episodes; stands for ``minari.load_dataset``."""
    env = (make_limited if ":" in env_id else gymnasium.make)(env_id)
    rng = np.random.default_rng(0)
    env.action_space.seed(0)
    pendulum = env_id == "Pendulum-v1"
    episodes = [
        _play(env, i, lambda obs: swing_up(obs, rng) if pendulum else env.action_space.sample())
        for i in range(10)
    ]
    return SimpleNamespace(
        observation_space=env.observation_space,
        action_space=env.action_space,
        iterate_episodes=lambda: iter(episodes),
    )


def _play(env: Any, seed: int, act: Any) -> SimpleNamespace:
    obs, _ = env.reset(seed=seed)
    observations, steps, over = [obs], [], False
    while not over:
        action = act(obs)
        obs, reward, terminated, truncated, _ = env.step(action)
        over = terminated or truncated
        observations.append(obs)
        steps.append((action, reward, terminated, truncated))
    names = ("actions", "rewards", "terminations", "truncations")
    columns = dict(zip(names, map(np.array, zip(*steps, strict=True)), strict=True))
    seen: Any = np.array(observations)
    if isinstance(obs, dict):
        seen = {name: np.array([each[name] for each in observations]) for name in obs}
    return SimpleNamespace(observations=seen, **columns)
