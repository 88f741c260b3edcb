"""Sampling-based planning: an optimiser draws plans, rollouts say what each of them costs.

    from pyfastenv import planning
    planner = planning.Planner(planning.ModelRollouts(model, cost), horizon=50)
    data.ctrl = planner.act(data)

The plans are splines of the controls over time. See docs/physics.md.
"""

from __future__ import annotations

from pyfastenv.planning.cross_entropy import CrossEntropy
from pyfastenv.planning.env_rollouts import EnvRollouts
from pyfastenv.planning.model_rollouts import ModelRollouts
from pyfastenv.planning.mppi import MPPI
from pyfastenv.planning.planner import Planner
from pyfastenv.planning.policy import PlannerPolicy
from pyfastenv.planning.predictive_sampling import PredictiveSampling

__all__ = [
    "MPPI",
    "CrossEntropy",
    "EnvRollouts",
    "ModelRollouts",
    "Planner",
    "PlannerPolicy",
    "PredictiveSampling",
]
