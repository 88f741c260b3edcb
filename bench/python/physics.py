"""Open-loop rollouts: ``python bench/python/physics.py [--quick]``.

pyfastenv.physics.rollout beside mujoco.rollout and mujoco.batch with as many threads, on the same
states and controls, into arrays that exist. All keep their threads from call to call. Before it is
timed, every contestant's states are compared with mujoco.rollout's, bit for bit. Writes
bench/results/physics.json.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import tyro
from mujoco import rollout as mujoco_rollout
from mujoco.batch import Batch

from pyfastenv import physics
from pyfastenv.experiments import measure, sections
from pyfastenv.vector import specs

THREADS = 2
ROBOTS = {
    "HalfCheetah": "half_cheetah.xml",
    "Hopper": "hopper.xml",
    "Walker2d": "walker2d_v5.xml",
    "Ant": "ant.xml",
    "Humanoid": "humanoid.xml",
}
SIZES = ((1000, 50), (16, 50))  # rollouts, steps
_STATE = mujoco.mjtState.mjSTATE_FULLPHYSICS
_ROW = mujoco.mjtState.mjSTATE_INTEGRATION


def load(name: str) -> Any:
    """gymnasium's model."""
    with measure.quiet_stderr():
        return mujoco.MjModel.from_xml_path(str(Path(specs.assets_dir(), ROBOTS[name])))


def problem(model: Any, count: int, nstep: int) -> tuple[Any, Any]:
    """States, 50 random steps into falling and running, and random controls."""
    rng = np.random.default_rng(0)
    low, high = model.actuator_ctrlrange.T
    data = mujoco.MjData(model)
    row = np.empty(mujoco.mj_stateSize(model, _STATE))
    mujoco.mj_getState(model, data, row, _STATE)
    warmup = rng.uniform(low, high, (count, 50, model.nu))
    states, _ = mujoco_rollout.rollout(model, data, row, warmup)
    return states[:, -1].copy(), rng.uniform(low, high, (count, nstep, model.nu))


def contestants(model: Any, states: Any, controls: Any) -> dict[str, Callable[[Any], None]]:
    """Each writes the rollouts' states into an array that it is given."""
    count, nstep = controls.shape[:2]
    batch = Batch(model, count, nthread=THREADS)
    rows = np.zeros((count, mujoco.mj_stateSize(model, _ROW)))
    rows[:, : states.shape[1]] = states  # what comes after it, of these models, is zero

    def with_batch(state: Any) -> None:
        batch.state[:] = rows
        batch.rollout(nstep, controls, record=(_STATE,), out={_STATE: state})

    def with_rollout(module: Any) -> Callable[[Any], None]:
        pool = module.Rollout(nthread=THREADS)
        data = [mujoco.MjData(model) for _ in range(THREADS)]

        def run(state: Any) -> None:
            pool.rollout(model, data, states, controls, state=state)

        return run

    return {
        "pyfastenv": with_rollout(physics),
        "mujoco.rollout": with_rollout(mujoco_rollout),
        "mujoco.batch": with_batch,
    }


def measure_case(name: str, count: int, nstep: int, rounds: int) -> dict[str, Any]:
    """Steps per second of each, and ours over theirs within the rounds."""
    model = load(name)
    states, controls = problem(model, count, nstep)
    runs = contestants(model, states, controls)
    results = {}
    for who, run in runs.items():
        results[who] = np.full((count, nstep, states.shape[1]), np.nan)
        run(results[who])
        if results[who].tobytes() != results["pyfastenv"].tobytes():
            raise RuntimeError(f"{name}: {who} and pyfastenv differ")
    repeats = max(1, 2000 // (count * nstep))  # a short call is timed several times

    def rate(who: str) -> float:
        start = time.perf_counter()
        for _ in range(repeats):
            runs[who](results[who])
        return repeats * count * nstep / (time.perf_counter() - start)

    found = measure.compared(measure.interleave({who: partial(rate, who) for who in runs}, rounds))
    return {
        "robot": name,
        "rollouts": count,
        "steps": nstep,
        "steps_per_s": found["summary"],
        "gain": found["ratios"],
        "bits_differ": 0,
    }


def planning_costs(rounds: int) -> Iterator[sections.Row]:
    """Measures what a new model costs once, and per call that checks that it is still the same."""
    for name in ROBOTS:
        model = load(name)
        plan, same = [], []
        for r in range(rounds):
            model.body_mass[1] *= 1 + 1e-6 * (r + 1)  # a model not seen before
            start = time.perf_counter()
            physics.lanes_refusal(model)
            planned = time.perf_counter()
            for _ in range(100):
                physics.lanes_refusal(model)
            plan.append(1e3 * (planned - start))
            same.append(1e6 * (time.perf_counter() - planned) / 200)  # it looks twice
        costs = {"plan_ms": measure.summary(plan), "compare_us": measure.summary(same)}
        yield {"robot": name} | costs


def main() -> None:
    options = tyro.cli(sections.Options, description=__doc__)
    rounds = 3 if options.quick else 7
    sections.run(
        "physics",
        {
            "cases": lambda: (
                measure_case(name, *size, rounds) for size in SIZES for name in ROBOTS
            ),
            "planning": lambda: planning_costs(rounds),
        },
        options,
        about={"threads": THREADS, "rounds": rounds},
        flat=True,
    )


if __name__ == "__main__":
    main()
