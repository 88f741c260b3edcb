"""Suites beside EnvPool's environments of the same ids and dm_control itself: steps/s, in turn.

Writes bench/results/suites.json: for every id the median rate of each, the median of the rounds'
quotients (ours / EnvPool's) with their spread, and the geometric mean over the ids. EnvPool has a
MuJoCo of its own; dm_control runs one environment, as it does.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from collections.abc import Iterator
from functools import partial
from itertools import cycle
from pathlib import Path
from typing import Any

import numpy as np

import pyfastenv
from pyfastenv.experiments import measure

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tests" / "python"))
TEN = [
    "AcrobotSwingup-v1",
    "CartpoleSwingup-v1",
    "CheetahRun-v1",
    "FingerSpin-v1",
    "FishSwim-v1",
    "HopperHop-v1",
    "HumanoidWalk-v1",
    "QuadrupedWalk-v1",
    "ReacherEasy-v1",
    "WalkerWalk-v1",
]


def compare(env_id: str, args: argparse.Namespace) -> dict[str, Any]:
    """Rounds of ours, EnvPool and dm_control, each round beginning with the next one."""
    import envpool
    from dm_control_suite import load

    ours = pyfastenv.make_vec(env_id, args.num_envs, num_threads=args.threads)
    pool: Any = envpool.make(
        env_id, env_type="gymnasium", num_envs=args.num_envs, num_threads=args.threads, seed=0
    )
    single = load(env_id)
    space, rng = ours.single_action_space, np.random.default_rng(0)
    shape = (args.num_envs, *space.shape)
    batches = [rng.uniform(space.low, space.high, shape) for _ in range(64)]
    steps = {
        "pyfastenv": (ours.step, batches, args.num_envs),
        "EnvPool": (pool.step, batches, args.num_envs),
        "dm_control": (single.step, [batch[0] for batch in batches], 1),
    }
    ours.reset(seed=0), pool.reset(), single.reset()
    for step, actions, _ in steps.values():
        step(actions[0])

    def run(step: Any, turns: Iterator[Any], count: int) -> int:
        step(next(turns))
        return count

    runs = {name: partial(run, step, cycle(each), n) for name, (step, each, n) in steps.items()}
    rates = measure.interleave(
        {name: partial(measure.rate, each, args.seconds) for name, each in runs.items()},
        args.rounds,
    )
    result: dict[str, Any] = {"env": env_id, "engine_reason": ours.stats()["engine_reason"]}
    result["rates"] = {name: statistics.median(values) for name, values in rates.items()}
    for rival in ("EnvPool", "dm_control"):
        pairs = zip(rates["pyfastenv"], rates[rival], strict=True)
        quotients = sorted(mine / theirs for mine, theirs in pairs)
        result[rival] = {
            "quotient": statistics.median(quotients),
            "spread": [quotients[0], quotients[-1]],
        }
    pool.close()
    ours.close()
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--seconds", type=float, default=0.5)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--num-envs", type=int, default=64)
    parser.add_argument("--ids", nargs="+", default=TEN)
    parser.add_argument("--output", type=Path, default=ROOT / "bench/results/suites.json")
    args = parser.parse_args()
    rows = []
    for env_id in args.ids:
        rows.append(compare(env_id, args))
        rates = ", ".join(f"{name} {value:,.0f}" for name, value in rows[-1]["rates"].items())
        print(f"{env_id}: {rates}; {rows[-1]['EnvPool']['quotient']:.2f} times EnvPool", flush=True)
    mean = measure.geometric_mean([row["EnvPool"]["quotient"] for row in rows])
    print(f"{mean:.2f} times EnvPool in the geometric mean")
    report = {
        "machine": measure.machine(),
        "threads": args.threads,
        "num_envs": args.num_envs,
        "rounds": args.rounds,
        "seconds_per_round": args.seconds,
        "times_envpool": mean,
        "rows": rows,
    }
    args.output.write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main()
