"""Suites beside EnvPool's environments of the same ids and dm_control itself: steps/s, in turn.

``ten`` are ten tasks of dm_control's, beside EnvPool and dm_control; ``rest`` are all others of
dm_control's and gymnasium-robotics' that EnvPool has too. Writes bench/results/suites_ten.json
(machine, settings, every raw rate) and suites_ten.md, or suites_rest: for every id each one's rate,
the ratios of ours to theirs, and their geometric mean over the ids. EnvPool has a MuJoCo of its
own; dm_control runs one environment, as it does.
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
from typing import Any, NamedTuple

import numpy as np
from report import circumstances, mark

import pyfastenv
from pyfastenv.experiments import measure
from pyfastenv.experiments.tables import table
from pyfastenv.suites import DM_CONTROL, robotics_ids

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


class Contest(NamedTuple):
    """Which ids are compared with whom, and what is wanted."""

    title: str
    rivals: tuple[str, ...]
    least_times_envpool: float  # in the geometric mean


CONTESTS = {
    "ten": Contest(
        "Ten of dm_control's tasks beside EnvPool's and dm_control itself",
        ("EnvPool", "dm_control"),
        3.0,
    ),
    "rest": Contest(
        "dm_control's other tasks and gymnasium-robotics' beside EnvPool's", ("EnvPool",), 1.3
    ),
}


def ids_of(which: str) -> list[str]:
    """The tasks to measure."""
    import envpool

    if which == "ten":
        return TEN
    theirs = set(envpool.list_all_envs())
    ours = (*DM_CONTROL, *robotics_ids())
    return [env_id for env_id in ours if env_id in theirs and env_id not in TEN]


def compare(env_id: str, args: argparse.Namespace) -> dict[str, Any]:
    """Rounds of ours and the rivals, each round beginning with the next one."""
    import envpool

    ours = pyfastenv.make_vec(env_id, args.num_envs, num_threads=args.threads)
    pool: Any = envpool.make(
        env_id, env_type="gymnasium", num_envs=args.num_envs, num_threads=args.threads, seed=0
    )
    space, rng = ours.single_action_space, np.random.default_rng(0)
    shape = (args.num_envs, *space.shape)
    # LQR's have no bounds
    low, high = (np.nan_to_num(each, posinf=1.0, neginf=-1.0) for each in (space.low, space.high))
    batches = [rng.uniform(low, high, shape) for _ in range(64)]
    steps = {
        "pyfastenv": (ours.step, batches, args.num_envs),
        "EnvPool": (pool.step, batches, args.num_envs),
    }
    ours.reset(seed=0), pool.reset()
    rivals = CONTESTS[args.which].rivals
    if "dm_control" in rivals:
        from dm_control_suite import load

        single = load(env_id)
        single.reset()
        steps["dm_control"] = (single.step, [batch[0] for batch in batches], 1)

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
        "ratios": {name: medians["pyfastenv"] / medians[name] for name in rivals},
        "ratios_in_rounds": {
            name: measure.ratio(rates["pyfastenv"], rates[name]) for name in rivals
        },
    }


def markdown(result: dict[str, Any]) -> str:
    """One table."""
    which = result["which"]
    title, rivals, least = CONTESTS[which]
    alone = " (dm_control: one)" if "dm_control" in rivals else ""
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
    columns = ["id", "engine", "pyfastenv", *rivals, *(f"times {name}" for name in rivals)]
    columns += ["times EnvPool in rounds"]
    mean = result["times_envpool"]
    return f"""# {title}

Written by `bench/python/suites.py {which}` (`make bench-suites`); every raw rate is in \
suites_{which}.json.
{result["num_envs"]} environments on {result["threads"]} threads{alone}, random \
actions, {result["rounds"]} rounds of {result["seconds_per_round"]} s in turn. Rates are
medians [steps/s], with the quotients of the medians; beside them the quartiles of the rounds' own.

{table(columns, rows)}

In the geometric mean {mean:.2f} times EnvPool {mark(mean >= least)}; \
at least {least} are wanted of these {len(rows)}.

*{circumstances(result)}.*
"""


def main() -> None:
    """Measures and writes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("which", choices=CONTESTS)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--seconds", type=float, default=0.5, help="of one rate")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--num-envs", type=int, default=64)
    parser.add_argument("--ids", nargs="+", help="only these")
    parser.add_argument("--output", type=Path, default=ROOT / "bench/results", help="a folder")
    args = parser.parse_args()
    rows = []
    for env_id in args.ids or ids_of(args.which):
        rows.append(compare(env_id, args))
        rates = ", ".join(f"{name} {value:,.0f}" for name, value in rows[-1]["medians"].items())
        print(f"{env_id}: {rates}; {rows[-1]['ratios']['EnvPool']:.2f} times EnvPool", flush=True)
    mean = measure.geometric_mean([row["ratios"]["EnvPool"] for row in rows])
    print(f"{mean:.2f} times EnvPool in the geometric mean")
    result = {
        "machine": measure.machine(),
        "date": measure.today(),
        "which": args.which,
        "threads": args.threads,
        "num_envs": args.num_envs,
        "rounds": args.rounds,
        "seconds_per_round": args.seconds,
        "times_envpool": mean,
        "rows": rows,
    }
    args.output.mkdir(parents=True, exist_ok=True)
    (args.output / f"suites_{args.which}.json").write_text(json.dumps(result, indent=1) + "\n")
    (args.output / f"suites_{args.which}.md").write_text(markdown(result))


if __name__ == "__main__":
    main()
