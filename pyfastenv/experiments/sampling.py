"""Does a timeout on the result queue help synchronous sampling? The experiment of document 003.

Worker processes with shared memory and queues, as the document has them, beside pyfastenv's
barrier, send/recv and rollout: fixed numbers of iterations, round by round in turn.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import partial
from typing import Literal

import numpy as np
import torch

from pyfastenv.experiments import samplers
from pyfastenv.experiments.baselines.queue_workers import make_env
from pyfastenv.experiments.clock import Clock, memory_bytes, milliseconds, trim_memory
from pyfastenv.experiments.measure import available_memory_bytes
from pyfastenv.experiments.samplers import (
    ASYNC,
    BY_B,
    ENVPOOL,
    NONE,
    OBJECTS,
    PROCESSES,
    QUEUES,
    ROLLOUT,
    SEND_RECV,
    SMALL,
    STEP,
    Policy,
)
from pyfastenv.experiments.study import Contestant, Measurement, Row, Sizes, rounds
from pyfastenv.experiments.tables import median

_MJDATA_BYTES = 700 * 1024
_NEED_BYTES = {ENVPOOL: _MJDATA_BYTES, OBJECTS: 2 * _MJDATA_BYTES, ASYNC: 40 * 2**20}


@dataclass(frozen=True, kw_only=True)
class Config(Sizes):
    """Document 003: a timeout on the result queue."""

    workers: int = 8
    """Worker processes of the document's program."""
    envs_per_worker: tuple[int, ...] = (20, 4_000)
    """B: environments that each of them steps in a row."""
    timeout: tuple[float, ...] = (0.0001, 0.1)
    """How long each further worker is waited for [s]; beside it always: for all."""
    iterations: int = 1_000
    """Steps of every environment; with many of them in all rounds together."""
    rounds: int = 10
    """How often the document's program has its turn with each timeout."""
    fewer_workers: tuple[int, ...] = (1, 2, 4, 8)
    """Numbers of workers between which the regime changes."""
    networks: tuple[str, ...] = (SMALL, "256x256", "1024x1024x1024", "2200x2200", "3400x3400")
    """Hidden layers of policies; the last two have 20 and 47 MB."""
    network_rounds: int = 4
    """Rounds of all other comparisons, and of ours beside the document's runs."""
    objects_per_worker: int = 400
    """B with an environment object each."""
    device: Literal["cpu", "cuda"] = "cpu"
    """Where the policy computes; in `rollout` always the CPU."""


QUICK = Config(
    quick=True, workers=4, envs_per_worker=(20, 400), iterations=8, rounds=2, fewer_workers=(1, 2),
    networks=(SMALL, "1024x1024"), network_rounds=2, objects_per_worker=4,
)  # fmt: skip


def plan(config: Config) -> list[Measurement]:
    """Single calls first, then the document's runs, then by network, by workers, and for scale."""
    steps = 1_000 if config.quick else 5_000
    made = [Measurement("steps", {"what": "gymnasium"}, partial(_step_times, steps), steps * 5e-5)]
    sizes = sorted(
        {1, 20, 160, *(b * w for b in config.envs_per_worker for w in (1, config.workers))}
    )
    for network in config.networks:
        times = partial(_policy_times, network, sizes, config)
        made.append(Measurement("policy", {"network": network}, times, 2 * len(sizes)))
    small, large, short = config.envs_per_worker[0], max(config.envs_per_worker), config.timeout[0]
    queues = [(QUEUES, timeout) for timeout in (*config.timeout, NONE)]
    ours = [(PROCESSES, NONE), (STEP, NONE), (SEND_RECV, short), (BY_B, NONE), (ROLLOUT, NONE)]
    few = config.network_rounds
    for size in config.envs_per_worker:
        both = [_contestant(config, name, size, timeout=t) for name, t in (*queues, *ours)]
        for one in rounds(config.rounds, "runs", both):
            if one.about["contestant"] == QUEUES or one.about["round"] < few:
                made.append(one)
    short_ones = partial(_contestant, config, short=True)
    for size in config.envs_per_worker:
        for network in config.networks[1:]:
            both = [
                short_ones(name, size, network=network, timeout=timeout)
                for name, timeout in ((QUEUES, short), (QUEUES, NONE), (STEP, NONE), (BY_B, NONE))
            ]
            made += rounds(few, "networks", both)
    for size in (small, config.envs_per_worker[-1] // 4):
        both = [
            short_ones(QUEUES, size, workers=workers, timeout=timeout)
            for workers in config.fewer_workers
            for timeout in (short, NONE)
        ]
        made += rounds(few, "workers", both)
    next_network = config.networks[min(1, len(config.networks) - 1)]
    both = [
        short_ones(name, large, network=next_network, threads=threads)
        for name, threads in ((STEP, 1), (STEP, 2), (BY_B, 1), (ROLLOUT, 1))
    ]
    made += rounds(few, "threads", both, apart=True)
    both = [short_ones(name, config.objects_per_worker) for name in (QUEUES, OBJECTS)]
    made += rounds(few, "objects", both)
    scale = [(ENVPOOL, large // 4), (ASYNC, 2 if config.quick else 20), (ENVPOOL, large)]
    for name, size in scale[:2] if config.quick else scale:
        made.append(Measurement("scale", *short_ones(name, size)))
    return made


def _contestant(
    config: Config,
    name: str,
    size: int,
    *,
    network: str = SMALL,
    workers: int = 0,
    timeout: float = NONE,
    threads: int = 0,
    short: bool = False,
) -> Contestant:
    workers = workers or config.workers
    num_envs = workers * size
    parts = config.rounds if num_envs >= 1_000 else 1
    if short:  # some seconds; the largest network takes four for a single call
        parts = 5 if num_envs < 1_000 else 50 if num_envs < 10_000 else 250
        parts = 100 if threads else parts
    iterations = max(2 if short else 1, round(config.iterations / parts))
    about = {"contestant": name, "workers": workers, "B": size, "network": network}
    about |= {"policy threads": threads} if threads else {}
    run = partial(_run, name, network, workers, size, timeout, config.device, iterations, threads)
    per_step = 1.8e-5 if name in (QUEUES, OBJECTS) else 1.05e-5
    per_step += 0.0 if network == SMALL else Policy(network).megabytes / 2e5
    return about | {"timeout": timeout}, run, 3 + num_envs * iterations * per_step


def _run(
    name: str,
    network: str,
    workers: int,
    size: int,
    timeout: float,
    device: str,
    iterations: int,
    threads: int,
) -> Row:
    """So many steps of every environment, from the first reset on; none of it warms up.

    The policy computes on so many ``threads``; 0: on PyTorch's, of which a study sets one.
    """
    num_envs = workers * size
    wanted, free = _NEED_BYTES.get(name, 0) * num_envs / 2**30, available_memory_bytes() / 2**30
    if wanted > 0.9 * free:
        return {"skipped": f"needs {wanted:.0f} GiB of memory, {free:.0f} GiB are free"}
    trim_memory()
    before = memory_bytes()
    try:
        sampler = samplers.make(name, network, workers, size, timeout, device)
    except ImportError:
        return {"skipped": "not installed"}
    env_steps = receives = 0
    before_threads = torch.get_num_threads()
    torch.set_num_threads(threads or before_threads)
    try:
        with Clock(sampler.pids) as clock:
            while env_steps < iterations * num_envs:
                env_steps += next(sampler.receives)
                receives += 1
        memory = memory_bytes(sampler.pids) - before
    finally:
        torch.set_num_threads(before_threads)
        sampler.close()
        trim_memory()
    return clock.row() | {
        "iterations": iterations,
        "rate": env_steps / clock.seconds,
        "per_receive": env_steps / receives,
        "calls": receives * num_envs / env_steps,
        "memory_mib": memory / 2**20,
        "gaps": sampler.gaps[:100],
    }


def _step_times(count: int) -> Row:
    """CPU times of single steps of one gymnasium environment [s]: without other programs' time."""
    env = make_env()
    env.reset(seed=0)
    actions = np.random.default_rng(0).uniform(-1.0, 1.0, (count, 6)).astype(np.float32)
    times = []
    for action in actions:
        start = time.thread_time()
        truncated = env.step(action)[3]
        times.append(round(time.thread_time() - start, 9))
        if truncated:
            env.reset()
    env.close()
    return {"step_s": times}


def _policy_times(network: str, sizes: list[int], config: Config) -> Row:
    """Times of policy calls by batch size [s], on one thread."""
    policy = Policy(network, device=config.device)
    times = []
    for size in sizes:
        costly = size * policy.megabytes > 1e4
        call = partial(policy, np.zeros((size, 20)))
        repeats = 3 if costly or config.quick else 30
        times.append(median(milliseconds(call, repeats=repeats)) / 1e3)
    return {"sizes": sizes, "call_s": times}
