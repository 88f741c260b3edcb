"""Many cores on paper: ``python bench/python/scaling.py [--threads-bench PROGRAM]``.

No machine of ours has more than two cores. What can be measured on two is what a thread costs the
others (bench/cpp/threads.cc: wake-ups, and steps of nothing by up to 64 threads that take turns)
and what an environment costs (bench/results/bench.json). A model puts them together; its
assumptions are in ASSUMPTIONS and are printed, and it is compared with what two threads did reach.

With a program, measures anew and writes bench/results/scaling.json. Prints the tables that ``make
figures`` writes into docs/scaling.md.
"""

from __future__ import annotations

import argparse
import json
import math
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from pyfastenv.experiments import measure
from pyfastenv.experiments.tables import table

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "bench" / "results"
LANES = 8
CORES = (16, 64, 256)
SIZES = (64, 1024, 32_000)
ENVS = ("HalfCheetah-v5", "Humanoid-v5")
LINE_US = 0.2
SEGMENT_US = 50.0
ASSUMPTIONS = (
    "a core is as fast with all others at work as it is here with one other: no lower clock, "
    "no two threads on one core, memory that keeps up",
    "a group of eight environments costs what it costs here, and a smaller group as much",
    "the slowest worker of a step ends half a group after the average one, that of a rollout "
    f"one segment of {SEGMENT_US:g} µs",
    "a woken helper wakes two more, each after the time that a wake-up takes here",
    "a cache line that all write in turn (the count of workers that are done) takes "
    f"{1000 * LINE_US:g} ns from core to core",
    "pessimistic: beside that, what a thread costs here in processor time, with 2 to 64 of them on "
    "two cores, is done by one after the other",
)


@dataclass(frozen=True)
class Costs:
    """The measured costs [µs]."""

    wake: float  # of a helper that spins
    wake_parked: float  # of one that sleeps in the kernel
    thread: float  # processor time per thread and call, where threads take turns on two cores
    call: float  # a call by one thread that wakes nobody, Python included


def read(name: str) -> Any:
    return json.loads((RESULTS / name).read_text())


def measured(program: str) -> dict[str, Any]:
    """Medians of what bench/cpp/threads.cc says [µs]."""
    done = subprocess.run(
        [
            program, "--benchmark_filter=^Threads(Wake|Step)", "--benchmark_repetitions=5",
            "--benchmark_min_time=0.2", "--benchmark_report_aggregates_only",
            "--benchmark_format=json",
        ],
        check=True, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    runs = [
        run for run in json.loads(done.stdout)["benchmarks"] if run["aggregate_name"] == "median"
    ]
    names = {run["run_name"]: run for run in runs}
    return {
        "machine": measure.machine(),
        "repetitions": 5,
        "us": {
            name: {"real": run["real_time"], "cpu": run["cpu_time"]} for name, run in names.items()
        },
    }


def _parts(name: str) -> dict[str, int]:
    """ThreadsWake/threads:2/idle_us:5/…: the numbers by name."""
    pairs = (part.split(":") for part in name.split("/")[1:] if ":" in part)
    return {key: int(value) for key, value in pairs}


def costs(result: dict[str, Any]) -> Costs:
    """The model's parameters."""
    wakes, steps = {}, {}
    for name, us in result["us"].items():
        parts = _parts(name)
        if name.startswith("ThreadsWake") and parts["threads"] == 2:
            wakes[parts["idle_us"]] = us["real"]
        elif name.startswith("ThreadsStep") and parts["threads"] > 1:
            steps[parts["threads"]] = us["cpu"]
    slope, _ = np.polyfit(list(steps), list(steps.values()), 1)
    cart_pole = next(row for row in read("bench.json")["cartpole"]["rows"] if row["num_envs"] == 8)
    call = 1e6 * 8 / cart_pole["summary"]["pyfastenv"]["median"]
    return Costs(wakes[5], wakes[500], max(float(slope), 0.0), call)


def two_threads(env_id: str, num_envs: int) -> float:
    """Steps per second that were measured."""
    rows = read("bench.json")["stepping"]["rows"]
    row = next(r for r in rows if (r["env_id"], r["num_envs"]) == (env_id, num_envs))
    return float(row["summary"]["pyfastenv"]["median"])


def group_us(env_id: str) -> float:
    """A group's step, from a call of so many that calls cost nothing."""
    return 2 * LANES * 1e6 / two_threads(env_id, 1024)


def rate(
    env_id: str, num_envs: int, cores: int, costs: Costs, steps: int = 1, pessimistic: bool = False
) -> float:
    """Steps per second of all environments: of ``step``, or of rollouts of so many steps."""
    group = group_us(env_id)
    workers = min(cores, num_envs)
    rounds = math.ceil(num_envs / workers / LANES)  # groups per worker
    late = group / 2 if steps == 1 else min(SEGMENT_US, steps * group)
    depth = math.ceil(math.log2(workers))  # of the tree of wake-ups
    shared = workers * (LINE_US + (costs.thread if pessimistic else 0.0))
    total = costs.call + depth * costs.wake + shared + rounds * group * steps + late
    return num_envs * steps * 1e6 / total


def rates(costs: Costs, steps: int) -> str:
    """Rates by cores; in brackets, what the pessimistic assumption leaves."""
    head = ("environment", "environments", *(f"{cores} cores" for cores in CORES))
    rows = [
        (
            env_id,
            f"{num_envs:,}",
            *(
                f"{rate(env_id, num_envs, cores, costs, steps):,.0f} "
                f"({rate(env_id, num_envs, cores, costs, steps, True):,.0f})"
                for cores in CORES
            ),
        )
        for env_id in ENVS
        for num_envs in SIZES
    ]
    return table(head, rows)


def check(costs: Costs) -> str:
    """The model of two threads beside what two threads did."""
    rows = []
    for env_id in ENVS:
        for num_envs in (8, 64):
            predicted, seen = rate(env_id, num_envs, 2, costs), two_threads(env_id, num_envs)
            ratio = f"{predicted / seen:.2f}"
            rows.append((env_id, num_envs, f"{predicted:,.0f}", f"{seen:,.0f}", ratio))
    return table(("environment", "environments", "model", "measured", "ratio"), rows)


def parameters(costs: Costs) -> str:
    each = {
        "to wake a helper that spins": f"{costs.wake:.2f}",
        "to wake a helper that sleeps": f"{costs.wake_parked:.2f}",
        "processor time of a call per thread, threads taking turns": f"{costs.thread:.2f}",
        "a call by one thread, Python included": f"{costs.call:.2f}",
    }
    each |= {
        f"a step of a group of {LANES}, {env_id}": f"{group_us(env_id):.1f}" for env_id in ENVS
    }
    return table(("what", "µs"), each.items())


def tables() -> dict[str, str]:
    """The tables of docs/scaling.md by name."""
    found = costs(read("scaling.json"))
    return {
        "measured": parameters(found),
        "check": check(found),
        "assumptions": "".join(f"- {line};\n" for line in ASSUMPTIONS),
        "step": rates(found, 1),
        "rollout": rates(found, 128),
    }


def main() -> None:
    """Measures if asked to and prints the model."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads-bench", metavar="PROGRAM", help="of make bench NAME=scaling")
    program = parser.parse_args().threads_bench
    if program:
        (RESULTS / "scaling.json").write_text(json.dumps(measured(program), indent=1) + "\n")
    for name, text in tables().items():
        print(f"{name}\n{text}")


if __name__ == "__main__":
    main()
