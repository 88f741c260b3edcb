"""Sections about engines: lanes and mj_step beside the physics limit, with and without a policy.

The physics limit is a bare C++ loop of ``mj_step``. PPO's weights must be the same with either
engine.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any

import numpy as np
import peers
import policies
import torch
from contest import Recorder, contest
from settings import MANY, TASK_IDS, Row, Settings
from torch.utils._pytree import tree_leaves

import pyfastenv
from pyfastenv.algorithms.ppo import PPO, Config
from pyfastenv.experiments import measure
from pyfastenv.tools.contestants import Contestant, Ours, PhysicsLimit, random_actions, time_steps

SECONDS = 0.12  # of ours; mj_step takes several times as long for as many steps
RIVALS: list[type[Contestant]] = [Ours, peers.OursByMujoco, PhysicsLimit]


def stepping(settings: Settings) -> Iterator[Row]:
    """Every robot's ``step`` against the physics limit, with random actions."""
    return _stepping(settings, (8, 64, 1024, *([] if settings.quick else [MANY])))


def trained(settings: Settings) -> Iterator[Row]:
    """The same with the actions of trained policies: states in which robots walk."""
    return _stepping(settings, (64, 1024), policies.actions)


def _stepping(
    settings: Settings, sizes: Iterable[int], record: Recorder = random_actions
) -> Iterator[Row]:
    for env_id in TASK_IDS:
        for num_envs in sizes:
            how = settings.of(num_envs, seconds=SECONDS)
            yield contest(env_id, num_envs, RIVALS, record=record, **how) | _engine(env_id)


def _engine(env_id: str) -> dict[str, str]:
    envs = pyfastenv.make_vec(env_id)
    stats = envs.stats()
    envs.close()
    return {"engine": stats["engine"], "engine_reason": stats["engine_reason"]}


def rollouts(settings: Settings) -> Iterator[Row]:
    """Rollouts with a 64 x 64 policy, of both engines, and ``step`` with recorded actions."""
    for env_id in TASK_IDS:
        for num_envs in (8, 64, 1024):
            about = {"env_id": env_id, "num_envs": num_envs, "num_threads": settings.num_threads}
            yield about | measure.compared(_rollout_rates(env_id, num_envs, settings))


def _rollout_rates(env_id: str, num_envs: int, settings: Settings) -> dict[str, list[float]]:
    made = {
        engine: pyfastenv.make_vec(
            env_id,
            num_envs,
            num_threads=settings.num_threads,
            autoreset_mode="SameStep",
            engine=engine,
        )
        for engine in ("auto", "mujoco")
    }
    envs = made["auto"]
    policy = policies.untrained(envs)
    num_steps = policies.steps_taking(envs, policy, min(settings.seconds, SECONDS))
    batch = pyfastenv.RolloutBatch.allocate(envs, num_steps)

    def roll(engine: str) -> float:
        return policies.rollout_rate(made[engine], policy, batch)

    def step() -> float:
        envs.reset(seed=0)
        space = envs.single_action_space
        return time_steps(envs.step, np.clip(batch.actions.numpy(), space.low, space.high))

    rates = measure.interleave(
        {
            "rollout": partial(roll, "auto"),
            "step": step,
            "rollout, mj_step": partial(roll, "mujoco"),
        },
        settings.repeats,
    )
    for each in made.values():
        each.close()
    return rates


def ppo(settings: Settings) -> Iterator[Row]:
    """Seconds of PPO on HalfCheetah-v5 from first to last step, with either engine in turn."""
    total = 20_000 if settings.quick else 1_000_000
    times: dict[str, list[Row]] = {"lanes": [], "mujoco": []}
    digests = set()

    def train(engine: Any) -> float:
        config = Config.preset(
            "HalfCheetah-v5",
            total_steps=total,
            num_threads=settings.num_threads,
            engine=engine,
        )
        torch.set_num_threads(config.torch_threads)  # as a training does
        algorithm = PPO(config)
        parts = {"sample_s": 0.0, "update_s": 0.0}
        start = time.perf_counter()
        while algorithm.global_step < total:
            metrics = algorithm.iterate()
            for name in parts:
                parts[name] += metrics[f"time/{name}"]
        seconds = time.perf_counter() - start
        times[engine].append({"seconds": seconds, **parts})
        digests.add(_digest(algorithm.state_dict()))
        algorithm.envs.close()
        return seconds

    seconds = measure.interleave(
        {name: partial(train, name) for name in times}, 1 if settings.quick else 2
    )
    if len(digests) != 1:
        raise AssertionError("PPO's weights depend on the engine")
    yield {
        "total_steps": total,
        "runs": times,
        "ratio": measure.ratio(seconds["lanes"], seconds["mujoco"]),
        "weights_sha256": digests.pop(),
    }


def _digest(state: Any) -> str:
    """A digest of all tensors in a state."""
    digest = hashlib.sha256()
    for leaf in tree_leaves(state):
        if isinstance(leaf, torch.Tensor):
            digest.update(leaf.detach().cpu().contiguous().numpy().tobytes())
    return digest.hexdigest()
