"""What PPO learns in a million steps: ``python bench/python/learn.py [--seeds 3] [--env-ids …]``.

Trains every MuJoCo v5 environment with its preset and writes docs/results/ppo.json and ppo.md. What
is in the JSON already is not run again, so an interrupted run goes on.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

import numpy as np
import policies
import torch

import pyfastenv
from pyfastenv.algorithms.ppo import PPO, Config
from pyfastenv.experiments import measure
from pyfastenv.experiments.tables import table
from pyfastenv.training.evaluation import evaluate

TOTAL_STEPS = 1_000_000
EVAL_EPISODES = 20
# how a run's seed gives its environments theirs; older runs gave environment i seed + i
SEEDING = "spawned"
ENV_IDS = (
    "HalfCheetah-v5",
    "Hopper-v5",
    "Walker2d-v5",
    "Ant-v5",
    "Humanoid-v5",
    "Swimmer-v5",
    "Reacher-v5",
    "Pusher-v5",
    "InvertedPendulum-v5",
    "InvertedDoublePendulum-v5",
    "HumanoidStandup-v5",
)
# others' figures after 1M steps, from their pages: CleanRL v4, SB3 zoo v3 (tuned), Tianshou v3
OTHERS = {
    "HalfCheetah-v5": ("1443 ± 46", "5819 ± 664", "5784 ± 1244"),
    "Hopper-v5": ("2383 ± 272", "2410 ± 10", "2609 ± 701"),
    "Walker2d-v5": ("2288 ± 572", "3479 ± 822", "3589 ± 757"),
    "Ant-v5": ("", "1327 ± 452", "3258 ± 1079"),
    "Humanoid-v5": ("716 ± 49", "", "787 ± 194"),
    "Swimmer-v5": ("", "282 ± 10", "67 ± 99"),
    "Reacher-v5": ("", "", "−4.1"),
    "InvertedPendulum-v5": ("963 ± 22", "", "1000"),
    "InvertedDoublePendulum-v5": ("", "", "9231 ± 270"),
}


def learn(env_id: str, seed: int, output: Path) -> dict[str, Any]:
    """Trains once; greedy evaluation, the last 100 training episodes, and the curve.

    The first seed's policy is kept (docs/results/policies).
    """
    config = Config.preset(env_id, seed=seed, total_steps=TOTAL_STEPS)
    ppo = PPO(config)
    start = time.perf_counter()
    returns: list[float] = []
    curve = []
    while ppo.global_step < TOTAL_STEPS:
        ppo.iterate()
        assert ppo.episodes is not None
        returns += ppo.episodes.returns.tolist()
        if returns and ppo.global_step // 50_000 > (len(curve)):
            curve.append([ppo.global_step, float(np.mean(returns[-20:]))])
    seconds = time.perf_counter() - start
    envs = pyfastenv.make_vec(env_id, 10, autoreset_mode="SameStep")
    greedy = evaluate(envs, ppo.eval_policy(), EVAL_EPISODES, seed=seed)
    envs.close()
    ppo.envs.close()
    if seed == 1:
        policies.save(ppo.policy_spec(), env_id, output / "policies")
    return {
        "env_id": env_id,
        "seed": seed,
        "seeding": SEEDING,
        "steps": ppo.global_step,
        "seconds": round(seconds, 1),
        "greedy_return": float(greedy.returns.mean()),
        "greedy_returns": greedy.returns.tolist(),
        "train_return": float(np.mean(returns[-100:])),
        "curve": curve,
        "config": config.to_dict(),
    }


def markdown(results: dict[str, Any]) -> str:
    """The table."""
    lines = [
        "# PPO after a million steps",
        "",
        "Written by `python bench/python/learn.py`; every run, its settings and its curve are in",
        "ppo.json. Settings: the defaults of `pyfastenv train ppo --env-id …`, presets included.",
        "Mean ± standard deviation over seeds of each seed's mean: *greedy* of "
        f"{EVAL_EPISODES} episodes",
        "without exploration at the end, *training* of the last 100 episodes with it. The others'",
        "figures are from their own pages, for the v4 and v3 environments and with their own",
        "evaluation.",
        "",
        *_overlap(results),
    ]
    cells_of: list[tuple[str, ...]] = []
    for env_id in ENV_IDS:
        rows = [row for row in results["runs"] if row["env_id"] == env_id]
        if not rows:
            continue
        cells = [env_id, str(len(rows))]
        for name in ("greedy_return", "train_return"):
            values = [row[name] for row in rows]
            digits = 1 if abs(np.mean(values)) < 100 else 0
            cells.append(f"{np.mean(values):,.{digits}f} ± {np.std(values):,.{digits}f}")
        cells_of.append((*cells, *OTHERS.get(env_id, ("", "", ""))))
    columns = "environment", "seeds", "greedy", "training", "CleanRL", "SB3 zoo (tuned)", "Tianshou"
    lines.append(table(columns, cells_of))
    machine = results["machine"]
    lines += ["", f"*{machine['cpu']}, {machine['cpus_available']} CPUs; a shared machine*", ""]
    return "\n".join(lines)


def _overlap(results: dict[str, Any]) -> list[str]:
    """What is to be said of runs whose seeds share environments."""
    if all(run.get("seeding") == SEEDING for run in results["runs"]):
        return []
    return [
        "**The seeds of these runs overlap**: environment i of seed s began from s + i, so the",
        "runs of seeds 1, 2 and 3 share all but two of their environments' random streams, and the",
        "deviations over seeds are too small. Since then each run has streams of its own",
        "(pyfastenv/training/seeds.py); the table is to be measured again.",
        "",
    ]


def main() -> None:
    """The program."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--env-ids", default=",".join(ENV_IDS), help="comma-separated")
    parser.add_argument("--output", type=Path, default=Path(__file__).parents[2] / "docs/results")
    args = parser.parse_args()
    torch.set_num_threads(1)
    args.output.mkdir(parents=True, exist_ok=True)
    path = args.output / "ppo.json"
    results = json.loads(path.read_text()) if path.exists() else {"runs": []}
    results["machine"] = measure.machine()
    for seed in range(1, args.seeds + 1):
        for env_id in args.env_ids.split(","):
            if any(
                (r["env_id"], r["seed"], r.get("seeding")) == (env_id, seed, SEEDING)
                for r in results["runs"]
            ):
                continue
            run = learn(env_id, seed, args.output)
            print(
                f"{env_id} seed {seed}: greedy {run['greedy_return']:,.1f}, training "
                f"{run['train_return']:,.1f}, {run['seconds']:.0f} s",
                flush=True,
            )
            # in place of an older one whose seeds overlapped with others'
            results["runs"] = [
                row for row in results["runs"] if (row["env_id"], row["seed"]) != (env_id, seed)
            ]
            results["runs"].append(run)
            path.write_text(json.dumps(results, indent=1) + "\n")
            (args.output / "ppo.md").write_text(markdown(results))


if __name__ == "__main__":
    main()
