"""Optuna over SAC's options, poor trials stopped early: ``python examples/sweep_optuna.py [trials]
[total_steps]``."""

import sys

import optuna

from pyfastenv.algorithms import sac
from pyfastenv.training.callbacks import Callback

num_trials = int(sys.argv[1]) if len(sys.argv) > 1 else 20
total_steps = int(sys.argv[2]) if len(sys.argv) > 2 else 10_000


class Report(Callback):
    """Tells Optuna of every evaluation, and stops a run that is worse than the others were."""

    def __init__(self, trial):
        self.trial = trial

    def on_evaluation(self, run, metrics):
        self.trial.report(metrics["eval/return"], run.step)
        if self.trial.should_prune():
            run.stop("pruned")


def objective(trial):
    config = sac.Config.preset(
        "Pendulum-v1",
        learning_rate=trial.suggest_float("learning_rate", 1e-4, 1e-2, log=True),
        gamma=trial.suggest_categorical("gamma", [0.95, 0.98, 0.99]),
        num_seeds=2,  # side by side
        total_steps=total_steps,
        learning_starts=total_steps // 10,
        eval_every=total_steps // 5,
        quiet=True,
    )
    result = sac.train(config, callbacks=[Report(trial)])
    if result.stopped == "pruned":
        raise optuna.TrialPruned
    return result.evaluation["eval/return"]


study = optuna.create_study(
    direction="maximize", pruner=optuna.pruners.MedianPruner(n_startup_trials=3)
)
study.optimize(objective, n_trials=num_trials)
print(f"return {study.best_value:,.0f} with {study.best_params}")
