"""Cross-entropy search through dm_env: ``python examples/integration_dm_env.py [generations]``."""

import sys

import dm_env
import numpy as np

from pyfastenv.integrations.dm_env import make_dm_env


def episode_return(env: dm_env.Environment, weights: np.ndarray) -> float:
    """Plays one episode with a linear policy."""
    step, total = env.reset(), 0.0
    while not step.last():
        step = env.step(np.tanh(weights @ np.append(step.observation, 1.0)).astype(np.float32))
        total += step.reward
    return total


generations = int(sys.argv[1]) if len(sys.argv) > 1 else 30
env = make_dm_env("Hopper-v5", seed=0)
rng = np.random.default_rng(0)
shape = (*env.action_spec().shape, env.observation_spec().shape[0] + 1)
mean, spread = np.zeros(shape), np.ones(shape)
for generation in range(generations):
    population = mean + spread * rng.standard_normal((40, *shape))
    returns = np.array([episode_return(env, weights) for weights in population])
    elite = population[np.argsort(returns)[-8:]]
    mean, spread = elite.mean(axis=0), elite.std(axis=0) + 0.3 / (1 + generation / 10)
    print(f"generation {generation}: mean return {returns.mean():.0f}, best {returns.max():.0f}")
env.close()
