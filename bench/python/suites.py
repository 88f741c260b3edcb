"""Suites beside EnvPool's environments of the same ids and dm_control itself: steps/s, in turn.

Writes bench/results/suites.json (machine, settings, every raw rate) and suites.md: for every id
each one's rate, the ratios of ours to theirs, and their geometric mean over the ids. EnvPool has a
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
from report import circumstances, mark

import pyfastenv
from pyfastenv.experiments import measure
from pyfastenv.experiments.tables import table

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
LEAST_TIMES_ENVPOOL = 3.0  # in the geometric mean of the ten
RIVALS = ("EnvPool", "dm_control")


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

    def run(step: Any, turns: Iterator[Any], count: int) -> int:
        step(next(turns))
        return count

    runs = {name: partial(run, step, cycle(each), n) for name, (step, each, n) in steps.items()}
    for each in runs.values():
        measure.rate(each, args.seconds / 4)  # warms up
    rates = measure.interleave(
        {name: partial(measure.rate, each, args.seconds) for name, each in runs.items()},
        args.rounds,
    )
    medians = {name: statistics.median(values) for name, values in rates.items()}
    stats = ours.stats()
    pool.close()
    ours.close()
    return {
        "env": env_id,
        "engine": stats["engine"],
        "engine_reason": stats["engine_reason"],
        "rates": rates,
        "medians": medians,
        "ratios": {name: medians["pyfastenv"] / medians[name] for name in RIVALS},
        "ratios_in_rounds": {
            name: measure.ratio(rates["pyfastenv"], rates[name]) for name in RIVALS
        },
    }


def markdown(result: dict[str, Any]) -> str:
    """One table."""
    rows = [
        [
            row["env"],
            row["engine"],
            *row["medians"].values(),
            *(f"{ratio:.2f}" for ratio in row["ratios"].values()),
            f"{row['ratios_in_rounds']['EnvPool']['q1']:.2f} to "
            f"{row['ratios_in_rounds']['EnvPool']['q3']:.2f}",
        ]
        for row in result["rows"]
    ]
    columns = ["id", "engine", "pyfastenv", "EnvPool", "dm_control"]
    columns += ["times EnvPool", "times dm_control", "times EnvPool in rounds"]
    mean = result["times_envpool"]
    return f"""# dm_control's tasks beside EnvPool's and dm_control itself

Written by `bench/python/suites.py` (`make bench-suites`); every raw rate is in suites.json.
{result["num_envs"]} environments on {result["threads"]} threads (dm_control: one), random \
actions, {result["rounds"]} rounds of {result["seconds_per_round"]} s in turn. Rates are
medians [steps/s], with the quotients of the medians; beside them the quartiles of the rounds' own.

{table(columns, rows)}

In the geometric mean {mean:.2f} times EnvPool {mark(mean >= LEAST_TIMES_ENVPOOL)}; \
at least {LEAST_TIMES_ENVPOOL} are wanted of these ten.

*{circumstances(result)}.*
"""


def main() -> None:
    """Measures and writes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--seconds", type=float, default=0.5, help="of one rate")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--num-envs", type=int, default=64)
    parser.add_argument("--ids", nargs="+", default=TEN)
    parser.add_argument("--output", type=Path, default=ROOT / "bench/results", help="a folder")
    args = parser.parse_args()
    rows = []
    for env_id in args.ids:
        rows.append(compare(env_id, args))
        rates = ", ".join(f"{name} {value:,.0f}" for name, value in rows[-1]["medians"].items())
        print(f"{env_id}: {rates}; {rows[-1]['ratios']['EnvPool']:.2f} times EnvPool", flush=True)
    mean = measure.geometric_mean([row["ratios"]["EnvPool"] for row in rows])
    print(f"{mean:.2f} times EnvPool in the geometric mean")
    result = {
        "machine": measure.machine(),
        "date": measure.today(),
        "threads": args.threads,
        "num_envs": args.num_envs,
        "rounds": args.rounds,
        "seconds_per_round": args.seconds,
        "times_envpool": mean,
        "rows": rows,
    }
    args.output.mkdir(parents=True, exist_ok=True)
    (args.output / "suites.json").write_text(json.dumps(result, indent=1) + "\n")
    (args.output / "suites.md").write_text(markdown(result))


if __name__ == "__main__":
    main()
