"""GPU checks and measurements: ``python bench/python/gpu.py [--quick] [--only SECTION …]``.

The tests marked ``gpu``; PPO with each placement; the pool's scaling with threads; SAC's gradient
steps and what in them waits for the device; MBPO and SAC learning Hopper and HalfCheetah; the
documents' experiments. Writes gpu.json with the device's name after each section. Needs CUDA.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import torch
import tyro
from mbpo import LAYOUT, sac_rate, warm_and_interleave
from sections import scaling as scaling_of_bench
from settings import Settings
from torch.profiler import ProfilerActivity, profile

from pyfastenv.algorithms import mbpo, sac
from pyfastenv.algorithms.ppo import PPO, Config
from pyfastenv.algorithms.sac.spec import METRICS, SACLearner, SACOptions
from pyfastenv.experiments import measure, sections

ROOT = Path(__file__).parents[2]
PLACEMENTS: dict[str, dict[str, Any]] = {
    "cpu": {"device": "cpu"},
    "sample-cpu": {"device": "sample-cpu"},
    "sample-cpu, overlap": {"device": "sample-cpu", "overlap": True},
    "cuda": {"device": "cuda"},
}


def tests(_quick: bool) -> dict[str, Any]:
    """The tests marked gpu."""
    result = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-m", "gpu", "tests/python"],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    print(result.stdout[-4000:])
    if result.returncode != 0:
        raise RuntimeError(f"pytest ended with status {result.returncode}")
    return {"summary": result.stdout.strip().splitlines()[-1]}


def placements(quick: bool) -> Iterator[sections.Row]:
    """PPO's steps/s on HalfCheetah-v5 by placement and network size."""
    seconds = 1.0 if quick else 8.0
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
            yield {
                "placement": name,
                "hidden_sizes": hidden_sizes,
                "rate": measure.summary(rates),
                "sampling_share": sample / (sample + update),
            }


def scaling(quick: bool) -> Iterator[sections.Row]:
    """Rates of step by number of threads."""
    return scaling_of_bench(Settings(quick=quick))


def sac_updates(quick: bool) -> dict[str, Any]:
    """SAC's gradient steps per second on the GPU, and the waits inside them."""
    count = 2_000 if quick else 40_000
    rates = warm_and_interleave(
        {
            f"{name}, {num_seeds} seeds": sac_rate(
                num_seeds, count, bfloat16=name == "bfloat16", device="cuda"
            )
            for name in ("float32", "bfloat16")
            for num_seeds in (1, 6)
        },
        3 if quick else 7,
    )
    return {
        "updates_per_s": {name: measure.summary(values) for name, values in rates.items()},
        "calls_in_100_updates": calls_in_updates(100),
    }


def calls_in_updates(count: int) -> dict[str, int]:
    """Launches of graphs, waits for the device and copies from it, in so many gradient steps."""
    learner = SACLearner(LAYOUT, [0], SACOptions(), "cuda")
    metrics = torch.zeros(len(METRICS), 1, device="cuda")
    rows = torch.randn(count, 1, 256, LAYOUT.width, device="cuda")
    noise = torch.randn(count, 1, *learner.noise_shape(256), device="cuda")
    learner.run(rows, noise, metrics)  # captures the graph

    def calls(steps: int) -> Counter[str]:
        torch.cuda.synchronize()
        with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as trace:
            if steps > 0:
                learner.run(rows[:steps], noise[:steps], metrics)
        return Counter({event.key: event.count for event in trace.key_averages()})

    calls(1)  # the profiler sets itself up
    without, total = calls(0), calls(count)  # the profiler waits too
    launches = total["cudaGraphLaunch"]
    if launches != count:
        raise RuntimeError(f"expected the profiler to see {count} launches of the graph: {total}")
    interesting = {name for name in total if "Synchronize" in name or "DtoH" in name}
    found = {name: total[name] - without[name] for name in sorted(interesting)}
    return {"cudaGraphLaunch": launches, **found}


def learning(quick: bool) -> Iterator[sections.Row]:
    """Whole trainings: one seed of MBPO, six of SAC."""
    for module, env_id, options in (
        (mbpo, "Hopper-v5", {"total_steps": 5_500 if quick else 125_000, "eval_every": 5_000}),
        (sac, "Hopper-v5", {"total_steps": 6_000 if quick else 300_000, "num_seeds": 6}),
        (sac, "HalfCheetah-v5", {"total_steps": 6_000 if quick else 300_000, "num_seeds": 6}),
    ):
        with tempfile.TemporaryDirectory() as folder:
            config = module.Config.preset(
                env_id,
                device="cuda",
                run_dir=Path(folder) / "run",
                torch_threads=1,
                quiet=True,
                loggers=(),
                **options,
            )
            result = module.train(config)
        yield {
            "algorithm": result.algorithm,
            "env_id": env_id,
            "seeds": config.num_seeds,
            "steps": result.global_step,
            "seconds": result.elapsed_s,
            "evaluation": result.evaluation,
        }


def experiments(quick: bool) -> dict[str, Any]:
    """The documents' experiments; the reports are in a folder named after the device."""
    device = torch.cuda.get_device_name().lower().replace(" ", "-")
    output = ROOT / ("build/experiments" if quick else "docs/results") / device
    start = time.perf_counter()
    command = [sys.executable, "-m", "pyfastenv", "experiment", "all", "--output", str(output)]
    subprocess.run([*command, *(["--quick"] if quick else [])], check=True)
    return {"folder": str(output.relative_to(ROOT)), "seconds": time.perf_counter() - start}


def main() -> None:
    options = tyro.cli(sections.Options, description=__doc__)
    if not torch.cuda.is_available():
        sys.exit("bench-gpu: PyTorch finds no CUDA device here; nothing was measured")
    torch.set_num_threads(1)
    measured = {name: partial(section, options.quick) for name, section in SECTIONS.items()}
    sections.run("gpu", measured, options, about={"gpu": torch.cuda.get_device_name()})


SECTIONS: dict[str, Callable[[bool], Any]] = {
    "tests": tests,
    "placements": placements,
    "scaling": scaling,
    "sac": sac_updates,
    "learning": learning,
    "experiments": experiments,
}


if __name__ == "__main__":
    main()
