"""Benchmarks of sampling and training: ``python bench/python/train.py [--quick]``.

Rollouts against the physics limit; PPO against Stable-Baselines3's on HalfCheetah-v5, in steps/s
with the same hyper-parameters and in seconds to a return of 2,000. Writes train.json and train.md.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import policies
import torch
import tyro

import pyfastenv
from pyfastenv.algorithms.ppo import PPO, Config
from pyfastenv.experiments import measure, sections
from pyfastenv.nn.networks import MLP
from pyfastenv.runs.evaluation import evaluate
from pyfastenv.tools import contestants

Row = dict[str, Any]
NUM_THREADS = 2
GOAL = 2_000.0
# Stable-Baselines3's defaults but for the batch: 8 x 256 steps, 64 x 64, 10 epochs of 256
SB3 = {"num_envs": 8, "num_steps": 256, "minibatch_size": 256, "update_epochs": 10}


def rollouts(quick: bool) -> Iterator[Row]:
    """Share of the physics limit with a 64 x 64 policy; CartPole's rate with 128."""
    for env_id in ("HalfCheetah-v5", "Ant-v5", "Humanoid-v5"):
        for num_envs in (2, 8, 64, 1024):
            yield _share(env_id, num_envs, 0.2 if quick else 1.0, 3 if quick else 7)
    for num_envs in (8, 64, 1024):
        with closing(_envs("CartPole-v1", num_envs)) as envs:
            policy = MLP((4, 128, 2)).spec(distribution="categorical")
            batch = pyfastenv.RolloutBatch.allocate(envs, 2_000_000 // num_envs)
            policies.rollout_rate(envs, policy, batch)
            rates = [policies.rollout_rate(envs, policy, batch) for _ in range(3 if quick else 7)]
        yield {"env_id": "CartPole-v1", "num_envs": num_envs, "rate": measure.summary(rates)}


def _envs(env_id: str, num_envs: int) -> pyfastenv.FastVectorEnv:
    return pyfastenv.make_vec(env_id, num_envs, num_threads=NUM_THREADS, autoreset_mode="SameStep")


def _share(env_id: str, num_envs: int, seconds: float, repeats: int) -> Row:
    limit = contestants.PhysicsLimit(env_id, num_envs, NUM_THREADS)
    ours, limits = [], []
    with closing(_envs(env_id, num_envs)) as envs:
        policy, space = policies.untrained(envs), envs.single_action_space
        num_steps = policies.steps_taking(envs, policy, seconds)
        batch = pyfastenv.RolloutBatch.allocate(envs, num_steps)
        for _ in range(repeats):
            ours.append(policies.rollout_rate(envs, policy, batch))
            limits.append(limit.run(np.clip(batch.actions.numpy(), space.low, space.high)))
    return {
        "env_id": env_id,
        "num_envs": num_envs,
        "num_steps": num_steps,
        "rate": measure.summary(ours),
        "limit": measure.summary(limits),
        "share": measure.ratio(ours, limits),
    }


def throughput(quick: bool) -> Iterator[Row]:
    """PPO's steps/s with Stable-Baselines3's hyper-parameters, theirs and ours in turn."""
    total = 8_192 if quick else 40_960

    def ours() -> float:
        config = Config(env_id="HalfCheetah-v5", total_steps=total, num_threads=NUM_THREADS, **SB3)
        ppo = PPO(config)
        start = time.perf_counter()
        sample = update = 0.0
        while ppo.global_step < total:
            metrics = ppo.iterate()
            sample += metrics["time/sample_s"]
            update += metrics["time/update_s"]
        seconds = time.perf_counter() - start
        ppo.envs.close()
        shares.append((sample / seconds, update / seconds))
        return total / seconds

    def theirs() -> float:
        model = _sb3_model(seed=0)
        seconds = measure.seconds(partial(model.learn, total))
        model.get_env().close()
        return total / seconds

    shares: list[tuple[float, float]] = []
    rates = measure.interleave({"pyfastenv": ours, "Stable-Baselines3": theirs}, 2 if quick else 5)
    yield {
        "rates": rates,
        "summary": {name: measure.summary(values) for name, values in rates.items()},
        "ratio": measure.ratio(rates["pyfastenv"], rates["Stable-Baselines3"]),
        "sampling_share": float(np.median([s for s, _ in shares])),
        "update_share": float(np.median([u for _, u in shares])),
    }


def _sb3_model(seed: int) -> Any:
    import gymnasium
    from stable_baselines3 import PPO as TheirPPO
    from stable_baselines3.common.env_util import make_vec_env
    from stable_baselines3.common.vec_env import VecNormalize

    envs = VecNormalize(make_vec_env(lambda: gymnasium.make("HalfCheetah-v5"), n_envs=8, seed=seed))
    return TheirPPO(
        "MlpPolicy", envs, n_steps=256, batch_size=256, n_epochs=10, device="cpu", seed=seed
    )


def goal(quick: bool) -> Iterator[Row]:
    """Seconds until the last 20 training episodes average 2,000, each with its own settings."""
    limit = 20.0 if quick else 240.0
    for seed in range(1 if quick else 2):
        for name, run in (("pyfastenv", _ours_to_goal), ("Stable-Baselines3", _sb3_to_goal)):
            seconds, steps, reached = run(seed, limit)
            about = {"name": name, "seed": seed}
            yield about | {"seconds": seconds, "steps": steps, "reached": reached}


def _ours_to_goal(seed: int, limit: float) -> tuple[float, int, bool]:
    start = time.perf_counter()
    ppo = PPO(Config.preset("HalfCheetah-v5", seed=seed, num_threads=NUM_THREADS))
    returns: list[float] = []
    while True:
        ppo.iterate()
        assert ppo.episodes is not None
        returns += ppo.episodes.returns.tolist()
        seconds = time.perf_counter() - start
        reached = len(returns) >= 20 and float(np.mean(returns[-20:])) >= GOAL
        if reached or seconds > limit or ppo.global_step >= ppo.config.total_steps:
            break
    space = pyfastenv.make_vec("HalfCheetah-v5", 10, autoreset_mode="SameStep")
    print(f"    greedy: {float(evaluate(space, ppo.eval_policy(), 10, 0).returns.mean()):,.0f}")
    space.close()
    ppo.envs.close()
    return seconds, ppo.global_step, reached


def _sb3_to_goal(seed: int, limit: float) -> tuple[float, int, bool]:
    from stable_baselines3.common.callbacks import BaseCallback

    class Stop(BaseCallback):
        reached = False
        start = 0.0

        def _on_rollout_end(self) -> None:
            returns = [episode["r"] for episode in self.model.ep_info_buffer or []]
            self.reached = len(returns) >= 20 and float(np.mean(returns[-20:])) >= GOAL

        def _on_step(self) -> bool:
            return not self.reached and time.perf_counter() - self.start < limit

    stop = Stop()
    stop.start = time.perf_counter()
    model = _sb3_model(seed)
    model.learn(100_000_000, callback=stop)
    seconds = time.perf_counter() - stop.start
    model.get_env().close()
    return seconds, int(model.num_timesteps), stop.reached


SECTIONS: dict[str, Callable[[bool], Iterator[Row]]] = {
    "rollouts": rollouts,
    "throughput": throughput,
    "goal": goal,
}


def main() -> None:
    options = tyro.cli(sections.Options, description=__doc__)
    torch.set_num_threads(1)
    template = Path(__file__).parent / "templates" / "train.md"
    measured = {name: partial(section, options.quick) for name, section in SECTIONS.items()}
    sections.run("train", measured, options, template=template)


if __name__ == "__main__":
    main()
