"""Go1 follows a joystick under pushes: ``python examples/walk_go1.py [FOLDER] [SEED] [SHARE]``.

Three trainings, each from where the one before it ended: a trot on the spot, the walk, less noise.
SHARE: of their steps, to try it out.
"""

import sys
from pathlib import Path

from pyfastenv.algorithms import ppo

JUMPS = {"acceleration": (1000.0, 1000.0, 1000.0)}  # the command is where the joystick is
TROT = {
    "tracking_lin_vel_weight": 1.0,
    "tracking_ang_vel_weight": 0.5,
    "trot_weight": 2.0,
    "landing_weight": -1.0,
}
STAGES = {
    "trot": {"total_steps": 5_200_000, "anneal_steps": 12_000_000, "env_kwargs": JUMPS | TROT},
    "walk": {
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

folder = Path(sys.argv[1] if len(sys.argv) > 1 else "runs")
seed = int(sys.argv[2]) if len(sys.argv) > 2 else 0
share = float(sys.argv[3]) if len(sys.argv) > 3 else 1.0
before = None
for name, options in STAGES.items():
    steps = int(share * options["total_steps"])
    given = options | {"total_steps": steps, "from_run": before, "seed": seed}
    before = folder / name
    result = ppo.train(ppo.Config.preset("Go1Trot-v0", run_dir=before, **given))
    print(f"{name}: return {result.evaluation['eval/return']:,.1f}; everything is in {before}")
