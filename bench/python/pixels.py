"""Pictures as observations: ``python bench/python/pixels.py [--quick]``.

Environment steps with 84 x 84 x 9 pixels, 64 environments on two threads, beside the same pool
without pixels, gymnasium's AddRenderObservation and EnvPool's from_pixels; and the memory of 1,024
environments. Every contestant runs in a process of its own, in turn: OpenGL that fails takes the
process with it. Writes bench/results/pixels.json and .md.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

os.environ.setdefault("MUJOCO_GL", "egl")

import gymnasium
import memory_probe
import numpy as np
import tyro
from gymnasium.wrappers import AddRenderObservation, FrameStackObservation

import pyfastenv
from pyfastenv.experiments import measure, sections

ROBOTS = ("HalfCheetah-v5", "Walker2d-v5", "Humanoid-v5")
CONTESTANTS = ("pixels", "states", "gymnasium", "envpool")
NUM_ENVS, NUM_THREADS, MANY_ENVS = 64, 2, 1024
SIZE, STACK = 84, 3
PATIENCE_S = 120
_TEMPLATE = Path(__file__).parent / "templates" / "pixels.md"


def ours(env_id: str, num_envs: int, **pixels: Any) -> Any:
    """Our pool with pictures."""
    looks = {"height": SIZE, "width": SIZE, "frame_stack": STACK, **pixels}
    return pyfastenv.make_vec(env_id, num_envs, num_threads=NUM_THREADS, pixels=looks)


def states(env_id: str) -> Any:
    """The same without."""
    return pyfastenv.make_vec(env_id, NUM_ENVS, num_threads=NUM_THREADS)


def gymnasiums(env_id: str) -> Any:
    """gymnasium's environments one after the other; a few, since each waits for its picture."""

    def make() -> gymnasium.Env[Any, Any]:
        env = gymnasium.make(env_id, render_mode="rgb_array", width=SIZE, height=SIZE)
        return FrameStackObservation(AddRenderObservation(env), STACK)

    return gymnasium.vector.SyncVectorEnv([make] * 2)


def envpools(env_id: str) -> Any:
    """EnvPool's environments with its pictures."""
    import envpool

    looks = {"render_width": SIZE, "render_height": SIZE, "frame_stack": STACK}
    size = {"num_envs": NUM_ENVS, "num_threads": NUM_THREADS}
    return envpool.make(env_id, env_type="gymnasium", from_pixels=True, **looks, **size)


MAKE: dict[str, Callable[[str], Any]] = {
    "pixels": lambda env_id: ours(env_id, NUM_ENVS),
    "states": states,
    "gymnasium": gymnasiums,
    "envpool": envpools,
}


def probe(who: str, env_id: str, seconds: float) -> dict[str, float]:
    """Steps one contestant's environments for so long: steps, wall time and processor time [s]."""
    with measure.quiet_stderr():
        envs = MAKE[who](env_id)
        obs, _ = envs.reset()
    num_envs = len(obs)
    if who != "states" and (obs.dtype != np.uint8 or np.ptp(obs) == 0):
        raise SystemExit(f"{who}: expected pictures, got {obs.dtype} without contrast")
    space = envs.action_space
    space = (
        space if num_envs == space.shape[0] else gymnasium.vector.utils.batch_space(space, num_envs)
    )
    actions = space.sample()
    envs.step(actions)
    steps, wall, cpu = 0, time.perf_counter(), time.process_time()
    while steps == 0 or time.perf_counter() - wall < seconds:
        envs.step(actions)
        steps += num_envs
    return {
        "steps": steps,
        "wall_s": time.perf_counter() - wall,
        "cpu_s": time.process_time() - cpu,
    }


def memory(env_id: str) -> dict[str, float]:
    """What many environments take after a step [MB]: in all, of which the pictures' bytes."""
    before = memory_probe.memory_mb("VmRSS")
    envs = ours(env_id, MANY_ENVS)
    obs, _ = envs.reset(seed=0)
    obs = envs.step(np.zeros(envs.action_space.shape, np.float32))[0]
    return {"mb": memory_probe.memory_mb("VmRSS") - before, "pictures_mb": obs.nbytes / 1e6}


def apart(*words: str) -> dict[str, float] | None:
    """What this program says with these words, in a process of its own; None: it failed."""
    command = [sys.executable, __file__, *words]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=PATIENCE_S, check=False
        )
        found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    except (subprocess.TimeoutExpired, ValueError, IndexError):
        return None
    return found


def steps(rounds: int, seconds: float) -> Iterator[sections.Row]:
    """Steps per second and microseconds of processor time per step, in turn."""
    for env_id in ROBOTS:
        found: dict[str, list[dict[str, float]]] = {}
        for _, who in measure.interleaved(CONTESTANTS, rounds):
            result = apart("probe", who, env_id, str(seconds))
            if result is not None:
                found.setdefault(who, []).append(result)
        rates = {who: [r["steps"] / r["wall_s"] for r in each] for who, each in found.items()}
        costs = {who: [1e6 * r["cpu_s"] / r["steps"] for r in each] for who, each in found.items()}
        shares = measure.ratio(costs["states"], costs["pixels"])
        yield {
            "robot": env_id,
            "steps_per_s": {who: measure.summary(rates[who]) for who in rates},
            "cpu_us_per_step": {who: measure.summary(costs[who]) for who in costs},
            "share_of_drawing": 1.0 - shares["median"],
            "failed": [who for who in CONTESTANTS if who not in found],
        }


def memories() -> Iterator[sections.Row]:
    """Memory of many environments, each in a process of its own."""
    for env_id in ROBOTS:
        found = apart("memory", env_id)
        assert found is not None
        yield {"robot": env_id, "num_envs": MANY_ENVS, **found}


def main() -> None:
    options = tyro.cli(sections.Options, description=__doc__)
    rounds, seconds = (1, 0.5) if options.quick else (7, 2.0)
    sections.run(
        "pixels",
        {"steps": lambda: steps(rounds, seconds), "memory": memories},
        options,
        template=_TEMPLATE,
        about={"rounds": rounds, "seconds": seconds},
    )


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["probe", who, env_id, seconds]:
            print(json.dumps(probe(who, env_id, float(seconds))))
        case ["memory", env_id]:
            print(json.dumps(memory(env_id)))
        case _:
            main()
