"""The contestants of the experiment `sampling`: loops of policy and environments.

All go through the same :class:`Policy`, except the barrier-free rollout, whose policy is in the
core. Results are copied once as the document does, and dropped. Measures nothing but how far the
workers are apart.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import gymnasium
import numpy as np
import torch
from numpy.typing import NDArray

import pyfastenv
from pyfastenv.experiments.baselines.queue_workers import (
    ACTION_SIZE,
    ENV_ID,
    OBS_SIZE,
    QueueWorkers,
    make_env,
    process_context,
)
from pyfastenv.experiments.measure import quiet_stderr
from pyfastenv.nn.networks import MLP
from pyfastenv.vector.cpus import available_cpus

Array = NDArray[Any]
QUEUES, OBJECTS, PROCESSES = "queues", "queues, environment objects", "queues, our physics"
STEP, SEND_RECV, BY_B, ROLLOUT = "step", "send/recv", "send/recv by B", "rollout"
ENVPOOL, ASYNC = "EnvPool", "gymnasium Async"
OURS = (STEP, SEND_RECV, BY_B, ROLLOUT)
BLOCK_OF = {QUEUES: "rows", OBJECTS: "objects", PROCESSES: "ours"}  # what their workers step
SMALL = "64x64"  # the document's policy
NONE = 0.0  # no timeout, in results.json
SEED = 0
_MAX_GAPS = 500


class Policy:
    """A Gaussian MLP policy; actions are clipped to [-1, 1].

    Args:
        network: Widths of its hidden layers, such as ``"64x64"``; tanh between.
        obs_size: Of the environments.
        device: Where it computes.
    """

    def __init__(self, network: str, *, obs_size: int = OBS_SIZE, device: str = "cpu"):
        sizes = (obs_size, *map(int, network.split("x")), ACTION_SIZE)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(SEED)
            self.network = MLP(sizes, activation="tanh", gain=None).to(device)
        self._device = device

    @property
    def megabytes(self) -> float:
        """The size of its parameters in float32."""
        return sum(p.numel() for p in self.network.parameters()) * 4 / 1e6

    @torch.no_grad()
    def __call__(self, obs: Array) -> Array:
        """``(n, obs_size)`` observations to ``(n, 6)`` float32 actions."""
        inputs = torch.as_tensor(obs, dtype=torch.float32, device=self._device)
        mean = self.network.evaluate(inputs[None])[0][0]
        actions: Array = (mean + torch.randn_like(mean)).clamp_(-1.0, 1.0).cpu().numpy()
        return actions


@dataclass
class Sampler:
    """A contestant under way: it takes results, asks the policy and sends its actions."""

    receives: Iterator[int]  # how many environment steps came each time
    close: Callable[[], object]  # frees memory, threads and processes
    pids: Sequence[int] = ()  # of worker processes
    # the slowest worker's step minus the fastest's, where all have been waited for [s]
    gaps: list[float] = field(default_factory=list)


def make(
    name: str, network: str, num_workers: int, size: int, timeout: float, device: str
) -> Sampler:
    """A contestant by its name, its environments reset.

    Args:
        name: Of the contestant.
        network: Hidden layers of its policy.
        num_workers: Processes, if it has them; as many times ``size`` environments in any case.
        size: B.
        timeout: [s], or :data:`NONE`: for each further worker, but of ``recv`` for all results.
        device: Where the policy computes; in ``rollout`` always the CPU.

    Raises:
        ImportError: Its package is not installed.
    """
    num_envs = num_workers * size
    policy = Policy(network, obs_size=17 if name == ENVPOOL else OBS_SIZE, device=device)
    if name in BLOCK_OF:
        workers = QueueWorkers(BLOCK_OF[name], num_workers, size)
        sampler = Sampler(iter(()), workers.close, workers.pids)
        sampler.receives = _queues(policy, workers, timeout or None, sampler.gaps)
    else:
        envs = {ENVPOOL: _envpool, ASYNC: _gymnasium_async}.get(name, our_envs)(num_envs)
        pids = [process.pid for process in getattr(envs, "processes", ())]
        if name == ROLLOUT:
            receives = _rollout(policy, envs, 20 if num_envs < 1_000 else 2)
        elif name in (SEND_RECV, BY_B):
            receives = _send_recv(policy, envs, timeout or None, size if name == BY_B else None)
        else:
            receives = _step(policy, envs, np.float64 if name == ENVPOOL else np.float32)
        sampler = Sampler(receives, envs.close, pids)
    try:
        next(sampler.receives)  # resets
    except BaseException:
        sampler.close()
        raise
    return sampler


def _queues(
    policy: Policy, workers: QueueWorkers, timeout: float | None, gaps: list[float]
) -> Iterator[int]:
    """The document's loop over worker processes (:mod:`..baselines.queue_workers`)."""
    count = workers.num_workers
    obs: Array = workers.reset(SEED, _directions(count * workers.envs_per_worker))
    results: Sequence[int] = range(count)
    received = 0
    while True:
        for worker, actions in zip(results, np.split(policy(obs), len(results)), strict=True):
            workers.send(worker, actions)
        yield received
        arrays = workers.receive(timeout)
        results, received = list(arrays), len(arrays) * workers.envs_per_worker
        obs = np.concatenate([each["next_obs"] for each in arrays.values()])
        if len(results) == count and len(gaps) < _MAX_GAPS:
            gaps.append(float(np.ptp(workers.step_seconds)))


def _step(policy: Policy, envs: Any, dtype: type) -> Iterator[int]:
    """``step`` of a vector environment: pyfastenv's, gymnasium's or EnvPool's."""
    obs = envs.reset()[0]
    yield 0
    while True:
        obs = envs.step(policy(obs).astype(dtype, copy=False))[0]
        yield len(obs)


def _send_recv(
    policy: Policy, envs: pyfastenv.FastVectorEnv, timeout: float | None, batch: int | None
) -> Iterator[int]:
    """pyfastenv's ``send`` and ``recv``, so many results at a time; None: all under way, or what
    has come at the timeout."""
    envs.send(policy(envs.reset()[0]))
    yield 0
    while True:
        obs, _, _, _, infos = envs.recv(batch, timeout, max_envs=batch)
        envs.send(policy(obs), infos["env_id"])
        yield len(obs)


def _rollout(policy: Policy, envs: pyfastenv.FastVectorEnv, num_steps: int) -> Iterator[int]:
    """pyfastenv's ``rollout``: the workers choose the actions themselves."""
    envs.reset()
    log_std = np.zeros((1, ACTION_SIZE), np.float32)
    spec = policy.network.spec(distribution="gaussian", log_std=log_std)
    core_policy = spec.to_core(envs.single_action_space)
    batch = pyfastenv.RolloutBatch.allocate(envs, num_steps)
    yield 0
    while True:
        pyfastenv.rollout(envs, core_policy, num_steps, out=batch)
        yield num_steps * envs.num_envs


def our_envs(num_envs: int) -> pyfastenv.FastVectorEnv:
    """pyfastenv's environments, every one with its task."""
    envs = pyfastenv.make_vec(
        ENV_ID, num_envs, autoreset_mode="SameStep", obs_dtype="float32", copy=False, infos=False
    )
    envs.reset_task(_directions(num_envs)[:, None])
    envs.reset(seed=SEED)
    return envs


def _gymnasium_async(num_envs: int) -> Any:
    """gymnasium's ``AsyncVectorEnv`` of the baseline's environment: one process for each."""
    context = process_context().get_start_method()
    mode = gymnasium.vector.AutoresetMode.SAME_STEP
    return gymnasium.vector.AsyncVectorEnv(
        [make_env] * num_envs, context=context, autoreset_mode=mode
    )


def _envpool(num_envs: int) -> Any:
    """EnvPool's HalfCheetah-v5, on as many threads as pyfastenv takes."""
    import envpool

    threads = min(num_envs, available_cpus())
    with quiet_stderr():
        return envpool.make(
            "HalfCheetah-v5",
            env_type="gymnasium",
            num_envs=num_envs,
            num_threads=threads,
            seed=SEED,
        )


def _directions(num_envs: int) -> Array:
    return 2.0 * np.random.default_rng(SEED).integers(0, 2, num_envs) - 1.0
