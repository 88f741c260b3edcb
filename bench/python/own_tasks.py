"""Own tasks beside the built-in environments that they equal: steps per second, in turn.

Writes bench/results/own_tasks.json: for every robot, engine and number of environments the median
of the rounds' quotients (own / built-in) and their spread, and how long a task takes to start.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

import pyfastenv
from pyfastenv.experiments import measure

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples" / "own_tasks"
ROBOTS = {
    "HalfCheetah-v5": "half_cheetah:HalfCheetah",
    "Hopper-v5": "hopper:Hopper",
    "Ant-v5": "ant:Ant",
    "Humanoid-v5": "humanoid:Humanoid",
}
START = """
import sys, time
import numpy, mujoco, pyfastenv
begin = time.perf_counter()
envs = pyfastenv.make_vec({task!r}, 8)
envs.reset(seed=0)
envs.step(numpy.zeros((8, *envs.single_action_space.shape)))
print(time.perf_counter() - begin, "numba" in sys.modules)
"""


def steps_per_second(envs: Any, actions: list[np.ndarray], seconds: float) -> float:
    begin, count = time.perf_counter(), 0
    while time.perf_counter() - begin < seconds:
        envs.step(actions[count % len(actions)])
        count += 1
    return count * envs.num_envs / (time.perf_counter() - begin)


def rollout_steps_per_second(envs: Any, policy: Any, seconds: float) -> float:
    begin, count = time.perf_counter(), 0
    while time.perf_counter() - begin < seconds:
        pyfastenv.rollout(envs, policy, 16)
        count += 16
    return count * envs.num_envs / (time.perf_counter() - begin)


def a_policy(envs: Any) -> Any:
    rng = np.random.default_rng(0)
    sizes = [envs.single_observation_space.shape[0], 64, 64, envs.single_action_space.shape[0]]
    pairs = list(itertools.pairwise(sizes))
    return pyfastenv.PolicySpec(
        weights=[0.1 * rng.standard_normal((1, *pair)).astype(np.float32) for pair in pairs],
        biases=[np.zeros((1, n), np.float32) for _, n in pairs],
        distribution="gaussian",
        log_std=np.full((1, sizes[-1]), -0.5, np.float32),
    )


def compare(env_id: str, num_envs: int, engine: str, args: argparse.Namespace) -> dict[str, Any]:
    """Rounds in turn, the first of a round alternating."""
    pools = [
        pyfastenv.make_vec(name, num_envs, num_threads=args.threads, engine=engine, infos=True)
        for name in (env_id, ROBOTS[env_id])
    ]
    rng = np.random.default_rng(0)
    space = pools[0].single_action_space
    shape = (num_envs, *space.shape)
    actions = [rng.uniform(space.low, space.high, shape).astype(np.float32) for _ in range(64)]
    rates: dict[str, list[tuple[float, float]]] = {"step": [], "rollout": []}
    for pool in pools:
        pool.reset(seed=0)
        pool.step(actions[0])
    rollers = [
        pyfastenv.make_vec(
            name, num_envs, num_threads=args.threads, engine=engine, autoreset_mode="SameStep"
        )
        for name in (env_id, ROBOTS[env_id])
    ]
    policy = a_policy(pools[0])
    for pool in rollers:
        pool.reset(seed=0)
        pyfastenv.rollout(pool, policy, 2)
    for turn in range(args.rounds):
        order = (0, 1) if turn % 2 == 0 else (1, 0)
        got = dict.fromkeys(order, 0.0)
        for i in order:
            got[i] = steps_per_second(pools[i], actions, args.seconds)
        rates["step"].append((got[0], got[1]))
        for i in order:
            got[i] = rollout_steps_per_second(rollers[i], policy, args.seconds)
        rates["rollout"].append((got[0], got[1]))
    result: dict[str, Any] = {"env": env_id, "num_envs": num_envs, "engine": engine}
    for kind, pairs in rates.items():
        quotients = sorted(own / built_in for built_in, own in pairs)
        result[kind] = {
            "built_in": float(np.median([pair[0] for pair in pairs])),
            "own": float(np.median([pair[1] for pair in pairs])),
            "quotient": float(np.median(quotients)),
            "spread": [quotients[0], quotients[-1]],
        }
    return result


def start_times(task: str) -> dict[str, Any]:
    """A cold start and one from the cache, each in a process of its own [s]."""
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "PYFASTENV_CACHE": folder, "PYTHONPATH": str(EXAMPLES)}
        times = []
        for _ in range(6):
            done = subprocess.run(
                [sys.executable, "-c", START.format(task=task)],
                env=environment, capture_output=True, text=True, check=True,
            )  # fmt: skip
            seconds, numba = done.stdout.split()
            times.append((float(seconds), numba == "True"))
    assert not any(numba for _, numba in times[1:])
    return {"task": task, "cold": times[0][0], "cached": min(seconds for seconds, _ in times[1:])}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--seconds", type=float, default=0.5)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--num-envs", type=int, nargs="+", default=[8, 64, 1024])
    parser.add_argument("--envs", nargs="+", default=list(ROBOTS))
    parser.add_argument("--engines", nargs="+", default=["mujoco", "auto"])
    parser.add_argument("--output", type=Path, default=ROOT / "bench/results/own_tasks.json")
    args = parser.parse_args()
    sys.path.insert(0, str(EXAMPLES))
    speeds = []
    for engine in args.engines:
        for env_id in args.envs:
            for num_envs in args.num_envs:
                speeds.append(compare(env_id, num_envs, engine, args))
                step, rollout = (speeds[-1][kind]["quotient"] for kind in ("step", "rollout"))
                print(f"{env_id:16} {engine:7} {num_envs:5}: step {step:.3f} rollout {rollout:.3f}")
    starts = [start_times(ROBOTS[env_id]) for env_id in args.envs]
    for start in starts:
        print(f"{start['task']:28} cold {start['cold']:.2f} s, cached {start['cached']:.3f} s")
    report = {
        "machine": measure.machine(),
        "threads": args.threads,
        "rounds": args.rounds,
        "seconds_per_round": args.seconds,
        "speeds": speeds,
        "starts": starts,
    }
    args.output.write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main()
