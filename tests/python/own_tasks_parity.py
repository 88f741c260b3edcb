"""Own tasks beside gymnasium, 100,000 steps each in every autoreset mode.

``python tests/python/own_tasks_parity.py`` (``make parity NAME=tasks``) counts steps and
episodes, and writes them down: every observation, reward, flag and info was equal to the last bit.
It works in parts, each with seeds of its own, and goes on where it stopped.
"""

import argparse
import itertools
import sys
from pathlib import Path
from typing import Any

import counts
from parity import MODES, compare

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "examples" / "own_tasks"))
NUM_ENVS = 8
PARTS = 4
ROBOTS = ("HalfCheetah-v5", "Hopper-v5", "Ant-v5", "Humanoid-v5")


def own_task(env_id: str) -> Any:
    """The example that should equal gymnasium's environment."""
    from ant import Ant
    from half_cheetah import HalfCheetah
    from hopper import Hopper
    from humanoid import Humanoid

    return dict(zip(ROBOTS, (HalfCheetah, Hopper, Ant, Humanoid), strict=True))[env_id]


def run_part(env_id: str, mode: str, part: int, num_steps: int) -> dict[str, int]:
    """Compares so many steps of 8 environments; some start anew in between."""
    episodes = compare(
        env_id, mode, num_steps, num_envs=NUM_ENVS, seed=100 * part, task=own_task(env_id)
    )
    return {"steps": num_steps * NUM_ENVS, "episodes": episodes, "differences": 0}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    output = ROOT / "bench" / "results" / "own_tasks_parity.json"
    parser.add_argument("--output", type=Path, default=output)
    parser.add_argument("--most", type=int, default=1_000, help="parts before it stops")
    parser.add_argument("--steps", type=int, default=100_000, help="per environment and mode")
    options = parser.parse_args()
    results = counts.read(options.output)
    missing = [
        (env_id, mode, part)
        for part, env_id, mode in itertools.product(range(PARTS), ROBOTS, MODES)
        if str(part) not in results.get(f"{env_id} {mode}", {})
    ]
    for env_id, mode, part in missing[: options.most]:
        done = run_part(env_id, mode, part, options.steps // (NUM_ENVS * PARTS))
        results.setdefault(f"{env_id} {mode}", {})[str(part)] = done
        order = [f"{env_id} {mode}" for env_id, mode in itertools.product(ROBOTS, MODES)]
        counts.write(options.output, results, "own_tasks_parity", order=order)
        print(f"{env_id} {mode}, part {part}: {done}", flush=True)


if __name__ == "__main__":
    main()
