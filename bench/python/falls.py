"""Critics' values beside the returns that follow: ``python bench/python/falls.py NAME=RUN …``.

Of trained SAC or MBPO: greedy episodes, at each of their steps what the critics say and the
discounted return from there, by how long before a fall that is. Where the two agree, a policy that
falls is not told better by its critics: it is what the discount asks for. Writes into
docs/results/falls.json, where runs of other names stay; docs/mbpo.md reports it.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import named_runs
import numpy as np
import torch

from pyfastenv.algorithms import mbpo, sac
from pyfastenv.experiments import measure
from pyfastenv.runs import checkpoint
from pyfastenv.runs.evaluation import make_eval_envs
from pyfastenv.runs.saved import SavedPolicy, load_policy

BEFORE = (1, 10, 20, 40, 80, 120, 200, 300, 1_001)  # steps before a fall, from each to the next
ALGORITHMS = {"sac": (sac.SAC, sac.Config), "mbpo": (mbpo.MBPO, mbpo.Config)}


def restored(run: Path) -> Any:
    """The algorithm as its newest checkpoint has it."""
    saved = checkpoint.load(checkpoint.resolve(run))
    algorithm, config = ALGORITHMS[saved["algorithm"]]
    options = replace(config.from_dict(saved["config"]), num_threads=1, torch_threads=1)
    return algorithm(options, restore=saved["ranks"][0]["algorithm"])


@torch.no_grad()
def episode(algorithm: Any, policy: SavedPolicy, seed: int) -> tuple[list[Any], bool]:
    """Value and reward of each step of a greedy episode; whether it ended with a fall."""
    critic, box = algorithm.learner.critic, algorithm.collector.actions
    with make_eval_envs(policy.config.env_id, policy.env_kwargs, 1) as envs:
        obs, _ = envs.reset(seed=[seed])
        steps: list[tuple[float, float]] = []
        while True:
            actions = policy.act(obs)
            seen = torch.as_tensor(obs, dtype=torch.float32)[None]
            unit = box.to_unit(torch.from_numpy(actions))[None]
            value = float(sac.twin_values(critic, seen, unit).amin())
            obs, rewards, terminated, truncated, _ = envs.step(actions)
            steps.append((value, float(rewards[0])))
            if terminated[0] or truncated[0]:
                return steps, bool(terminated[0])


def falls(name: str, run: Path, episodes: int) -> named_runs.Row:
    """Averages a run's values and returns by the time that is left before a fall."""
    algorithm, policy = restored(run), load_policy(run)
    gamma = algorithm.config.discount(algorithm.global_step)
    lengths, returns, points = [], [], []
    for seed in range(episodes):
        steps, fell = episode(algorithm, policy, seed)
        lengths.append(len(steps))
        returns.append(sum(reward for _, reward in steps))
        if not fell:  # what would have come nobody knows
            continue
        to_go = 0.0
        for left, (value, reward) in enumerate(reversed(steps), 1):
            to_go = reward + gamma * to_go
            points.append((left, value, to_go, reward))
    algorithm.envs.close()
    table = []
    columns = np.array(points).reshape(-1, 4)
    for begin, end in pairwise(BEFORE):
        mine = columns[(columns[:, 0] >= begin) & (columns[:, 0] < end)]
        if len(mine):
            _, value, to_go, reward = mine.mean(0)
            table.append([begin, end - 1, float(value), float(to_go), float(reward), len(mine)])
    return {
        "name": name,
        "env_id": algorithm.config.env_id,
        "gamma": gamma,
        "steps": algorithm.global_step,
        "episodes": episodes,
        "length": float(np.mean(lengths)),
        "return": float(np.mean(returns)),
        "machine": measure.machine(),
        # steps before a fall: first, last; value, discounted return, reward; number
        "before_a_fall": table,
    }


if __name__ == "__main__":
    named_runs.main(__doc__, falls, "docs/results/falls.json")
