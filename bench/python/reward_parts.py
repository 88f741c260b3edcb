"""The parts of a trained policy's return: ``python bench/python/reward_parts.py NAME=RUN …``.

Greedy episodes, and the sums of the rewards' parts as the environment's infos have them, so that
versions of a robot can be told apart whose rewards differ in one of them. Writes into
docs/results/reward_parts.json, where runs of other names stay; docs/sac.md reports it.
"""

from __future__ import annotations

from pathlib import Path

import named_runs
import numpy as np

from pyfastenv.experiments import measure
from pyfastenv.runs.evaluation import make_eval_envs
from pyfastenv.runs.saved import load_policy


def reward_parts(name: str, run: Path, episodes: int) -> named_runs.Row:
    """Averages a run's greedy episodes: their length, their return and each part of it."""
    policy = load_policy(run)
    kwargs = {**policy.env_kwargs, "infos": True}
    sums: dict[str, float] = {"length": 0.0, "return": 0.0}
    for seed in range(episodes):
        with make_eval_envs(policy.config.env_id, kwargs, 1) as envs:
            obs, _ = envs.reset(seed=[seed])
            over = np.zeros(1, bool)
            while not over[0]:
                obs, rewards, terminated, truncated, infos = envs.step(policy.act(obs))
                over = terminated | truncated
                last = infos["final_info"] if over[0] else infos
                sums["length"] += 1
                sums["return"] += float(rewards[0])
                for key in last:
                    if key.startswith("reward_"):
                        sums[key] = sums.get(key, 0.0) + float(last[key][0])
    return {
        "name": name,
        "env_id": policy.config.env_id,
        "episodes": episodes,
        "machine": measure.machine(),
        **{key: value / episodes for key, value in sums.items()},
    }


if __name__ == "__main__":
    named_runs.main(__doc__, reward_parts, "docs/results/reward_parts.json")
