"""Evolves a policy by CMA-ES: ask for vectors, play an episode of each, tell the returns.

pip install cma
python examples/evolve_cma.py [generations]
"""

import sys

import cma
import numpy as np

import pyfastenv
from pyfastenv.sampling.population import evaluate_population

POPULATION, EPISODES = 64, 4


def evolve(generations: int, seed: int = 1) -> list[float]:
    """Returns the best mean return of each generation."""
    envs = pyfastenv.make_vec(
        "InvertedDoublePendulum-v5", POPULATION * EPISODES, autoreset_mode="SameStep"
    )
    sizes = (envs.obs_size, envs.single_action_space.shape[0])
    num_weights = sizes[0] * sizes[1] + sizes[1]
    strategy = cma.CMAEvolutionStrategy(
        np.zeros(num_weights), 0.5, {"popsize": POPULATION, "seed": seed, "verbose": -9}
    )
    best = []
    for generation in range(generations):
        vectors = strategy.ask()
        policies = pyfastenv.PolicySpec.of_vectors(vectors, sizes, distribution="deterministic")
        returns = evaluate_population(envs, policies, seed=generation * EPISODES).returns.mean(1)
        strategy.tell(vectors, -returns)
        best.append(float(returns.max()))
        if generation % 5 == 4 or generation == generations - 1:
            print(f"generation {generation + 1}: best {best[-1]:,.0f}, mean {returns.mean():,.0f}")
    envs.close()
    return best


if __name__ == "__main__":
    evolve(int(sys.argv[1]) if len(sys.argv) > 1 else 30)
