"""Own tasks beside the built-in environments that they equal: steps per second, in turn.

Writes bench/results/own_tasks.json (machine, settings, every raw rate) and own_tasks.md: for every
robot, engine and number of environments the rate of the own task over the built-in one's, by
``step`` and in rollouts, and how long a task takes to start, in processes of their own.
"""

from __future__ import annotations

import itertools
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import policies
import tyro

import pyfastenv
from pyfastenv.experiments import measure, sections
from pyfastenv.tools import contestants

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples" / "own_tasks"
ROBOTS = {
    "HalfCheetah-v5": "half_cheetah:HalfCheetah",
    "Hopper-v5": "hopper:Hopper",
    "Ant-v5": "ant:Ant",
    "Humanoid-v5": "humanoid:Humanoid",
}
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


@dataclass(frozen=True, kw_only=True)
class Options(sections.Options):
    """Which tasks, and how."""

    rounds: int = 10
    seconds: float = 0.4
    """Duration of one rate's measurement [s]."""
    start_repeats: int = 3
    threads: int = 2
    num_envs: tuple[int, ...] = (8, 64, 1024)
    envs: tuple[str, ...] = tuple(ROBOTS)
    engines: tuple[str, ...] = ("mujoco", "lanes")


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


def compare(env_id: str, engine: str, num_envs: int, args: Options) -> list[Any]:
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
    actions = contestants.random_actions(env_id, 64, num_envs)
    policy = policies.untrained(steppers["own"])
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
        rates = measure.race(candidates, args.seconds, args.rounds)
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


def main() -> None:
    options = tyro.cli(Options, description=__doc__)
    sys.path.insert(0, str(EXAMPLES))

    def speeds() -> Iterator[sections.Row]:
        for each in itertools.product(options.envs, options.engines, options.num_envs):
            yield from compare(*each, options)

    def all_starts() -> Iterator[sections.Row]:
        with tempfile.TemporaryDirectory() as byte_code:
            for name in ("HalfCheetah-v5", ROBOTS["HalfCheetah-v5"]):
                with tempfile.TemporaryDirectory() as cache:
                    start(name, cache, byte_code)  # compiles the modules
            for env_id in options.envs:
                yield starts(env_id, options.start_repeats, byte_code)

    sections.run(
        "own_tasks",
        {"speeds": speeds, "starts": all_starts},
        options,
        template=Path(__file__).parent / "templates" / "own_tasks.md",
        about={
            "threads": options.threads,
            "rounds": options.rounds,
            "seconds_per_round": options.seconds,
            "start_repeats": options.start_repeats,
        },
        flat=True,
    )


if __name__ == "__main__":
    main()
