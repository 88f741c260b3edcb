"""A robot follows a joystick: ``python examples/walk.py ROBOT [FOLDER] [SEED] [SHARE]``.

ROBOT: go1, rough, berkeley, g1 or t1. Trainings under pushes, each from where the one before it
ended: Go1's trot on the spot, walk, less noise; for rough, then on all grounds and on the harder
half of them; a humanoid's first steps, its walk with less noise.
SHARE: of their steps, to try it out. Once stopped, the same command goes on.
"""

import json
import sys
from pathlib import Path
from typing import Any

from pyfastenv.algorithms import ppo

JUMPS = {"acceleration": (1000.0, 1000.0, 1000.0)}  # the command is where the joystick is
TROT = {
    "tracking_lin_vel_weight": 1.0,
    "tracking_ang_vel_weight": 0.5,
    "trot_weight": 2.0,
    "landing_weight": -1.0,
}
PUSHES = (0.5, 0.5, 0.4, 0.52, 0.52, 0.78)  # the tasks'


def pushes(times: float) -> dict[str, tuple[float, ...]]:
    """Pushes so many times as strong as the tasks'."""
    return {"push_velocity": tuple(times * each for each in PUSHES)}


GO1 = {
    "go1_trot": {
        "total_steps": 3_400_000,
        "anneal_steps": 12_000_000,
        "env_kwargs": JUMPS | TROT,
    },
    "go1_walk": {
        "total_steps": 1_500_000,
        "anneal_steps": 12_000_000,
        "env_kwargs": JUMPS,
        "entropy_coef": 0.01,
    },
    "go1": {
        "total_steps": 3_000_000,
        "anneal_steps": 4_000_000,
        "env_kwargs": JUMPS,
        "eval_env_kwargs": {"acceleration": (2.0, 2.0, 4.0)},
        "learning_rate": 6e-4,
        "entropy_coef": 0.002,
        "entropy_coef_end": -0.01,
    },
}
GROUNDS = {
    "rough_all": {"total_steps": 6_000_000},
    "rough": {
        "total_steps": 10_000_000,
        "env_kwargs": {"level_low": 5, "level_start": (5, 9), **pushes(1.2)},
        "eval_env_kwargs": {"level_low": 0, "level_start": (0, 9), **pushes(1.0)},
    },
}
STEPS = {
    "total_steps": 2_580_000,
    "anneal_steps": 12_000_000,
    "num_envs": 512,
    "minibatch_size": 3072,
    "entropy_coef": 0.004,
    "env_kwargs": {
        "tracking_lin_vel_weight": 2.0,
        "tracking_ang_vel_weight": 1.0,
        "iterations": 1,
    },
    "eval_env_kwargs": {"iterations": 3},
}
WALK = {
    "total_steps": 7_000_000,
    "anneal_steps": 8_000_000,
    "learning_rate": 8e-4,
    "entropy_coef": -0.003,
    "entropy_coef_end": -0.015,
    "env_kwargs": pushes(1.4),
    "eval_env_kwargs": pushes(1.0),
}
TASKS = {
    "go1": "Go1Trot-v0",
    "rough": "Go1RoughTerrain-v0",
    "berkeley": "BerkeleyHumanoidWalk-v0",
    "g1": "G1Walk-v0",
    "t1": "T1Walk-v0",
}
TRAININGS: dict[str, dict[str, Any]] = {"go1": GO1, "rough": GO1 | GROUNDS}
TRAININGS |= {name: {f"{name}_steps": STEPS, name: WALK} for name in ("berkeley", "g1", "t1")}

robot = sys.argv[1] if len(sys.argv) > 1 else ""
if robot not in TRAININGS:
    sys.exit(f"expected a robot: {', '.join(TRAININGS)}")
folder = Path(sys.argv[2] if len(sys.argv) > 2 else "runs")
seed = int(sys.argv[3]) if len(sys.argv) > 3 else 0
share = float(sys.argv[4]) if len(sys.argv) > 4 else 1.0
before = None
for name, options in TRAININGS[robot].items():
    env_id = TASKS[name.partition("_")[0]]
    preset = "Go1RoughTerrain" if name in GROUNDS else "Go1Trot"
    given = ppo.Config.presets[preset] | options | {"from_run": before, "seed": seed}
    given["total_steps"] = int(share * given["total_steps"])
    before = folder / name
    ended = before / "result.json"
    if ended.exists() and json.loads(ended.read_text())["global_step"] >= given["total_steps"]:
        print(f"{name}: done; everything is in {before}")
        continue
    result = ppo.train(ppo.Config(env_id=env_id, run_dir=before, auto_resume=True, **given))
    print(f"{name}: return {result.evaluation['eval/return']:,.1f}; everything is in {before}")
