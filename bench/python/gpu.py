"""GPU checks and measurements: ``python bench/python/gpu.py [--quick]``. Needs CUDA.

Runs the tests marked ``gpu``, then PPO with each placement and the pool's scaling with threads, and
writes gpu.json with the device's name.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch

import pyfastenv
from pyfastenv.algorithms.ppo import PPO, Config
from pyfastenv.cpus import available_cpus
from pyfastenv.experiments import measure

ROOT = Path(__file__).parents[2]
PLACEMENTS: dict[str, dict[str, Any]] = {
    "cpu": {"device": "cpu"},
    "sample-cpu": {"device": "sample-cpu"},
    "sample-cpu, overlap": {"device": "sample-cpu", "overlap": True},
    "cuda": {"device": "cuda"},
}


def tests() -> dict[str, Any]:
    """The tests marked gpu."""
    result = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-m", "gpu", "tests/python"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    print(result.stdout[-2000:])
    return {"passed": result.returncode == 0, "summary": result.stdout.strip().splitlines()[-1]}


def placements(seconds: float) -> list[dict[str, Any]]:
    """PPO's steps/s on HalfCheetah-v5 by placement and network size."""
    rows = []
    for hidden_sizes in ((64, 64), (256, 256), (1024, 1024)):
        for name, options in PLACEMENTS.items():
            config = Config(
                env_id="HalfCheetah-v5",
                num_envs=64,
                num_steps=128,
                minibatch_size=2048,
                hidden_sizes=hidden_sizes,
                total_steps=10**9,
                **options,
            )
            ppo = PPO(config)
            ppo.iterate()
            rates, sample, update = [], 0.0, 0.0
            began = time.perf_counter()
            while time.perf_counter() - began < seconds or len(rates) < 3:
                start = time.perf_counter()
                metrics = ppo.iterate()
                rates.append(64 * 128 / (time.perf_counter() - start))
                sample += metrics["time/sample_s"]
                update += metrics["time/update_s"]
            ppo.collector.close()
            ppo.envs.close()
            rows.append(
                {
                    "placement": name,
                    "hidden_sizes": hidden_sizes,
                    "rate": measure.summary(rates),
                    "sampling_share": sample / (sample + update),
                }
            )
            print(f"  {hidden_sizes} {name}: {rows[-1]['rate']['median']:,.0f} steps/s", flush=True)
    return rows


def scaling(seconds: float) -> list[dict[str, Any]]:
    """Rates of step and rollout by number of threads."""
    rows = []
    threads = [n for n in (1, 2, 4, 8, 16, 32, 64) if n <= available_cpus()]
    for env_id in ("HalfCheetah-v5", "Humanoid-v5"):
        for num_threads in threads:
            envs = pyfastenv.make_vec(
                env_id, 64 * num_threads, num_threads=num_threads, autoreset_mode="SameStep"
            )
            envs.reset(seed=0)
            rng = np.random.default_rng(0)
            space = envs.single_action_space
            actions = rng.uniform(space.low, space.high, (envs.num_envs, *space.shape))
            actions = actions.astype(np.float32)
            count, start = 0, time.perf_counter()
            while time.perf_counter() - start < seconds:
                envs.step(actions)
                count += envs.num_envs
            rate = count / (time.perf_counter() - start)
            rows.append({"env_id": env_id, "threads": num_threads, "step_rate": rate})
            print(f"  {env_id}, {num_threads} threads: {rate:,.0f} steps/s", flush=True)
            envs.close()
    return rows


def main() -> None:
    """The program."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="short and rough")
    parser.add_argument("--output", type=Path, default=ROOT / "bench/results/gpu.json")
    args = parser.parse_args()
    if not torch.cuda.is_available():
        sys.exit("bench-gpu: PyTorch finds no CUDA device here; nothing was measured")
    seconds = 1.0 if args.quick else 8.0
    torch.set_num_threads(1)
    results: dict[str, Any] = {
        "gpu": torch.cuda.get_device_name(),
        "torch": torch.__version__,
        "machine": measure.machine(),
    }
    for name, run in (
        ("tests", tests),
        ("placements", lambda: placements(seconds)),
        ("scaling", lambda: scaling(seconds / 4)),
    ):
        print(f"{name}:", flush=True)
        results[name] = run()
        args.output.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
