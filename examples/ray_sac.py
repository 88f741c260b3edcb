"""SAC by Ray actors, samplers and a learner: ``python examples/ray_sac.py --address auto``.

A sampler steps a pool of its own. The rows that it returns are an argument of the learner's next
call, and the policy that this returns is one of the sampler's: neither comes through this process.
A sampler that dies is replaced.
"""

import os
from dataclasses import replace
from itertools import count
from pathlib import Path

os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")

import ray
import torch
import tyro
from ray.exceptions import RayActorError

from pyfastenv.algorithms import sac
from pyfastenv.nn.streams import SeedStreams
from pyfastenv.nn.torch_policy import as_greedy
from pyfastenv.runs.evaluation import evaluate, make_eval_envs
from pyfastenv.runs.logger import MetricLogger
from pyfastenv.runs.seeds import Stream
from pyfastenv.training.collecting import SeedCollector


@ray.remote(num_cpus=1, scheduling_strategy="SPREAD")
class Sampler:
    """Environments, and what steps them."""

    def __init__(self, config):
        self.collector = SeedCollector(config)
        self.collector.reset()
        self.exploration = SeedStreams(config.streams(Stream.EXPLORATION))

    @ray.method(num_returns=2)
    def sample(self, policy, num_rows):
        """Rows ``(1, num_rows, width)`` of a policy, or of random actions; of ended episodes what
        they gave."""
        if policy is None:
            rows = self.collector.explore(num_rows, self.exploration)
        else:
            rows = self.collector.follow(policy, num_rows // self.collector.envs.num_envs)
        return rows.numpy(), self.collector.episode_metrics()


@ray.remote(num_cpus=1)
class Learner:
    """Networks, and the rows that they learn from."""

    def __init__(self, config):
        torch.set_num_threads(config.torch_threads)
        self.sac = sac.SAC(config)

    @ray.method(num_returns=2)
    def learn(self, rows):
        """Takes a gradient step per row; how many rows there have been, and the policy."""
        self.sac.env_pool.add(torch.tensor(rows))
        self.sac.global_step += rows.shape[1]
        if self.sac.global_step >= self.sac.config.learning_starts:
            self.sac.learn(rows.shape[1])
        return self.sac.global_step, self.sac.policies()


def main(
    run_dir: Path = Path("runs/ray_sac"),
    env_id: str = "Pendulum-v1",
    total_steps: int = 10_000,
    learning_starts: int = 1_000,
    num_samplers: int = 2,
    num_envs: int = 4,
    rows_per_call: int = 100,
    eval_every: int = 500,
    address: str = "local",
) -> None:
    """Trains.

    Args:
        run_dir: Where metrics.jsonl is written.
        env_id: The environment.
        total_steps: Environment steps of all samplers together.
        learning_starts: How many of them are random, before anything is learned.
        num_samplers: How many.
        num_envs: Environments of each.
        rows_per_call: Environment steps of a sampler between two policies.
        eval_every: Environment steps between evaluations.
        address: Of the cluster; "auto" on one of its nodes; "local" makes one of this machine.
    """
    ray.init(
        address,
        num_cpus=num_samplers + 1 if address == "local" else None,
        include_dashboard=False,
    )
    config = sac.Config.preset(
        env_id,
        total_steps=total_steps,
        learning_starts=learning_starts,
        num_envs=num_envs,
        num_threads=1,
        torch_threads=1,
        hidden_sizes=(64, 64),
        batch_size=128,
        learning_rate=1e-3,
    )
    run_dir.mkdir(parents=True, exist_ok=True)
    logger = MetricLogger(run_dir)
    eval_envs = make_eval_envs(env_id, {}, 50)
    learner = Learner.remote(config)
    numbers = count()
    calls = {}  # the learner's, by what it returns first

    def hire():
        number = next(numbers)  # each explores in a way of its own
        return number, Sampler.remote(replace(config, seed=config.seed + number))

    def go_on(sampler, policy):
        num_rows = learning_starts // num_samplers if policy is None else rows_per_call
        rows, episodes = sampler[1].sample.remote(policy, num_rows)
        step, policy = learner.learn.remote(rows)
        calls[step] = sampler, policy, episodes

    for _ in range(num_samplers):
        go_on(hire(), None)
    step, policy = 0, None
    while step < total_steps:
        (done,), _ = ray.wait(list(calls))
        sampler, learned, episodes = calls.pop(done)
        before = step
        try:
            step, metrics = ray.get([done, episodes])
        except RayActorError as error:
            if error.actor_id == learner._actor_id.hex():
                raise
            print(f"sampler {sampler[0]} is gone, another takes its place", flush=True)
            go_on(hire(), policy)
            continue
        policy = learned
        go_on(sampler, policy)
        metrics["sampler"] = sampler[0]
        if step // eval_every > before // eval_every:
            greedy = as_greedy(ray.get(policy))
            metrics |= evaluate(eval_envs, greedy, 50, config.seed).metrics()
            print(f"{step:>7,} steps  return {metrics['eval/return']:8.1f}", flush=True)
        logger.log(step, metrics)
    logger.close()
    eval_envs.close()


if __name__ == "__main__":
    tyro.cli(main)
