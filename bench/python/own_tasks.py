"""Own tasks beside the built-in environments that they equal: steps per second, in turn.

Writes bench/results/own_tasks.json (machine, settings, every raw rate) and own_tasks.md: for every
robot, engine and number of environments the rate of the own task over the built-in one's, by
``step`` and in rollouts, and how long a task takes to start, in processes of their own.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from report import circumstances, mark

import pyfastenv
from pyfastenv.experiments import measure
from pyfastenv.experiments.tables import table

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "bench" / "results"
EXAMPLES = ROOT / "examples" / "own_tasks"
ROBOTS = {
    "HalfCheetah-v5": "half_cheetah:HalfCheetah",
    "Hopper-v5": "hopper:Hopper",
    "Ant-v5": "ant:Ant",
    "Humanoid-v5": "humanoid:Humanoid",
}
ENGINES = {"mujoco": 0.95, "lanes": 0.85}  # engine -> the least that own / built-in shall be
MAX_COLD, MAX_CACHED = 2.0, 0.15  # [s]
ROLLOUT_SIZE = 4096  # steps of all environments together, but 16 of each at most
START = """
import sys, time
import numpy, mujoco, pyfastenv
begin = time.perf_counter()
envs = pyfastenv.make_vec({name!r}, 8)
envs.reset(seed=0)
envs.step(numpy.zeros((8, *envs.single_action_space.shape), numpy.float32))
print(time.perf_counter() - begin, "numba" in sys.modules)
"""


# ---- speed ---------------------------------------------------------------------------------------


def step(envs: Any, actions: Iterator[np.ndarray]) -> int:
    """How many environments made a step."""
    envs.step(next(actions))
    return int(envs.num_envs)


def roll(envs: Any, policy: Any) -> int:
    """How many steps environments made together."""
    num_steps = max(1, min(16, ROLLOUT_SIZE // envs.num_envs))
    pyfastenv.rollout(envs, policy, num_steps)
    return int(num_steps * envs.num_envs)


def a_policy(envs: Any) -> Any:
    """64 x 64, with random weights."""
    rng = np.random.default_rng(0)
    sizes = [envs.single_observation_space.shape[0], 64, 64, envs.single_action_space.shape[0]]
    pairs = list(itertools.pairwise(sizes))
    return pyfastenv.PolicySpec(
        weights=[0.1 * rng.standard_normal((1, *pair)).astype(np.float32) for pair in pairs],
        biases=[np.zeros((1, n), np.float32) for _, n in pairs],
        distribution="gaussian",
        log_std=np.full((1, sizes[-1]), -0.5, np.float32),
    )


def some_actions(envs: Any) -> list[np.ndarray]:
    rng, space = np.random.default_rng(0), envs.single_action_space
    shape = (envs.num_envs, *space.shape)
    return [rng.uniform(space.low, space.high, shape).astype(np.float32) for _ in range(64)]


def compare(env_id: str, engine: str, num_envs: int, args: argparse.Namespace) -> list[Any]:
    """A row each for ``step`` and for rollouts."""
    names = {"built-in": env_id, "own": ROBOTS[env_id]}
    options = {"num_threads": args.threads, "engine": engine}
    with measure.quiet_stderr():
        steppers, rollers = (
            {
                who: pyfastenv.make_vec(name, num_envs, autoreset_mode=mode, **options)
                for who, name in names.items()
            }
            for mode in ("NextStep", "SameStep")
        )
    actions, policy = some_actions(steppers["own"]), a_policy(steppers["own"])
    kinds: dict[str, dict[str, Any]] = {
        "step": {
            who: partial(step, envs, itertools.cycle(actions)) for who, envs in steppers.items()
        },
        "rollout": {who: partial(roll, envs, policy) for who, envs in rollers.items()},
    }
    for envs in (*steppers.values(), *rollers.values()):
        envs.reset(seed=0)
    rows = []
    for kind, candidates in kinds.items():
        for run in candidates.values():
            measure.rate(run, args.seconds / 4)  # warms up
        rates = measure.interleave(
            {who: partial(measure.rate, run, args.seconds) for who, run in candidates.items()},
            args.rounds,
        )
        medians = {who: statistics.median(values) for who, values in rates.items()}
        rows.append(
            {
                "env": env_id,
                "engine": engine,
                "num_envs": num_envs,
                "kind": kind,
                "rates": rates,
                "medians": medians,
                "ratio": medians["own"] / medians["built-in"],
                "ratio_in_rounds": measure.ratio(rates["own"], rates["built-in"]),
            }
        )
    for envs in (*steppers.values(), *rollers.values()):
        envs.close()
    return rows


# ---- starts --------------------------------------------------------------------------------------


def start(name: str, cache: str, byte_code: str) -> tuple[float, bool]:
    """Seconds from make_vec to the first step's end in a process of its own; is numba there?

    ``byte_code``: where Python's modules are compiled to, as installing a package does.
    """
    environment = {
        **os.environ,
        "PYFASTENV_CACHE": cache,
        "PYTHONPATH": str(EXAMPLES),
        "PYTHONPYCACHEPREFIX": byte_code,
    }
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    done = subprocess.run(
        [sys.executable, "-c", START.format(name=name)],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    seconds, numba = done.stdout.split()
    return float(seconds), numba == "True"


def starts(env_id: str, repeats: int, byte_code: str) -> dict[str, Any]:
    """Cold, from the cache, and the built-in environment's, so many times each [s]."""
    times: dict[str, list[float]] = {"cold": [], "cached": [], "built-in": []}
    with_numba = False
    for _ in range(repeats):
        with tempfile.TemporaryDirectory() as cache:
            times["cold"].append(start(ROBOTS[env_id], cache, byte_code)[0])
            seconds, numba = start(ROBOTS[env_id], cache, byte_code)
            times["cached"].append(seconds)
            times["built-in"].append(start(env_id, cache, byte_code)[0])
            with_numba |= numba
    return {
        "env": env_id,
        "times": times,
        "medians": {kind: statistics.median(values) for kind, values in times.items()},
        "cached_imports_numba": with_numba,
    }


# ---- report --------------------------------------------------------------------------------------


def markdown(result: dict[str, Any]) -> str:
    """Two tables."""
    speeds = [
        [
            row["env"],
            row["engine"],
            f"{row['num_envs']:,}",
            row["kind"],
            row["medians"]["built-in"],
            row["medians"]["own"],
            f"{row['ratio']:.3f} {mark(row['ratio'] >= ENGINES[row['engine']])}",
            f"{row['ratio_in_rounds']['q1']:.3f} to {row['ratio_in_rounds']['q3']:.3f}",
        ]
        for row in result["speeds"]
    ]
    begins = [
        [
            row["env"],
            f"{row['medians']['cold']:.2f} {mark(row['medians']['cold'] < MAX_COLD)}",
            f"{row['medians']['cached']:.3f} {mark(row['medians']['cached'] < MAX_CACHED)}",
            "yes" if row["cached_imports_numba"] else "no",
            f"{row['medians']['built-in']:.3f}",
        ]
        for row in result["starts"]
    ]
    bars = " and ".join(f"{least} with engine={name!r}" for name, least in ENGINES.items())
    return f"""# Own tasks beside the built-in environments that they equal

Written by `bench/python/own_tasks.py` (`make bench-tasks`); every raw rate is in own_tasks.json.
The files of `examples/own_tasks`, {result["threads"]} threads, {result["rounds"]} rounds of \
{result["seconds_per_round"]} s in turn. Rates are medians [steps/s]; their
ratio, own over built-in, shall be at least {bars};
beside it the quartiles of the rounds' ratios. Rollouts have a 64 x 64 policy.

{table(["environment", "engine", "envs", "by", "built-in", "own", "ratio", "in rounds"], speeds)}

## Start

From `make_vec` to the end of the first step, 8 environments, each in a process of its own that has
imported pyfastenv, numpy and mujoco [s]: medians of {result["start_repeats"]}. Python's modules \
have their byte code, as installed ones do. Cold: the task is
compiled; shall be below {MAX_COLD} s, from the cache below {MAX_CACHED} s.

{table(["environment", "cold", "from the cache", "imports numba", "built-in"], begins)}

*{circumstances(result)}.*
"""


def main() -> None:
    """Measures and writes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--seconds", type=float, default=0.4, help="of one rate")
    parser.add_argument("--start-repeats", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--num-envs", type=int, nargs="+", default=[8, 64, 1024])
    parser.add_argument("--envs", nargs="+", default=list(ROBOTS), choices=ROBOTS)
    parser.add_argument("--engines", nargs="+", default=list(ENGINES), choices=ENGINES)
    parser.add_argument("--output", type=Path, default=RESULTS, help="a folder")
    args = parser.parse_args()
    sys.path.insert(0, str(EXAMPLES))
    speeds = []
    for env_id, engine, num_envs in itertools.product(args.envs, args.engines, args.num_envs):
        rows = compare(env_id, engine, num_envs, args)
        ratios = ", ".join(f"{row['kind']} {row['ratio']:.3f}" for row in rows)
        print(f"{env_id:16} {engine:7} x {num_envs:5}: {ratios}", flush=True)
        speeds += rows
    begins = []
    with tempfile.TemporaryDirectory() as byte_code:
        for name in ("HalfCheetah-v5", ROBOTS["HalfCheetah-v5"]):
            with tempfile.TemporaryDirectory() as cache:
                start(name, cache, byte_code)  # compiles the modules
        for env_id in args.envs if args.start_repeats else []:
            begins.append(starts(env_id, args.start_repeats, byte_code))
            print(f"{env_id:16} {begins[-1]['medians']}", flush=True)
    result = {
        "machine": measure.machine(),
        "date": measure.today(),
        "threads": args.threads,
        "rounds": args.rounds,
        "seconds_per_round": args.seconds,
        "start_repeats": args.start_repeats,
        "speeds": speeds,
        "starts": begins,
    }
    args.output.mkdir(parents=True, exist_ok=True)
    (args.output / "own_tasks.json").write_text(json.dumps(result, indent=1) + "\n")
    (args.output / "own_tasks.md").write_text(markdown(result))


if __name__ == "__main__":
    main()
