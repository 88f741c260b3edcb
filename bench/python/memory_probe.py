"""Makes, resets and steps one vector environment in this fresh process, and prints what it cost.

The memory section runs it as a program, so that no other measurement's memory is counted.
"""

from __future__ import annotations

import argparse
import json
import resource
import sys
import time
from pathlib import Path
from typing import Any

import peers

from pyfastenv.tools import contestants

CONTESTANTS: dict[str, type[contestants.Ours] | type[peers.EnvPool]] = {
    "pyfastenv": contestants.Ours,
    "EnvPool": peers.EnvPool,
}


def memory_mb(field: str) -> float:
    """``VmRSS`` (resident memory now) or ``VmHWM`` (its peak) [MB = 10^6 bytes].

    Not getrusage's ru_maxrss where /proc exists: on Linux a child starts with its parent's.
    """
    try:
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith(field + ":"):
                return int(line.split()[1]) * 1024 / 1e6
    except OSError:
        pass
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e6


def probe(name: str, env_id: str, num_envs: int, num_threads: int) -> dict[str, Any]:
    """Seconds to make, reset and step once; memory before, after and at the peak [MB]."""
    actions = contestants.random_actions(env_id, 1, num_envs)[0]
    if name == "EnvPool":
        import envpool  # noqa: F401 - its import is not what making an environment costs
    before = memory_mb("VmRSS")
    times = [time.perf_counter()]
    contestant = CONTESTANTS[name](env_id, num_envs, num_threads)
    times.append(time.perf_counter())
    envs: Any = contestant.envs
    if name == "EnvPool":
        actions = actions.astype(envs.action_space.dtype)
    envs.reset()
    times.append(time.perf_counter())
    envs.step(actions)
    times.append(time.perf_counter())
    result = {
        "contestant": name,
        "env_id": env_id,
        "num_envs": num_envs,
        "make_s": times[1] - times[0],
        "reset_s": times[2] - times[1],
        "step_s": times[3] - times[2],
        "rss_before_mb": before,
        "rss_mb": memory_mb("VmRSS"),
        "peak_rss_mb": memory_mb("VmHWM"),
    }
    contestant.close()
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--contestant", choices=list(CONTESTANTS), default="pyfastenv")
    parser.add_argument("--env-id", default="HalfCheetah-v5")
    parser.add_argument("--num-envs", type=int, default=32_000)
    parser.add_argument("--num-threads", type=int, default=2)
    args = parser.parse_args()
    print(json.dumps(probe(args.contestant, args.env_id, args.num_envs, args.num_threads)))


if __name__ == "__main__":
    main()
