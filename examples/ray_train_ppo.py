"""PPO over a cluster by Ray Train: ``python examples/ray_train_ppo.py --address auto
--run-dir /shared/run``.

Every worker steps environments of its own and learns with the gradients of all. When one dies, Ray
Train starts all of them again, and the training goes on from its last checkpoint.
"""

import json
import os
from pathlib import Path

os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")

import ray
import tyro
from ray.train import FailureConfig, RunConfig, ScalingConfig
from ray.train.torch import TorchTrainer

from pyfastenv.algorithms import ppo


def work(options):
    """A worker: Ray Train has made the workers a process group, which the training finds."""
    ppo.train(ppo.Config.preset(**options))


def main(
    run_dir: Path = Path("runs/ray_train"),
    env_id: str = "Hopper-v5",
    total_steps: int = 300_000,
    checkpoint_every: int = 30_000,
    num_workers: int = 2,
    address: str = "local",
) -> None:
    """Trains.

    Args:
        run_dir: The run folder, on a disk that all nodes share.
        env_id: The environment.
        total_steps: Environment steps of all workers together.
        checkpoint_every: Environment steps between checkpoints.
        num_workers: How many, on as many nodes as there are.
        address: Of the cluster; "auto" on one of its nodes; "local" makes one of this machine.
    """
    ray.init(
        address,
        num_cpus=num_workers if address == "local" else None,
        include_dashboard=False,
    )
    run_dir = run_dir.absolute()
    options = {
        "env_id": env_id,
        "total_steps": total_steps,
        "checkpoint_every": checkpoint_every,
        "num_threads": 1,  # as many as a worker has CPUs
        "run_dir": run_dir,
        "auto_resume": True,
    }
    trainer = TorchTrainer(
        work,
        train_loop_config=options,
        scaling_config=ScalingConfig(num_workers=num_workers, placement_strategy="SPREAD"),
        run_config=RunConfig(
            name="ray", storage_path=str(run_dir), failure_config=FailureConfig(max_failures=3)
        ),
    )
    trainer.fit()
    result = json.loads((run_dir / "result.json").read_text())
    print(f"return {result['evaluation']['eval/return']:,.0f}; everything else is in {run_dir}")


if __name__ == "__main__":
    tyro.cli(main)
