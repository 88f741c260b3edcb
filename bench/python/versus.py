"""Two builds of pyfastenv in turn: did a change cost speed?

    python bench/python/versus.py BEFORE_PYTHON AFTER_PYTHON [--rounds 7]

Each argument is the interpreter of an environment with a build in it. Every round starts both
anew, one after the other, and measures steps/s with two threads and the share of the bare
``mj_step`` loop in the same process. Writes bench/results/versus.json
and prints medians and the ratio of medians.
"""

from __future__ import annotations

import argparse
import json
import platform
import statistics
import subprocess
import sys
from pathlib import Path

CASES = [
    (env_id, num_envs)
    for env_id in ("HalfCheetah-v5", "Ant-v5", "Humanoid-v5")
    for num_envs in (8, 64, 1024)
] + [("CartPole-v1", 8), ("CartPole-v1", 64), ("CartPole-v1", 1024)]

# Runs in either build; the older one keeps the models' folder elsewhere.
MEASURE = """
import json, sys, time
import numpy as np
import pyfastenv
from pyfastenv import _core
try:
    from pyfastenv.vector.specs import assets_dir
except ImportError:
    from pyfastenv.specs import assets_dir

def rate(env_id, num_envs, seconds=0.5):
    envs = pyfastenv.make_vec(env_id, num_envs, num_threads=2)
    envs.reset(seed=0)
    envs.action_space.seed(0)
    actions = [envs.action_space.sample() for _ in range(16)]
    steps, best = 0, []
    for _ in range(3):
        start, steps = time.perf_counter(), 0
        while time.perf_counter() - start < seconds / 3:
            for action in actions:
                envs.step(action)
            steps += len(actions)
        best.append(steps * num_envs / (time.perf_counter() - start))
    envs.close()
    return float(np.median(best))

def limit(env_id, num_envs):
    envs = pyfastenv.make_vec(env_id, 1)
    size = envs.single_action_space.shape[0]
    low, high = envs.single_action_space.low, envs.single_action_space.high
    num_steps = max(20, 4000 // num_envs)
    actions = np.random.default_rng(0).uniform(low, high, (num_steps, num_envs, size))
    return _core.physics_limit(env_id=env_id, assets_dir=str(assets_dir()),
                               actions=actions.astype(np.float32), num_threads=2)

out = {}
for env_id, num_envs in json.loads(sys.argv[1]):
    row = {"rate": rate(env_id, num_envs)}
    if not env_id.startswith("CartPole"):
        row["limit"] = limit(env_id, num_envs)
        row["rate"] = (row["rate"] + rate(env_id, num_envs)) / 2  # around the limit, in turn
    out[f"{env_id} x {num_envs}"] = row
print(json.dumps(out))
"""


def measure(python: str) -> dict[str, dict[str, float]]:
    done = subprocess.run(
        [python, "-c", MEASURE, json.dumps(CASES)], capture_output=True, text=True, check=True
    )
    rows: dict[str, dict[str, float]] = json.loads(done.stdout)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("before")
    parser.add_argument("after")
    parser.add_argument("--rounds", type=int, default=7)
    arguments = parser.parse_args()
    runs: dict[str, list[dict[str, dict[str, float]]]] = {"before": [], "after": []}
    for _ in range(arguments.rounds):
        for name in runs:
            runs[name].append(measure(getattr(arguments, name)))
    result: dict[str, dict[str, float | None]] = {}
    for env_id, num_envs in CASES:
        case = f"{env_id} x {num_envs}"
        row: dict[str, float | None] = {}
        for name, rounds in runs.items():
            rates = [run[case]["rate"] for run in rounds]
            row[f"{name}_rate"] = statistics.median(rates)
            shares = [
                run[case]["rate"] / run[case]["limit"] for run in rounds if "limit" in run[case]
            ]
            row[f"{name}_share"] = statistics.median(shares) if shares else None
        before, after = row["before_rate"], row["after_rate"]
        assert before is not None and after is not None
        row["ratio"] = after / before
        result[case] = row
        shares_text = "".join(
            f"  {name} {share:.3f} of the limit"
            for name in runs
            if (share := row[f"{name}_share"]) is not None
        )
        print(f"{case:24} {before:12,.0f} -> {after:12,.0f}  x {after / before:.3f}{shares_text}")
    target = Path(__file__).parents[1] / "results" / "versus.json"
    target.write_text(
        json.dumps(
            {
                "machine": f"{platform.processor() or platform.machine()}, 2 threads",
                "python": sys.version.split()[0],
                "rounds": arguments.rounds,
                "cases": result,
            },
            indent=1,
        )
        + "\n"
    )


if __name__ == "__main__":
    main()
