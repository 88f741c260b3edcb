"""Ray Tune over PPO's options on all machines of a cluster: ``python examples/sweep_ray.py
[total_steps]``."""

import sys
from pathlib import Path

import ray
from ray import tune

from pyfastenv.algorithms import ppo
from pyfastenv.training.callbacks import Callback

total_steps = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000


class Report(Callback):
    """Tells Ray of every evaluation."""

    def on_evaluation(self, run, metrics):
        tune.report({"return": metrics["eval/return"], "step": run.step})


def trial(options):
    config = ppo.Config.preset(
        "CartPole-v1",
        num_threads=1,  # as many as the trial has CPUs
        total_steps=total_steps,
        eval_every=total_steps // 4,
        run_dir=Path("run"),  # in the trial's own folder
        quiet=True,
        **options,
    )
    ppo.train(config, callbacks=[Report()])


ray.init(num_cpus=2, include_dashboard=False)  # on a cluster: ray.init(address="auto")
tuner = tune.Tuner(
    tune.with_resources(trial, {"cpu": 1}),
    param_space={"learning_rate": tune.grid_search([1e-3, 1e-2]), "seed": tune.grid_search([1, 2])},
    tune_config=tune.TuneConfig(metric="return", mode="max"),
)
best = tuner.fit().get_best_result()
print(f"return {best.metrics['return']:,.0f} with {best.config}")
