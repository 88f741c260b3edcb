"""Suites beside EnvPool's environments of the same ids and dm_control itself: steps/s, in turn.

``ten`` are ten tasks of dm_control's, beside EnvPool and dm_control; ``rest`` are all others of
dm_control's and gymnasium-robotics' that EnvPool has too; ``playground`` are MuJoCo Playground's,
``metaworld`` MetaWorld's, ``myosuite`` MyoSuite's (healthy; six of MyoDex's); ``mjlab`` are mjlab's
flat tasks beside mjlab's own environments, on a batch of ours and on MuJoCo Warp's CPU. Writes
bench/results/suites_ten.json (machine, settings, every raw rate) and suites_ten.md, or suites_rest
…: for every id each one's rate, the ratios of ours to theirs, and their geometric mean over the
ids. EnvPool has a MuJoCo of its own; dm_control runs one environment, as it does.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from itertools import cycle
from pathlib import Path
from typing import Any, Literal

import numpy as np
import tyro

import pyfastenv
from pyfastenv.experiments import measure, sections
from pyfastenv.suites import (
    DM_CONTROL,
    METAWORLD,
    MJLAB,
    PLAYGROUND,
    camel,
    myosuite_ids,
    robotics_ids,
)

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tests" / "python"))
TEN = [
    "AcrobotSwingup-v1", "CartpoleSwingup-v1", "CheetahRun-v1", "FingerSpin-v1", "FishSwim-v1",
    "HopperHop-v1", "HumanoidWalk-v1", "QuadrupedWalk-v1", "ReacherEasy-v1", "WalkerWalk-v1",
]  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Options(sections.Options):
    """Which ids, and how."""

    which: tyro.conf.Positional[
        Literal["ten", "rest", "playground", "metaworld", "myosuite", "mjlab"]
    ]
    rounds: int = 10
    seconds: float = 0.5
    """Duration of one rate's measurement [s]."""
    threads: int = 2
    num_envs: int = 64
    processor_time: bool = False
    """Rates per second of processor time, of all threads."""
    ids: tuple[str, ...] = ()
    """Only these."""

    @property
    def rivals(self) -> list[str]:
        """With whom these are compared."""
        if self.which == "mjlab":
            return ["mjlab on a batch", "mjlab on Warp"]
        return ["EnvPool", *["dm_control"] * (self.which == "ten")]


def ids_of(options: Options) -> list[str]:
    """The tasks to measure."""
    if options.which == "ten":
        return TEN
    if options.which == "playground":
        return list(PLAYGROUND)
    if options.which == "metaworld":
        return [f"metaworld/{name}" for name in METAWORLD]
    if options.which == "myosuite":
        ids = myosuite_ids()
        own = [each for each in ids if not {"condition", "numeral", "thing"} & ids[each].keys()]
        return own + [each for each in ids if "thing" in ids[each]][13::30]
    if options.which == "mjlab":
        return [env_id for env_id in MJLAB if "Rough" not in env_id]
    import envpool

    theirs = set(envpool.list_all_envs())
    ours = (*DM_CONTROL, *robotics_ids())
    return [env_id for env_id in ours if env_id in theirs and env_id not in TEN]


def rivals_id(env_id: str) -> str:
    """EnvPool's name of an id."""
    suite, _, name = env_id.rpartition("/")
    task, _, version = name.rpartition("-")
    if suite == "metaworld":
        return f"MetaWorld/{camel(*task.split('-'))}-{version}"
    return name


def envpools(env_id: str, args: Options) -> Any:
    """EnvPool's environments, begun."""
    import envpool

    pool: Any = envpool.make(
        rivals_id(env_id),
        env_type="gymnasium",
        num_envs=args.num_envs,
        num_threads=args.threads,
        seed=0,
    )
    pool.reset()
    return pool


def motion_of(env_id: str, folder: str) -> dict[str, str]:
    """The argument of a task that follows a motion: one of 10 s that is made for it."""
    if "Tracking" not in env_id:
        return {}
    from mjlab_motion import own_motion

    return {"motion_file": str(own_motion(Path(folder) / "motion.npz", 500))}


def mjlabs(
    env_id: str, args: Options, batches: list[Any], motion: dict[str, str]
) -> dict[str, Any]:
    """mjlab's environments, begun: on a batch of ours and on its own backend."""
    import torch
    from mjlab.envs import ManagerBasedRlEnv, manager_based_rl_env
    from mjlab.sim import Simulation
    from mjlab.tasks.registry import load_env_cfg

    from pyfastenv.integrations import mjlab

    torch.set_num_threads(args.threads)
    actions = [torch.as_tensor(batch, dtype=torch.float32) for batch in batches]
    on_batch = partial(mjlab.Simulation, num_threads=args.threads)
    found = {}
    for name, simulation in zip(args.rivals, (on_batch, Simulation), strict=True):
        manager_based_rl_env.Simulation = simulation
        cfg = load_env_cfg(env_id)
        cfg.scene.num_envs = args.num_envs
        if motion:
            cfg.commands["motion"].motion_file = motion["motion_file"]
        env = ManagerBasedRlEnv(cfg, device="cpu")
        env.reset(seed=0)
        found[name] = env.step, actions, args.num_envs
    return found


def compare(env_id: str, args: Options, folder: str) -> sections.Row:
    """Rounds of ours and the rivals, each round beginning with the next one."""
    motion = motion_of(env_id, folder)
    ours = pyfastenv.make_vec(env_id, args.num_envs, num_threads=args.threads, **motion)
    space, rng = ours.single_action_space, np.random.default_rng(0)
    shape = (args.num_envs, *space.shape)
    # LQR's have no bounds
    low, high = (np.nan_to_num(each, posinf=1.0, neginf=-1.0) for each in (space.low, space.high))
    batches = [rng.uniform(low, high, shape) for _ in range(64)]
    ours.reset(seed=0)
    steps: dict[str, Any] = {"pyfastenv": (ours.step, batches, args.num_envs)}
    if args.which == "mjlab":
        steps |= mjlabs(env_id, args, batches, motion)
    else:
        pool = envpools(env_id, args)
        steps["EnvPool"] = pool.step, batches, args.num_envs
    if "dm_control" in args.rivals:
        from dm_control_suite import load

        single = load(env_id)
        single.reset()
        steps["dm_control"] = (single.step, [batch[0] for batch in batches], 1)

    def run(step: Any, turns: Iterator[Any], count: int) -> int:
        step(next(turns))
        return count

    runs = {name: partial(run, step, cycle(each), n) for name, (step, each, n) in steps.items()}
    clock = time.process_time if args.processor_time else time.perf_counter
    rates = measure.race(runs, args.seconds, args.rounds, clock)
    medians = {name: statistics.median(values) for name, values in rates.items()}
    stats = ours.stats()
    if "EnvPool" in steps:
        pool.close()
    ours.close()
    return {
        "env": env_id,
        "engine": stats["engine"],
        "engine_reason": stats["engine_reason"],
        "rates": rates,
        "medians": medians,
        "ratios": {name: medians["pyfastenv"] / medians[name] for name in args.rivals},
        "ratios_in_rounds": {
            name: measure.ratio(rates["pyfastenv"], rates[name]) for name in args.rivals
        },
    }


def main() -> None:
    options = tyro.cli(Options, description=__doc__)

    def rows() -> Iterator[sections.Row]:
        with tempfile.TemporaryDirectory() as folder:
            for env_id in options.ids or ids_of(options):
                yield compare(env_id, options, folder)

    sections.run(
        f"suites_{options.which}",
        {"rows": rows},
        options,
        template=Path(__file__).parent / "templates" / "suites.md",
        about={
            "which": options.which,
            "threads": options.threads,
            "num_envs": options.num_envs,
            "rounds": options.rounds,
            "seconds_per_round": options.seconds,
            "second": "second of processor time" if options.processor_time else "s",
        },
        flat=True,
    )


if __name__ == "__main__":
    main()
