"""The contestants of the experiment `sampling`: loops of policy and environments; their clock.

All go through the same :class:`Policy`, except the barrier-free rollout, whose policy is in the
core. Results are copied once as the document does, and dropped. Knows no report.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import gymnasium
import numpy as np
import torch
from numpy.typing import NDArray

import pyfastenv
from pyfastenv.experiments.measure import quiet_stderr
from pyfastenv.experiments.queue_workers import (
    ACTION_SIZE,
    ENV_ID,
    OBS_SIZE,
    QueueWorkers,
    make_env,
    process_context,
)
from pyfastenv.experiments.study import Row
from pyfastenv.nn.networks import MLP

Array = NDArray[Any]
SEED = 0
NUM_WORKERS = 8
_MAX_GAPS = 500
_WARM_UP = 4_000  # [environment steps] at the most


@dataclass
class Counts:
    """What a sampler has done so far."""

    env_steps: int = 0
    receives: int = 0
    # the slowest worker's step minus the fastest's, where all have been waited for [s]
    gaps: list[float] = field(default_factory=list)


class Policy:
    """A Gaussian MLP policy; actions are clipped to [-1, 1].

    Args:
        hidden: Widths of the layers, tanh between.
        device: Where it computes.
        obs_size: Of the environments.
    """

    def __init__(self, hidden: Sequence[int], device: str = "cpu", obs_size: int = OBS_SIZE):
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(SEED)
            self.network = MLP((obs_size, *hidden, ACTION_SIZE), activation="tanh").to(device)
        self._device = device

    @torch.no_grad()
    def __call__(self, obs: Array) -> Array:
        """``(n, obs_size)`` observations to ``(n, 6)`` float32 actions."""
        inputs = torch.as_tensor(obs, dtype=torch.float32, device=self._device)
        mean = self.network.evaluate(inputs[None])[0][0]
        actions: Array = (mean + torch.randn_like(mean)).clamp_(-1.0, 1.0).cpu().numpy()
        return actions

    def spec(self) -> pyfastenv.PolicySpec:
        """The same policy for :func:`pyfastenv.rollout`."""
        return self.network.spec(
            distribution="gaussian", log_std=np.zeros((1, ACTION_SIZE), np.float32)
        )


class Sampler(Protocol):
    """A contestant. ``run`` goes on where it stopped."""

    counts: Counts
    pids: list[int]

    def run(self, env_steps: int) -> None:
        """Samples until so many environment steps more have been received, or a few above."""

    def close(self) -> None:
        """Frees memory, threads and processes."""


class QueueSampler:
    """The document's loop over worker processes (:mod:`pyfastenv.experiments.queue_workers`)."""

    def __init__(self, policy: Policy, envs_per_worker: int, block: str, timeout: float | None):
        self.counts = Counts()
        self._policy, self._timeout = policy, timeout
        self._workers = QueueWorkers(block, NUM_WORKERS, envs_per_worker)
        try:
            self.pids = self._workers.pids
            directions = _directions(NUM_WORKERS * envs_per_worker)
            obs = self._workers.reset(SEED, directions)
            for i, actions in enumerate(np.split(policy(obs), NUM_WORKERS)):
                self._workers.send(i, actions)
        except BaseException:
            self._workers.close()
            raise

    def run(self, env_steps: int) -> None:
        counts, workers = self.counts, self._workers
        end = counts.env_steps + env_steps
        while counts.env_steps < end:
            results = workers.receive(self._timeout)
            obs = np.concatenate([result["next_obs"] for result in results.values()])
            actions = np.split(self._policy(obs), len(results))
            for worker, part in zip(results, actions, strict=True):
                workers.send(worker, part)
            counts.env_steps += len(obs)
            counts.receives += 1
            if len(results) == NUM_WORKERS and len(counts.gaps) < _MAX_GAPS:
                counts.gaps.append(float(np.ptp(workers.step_seconds)))

    def close(self) -> None:
        self._workers.close()


class StepSampler:
    """``step`` of a vector environment: pyfastenv's, gymnasium's or EnvPool's."""

    def __init__(self, policy: Policy, envs: Any, dtype: type = np.float32):
        self.counts = Counts()
        self.pids = [process.pid for process in getattr(envs, "processes", ())]
        self._policy, self._envs, self._dtype = policy, envs, dtype
        self._obs: Array = envs.reset()[0]

    def run(self, env_steps: int) -> None:
        end = self.counts.env_steps + env_steps
        while self.counts.env_steps < end:
            actions: Array = self._policy(self._obs).astype(self._dtype, copy=False)
            self._obs = self._envs.step(actions)[0]
            self.counts.env_steps += len(actions)
            self.counts.receives += 1

    def close(self) -> None:
        self._envs.close()


class SendRecvSampler:
    """pyfastenv's ``send`` and ``recv``.

    Args:
        policy: Chooses the actions.
        num_envs: How many environments.
        timeout: Of ``recv`` [s].
        batch: So many results at a time; None: all under way, or what has come at the timeout.
    """

    def __init__(
        self, policy: Policy, num_envs: int, timeout: float | None, batch: int | None = None
    ):
        self.counts = Counts()
        self.pids: list[int] = []
        self._policy, self._timeout, self._batch = policy, timeout, batch
        self._envs = our_envs(num_envs)
        self._envs.send(policy(self._envs.reset()[0]))

    def run(self, env_steps: int) -> None:
        counts, envs = self.counts, self._envs
        end = counts.env_steps + env_steps
        while counts.env_steps < end:
            obs, _, _, _, infos = envs.recv(self._batch, self._timeout, max_envs=self._batch)
            envs.send(self._policy(obs), infos["env_id"])
            counts.env_steps += len(obs)
            counts.receives += 1

    def close(self) -> None:
        self._envs.recv()
        self._envs.close()


class RolloutSampler:
    """pyfastenv's ``rollout``: the workers choose the actions themselves."""

    def __init__(self, policy: Policy, num_envs: int, num_steps: int):
        self.counts = Counts()
        self.pids: list[int] = []
        self._envs = our_envs(num_envs)
        self._envs.reset()
        self._policy = policy.spec().to_core(self._envs.single_action_space)
        self._batch = pyfastenv.RolloutBatch.allocate(self._envs, num_steps)

    def run(self, env_steps: int) -> None:
        batch = self._batch
        end = self.counts.env_steps + env_steps
        while self.counts.env_steps < end:
            pyfastenv.rollout(self._envs, self._policy, batch.num_steps, out=batch)
            self.counts.env_steps += batch.num_steps * batch.num_envs
            self.counts.receives += 1

    def close(self) -> None:
        self._envs.close()


def our_envs(num_envs: int) -> pyfastenv.FastVectorEnv:
    """pyfastenv's environments, every one with its task."""
    envs = pyfastenv.make_vec(
        ENV_ID, num_envs, autoreset_mode="SameStep", obs_dtype="float32", copy=False, infos=False
    )
    envs.reset_task(_directions(num_envs)[:, None])
    envs.reset(seed=SEED)
    return envs


def gymnasium_async(num_envs: int) -> Any:
    """gymnasium's ``AsyncVectorEnv`` of the baseline's environment: one process for each."""
    context = process_context().get_start_method()
    mode = gymnasium.vector.AutoresetMode.SAME_STEP
    return gymnasium.vector.AsyncVectorEnv(
        [make_env] * num_envs, context=context, autoreset_mode=mode
    )


def envpool(num_envs: int) -> Any:
    """EnvPool's HalfCheetah-v5, on as many threads as pyfastenv takes.

    Raises:
        ImportError: It is not installed.
    """
    import envpool as package

    threads = min(num_envs, pyfastenv.vector.cpus.available_cpus())
    with quiet_stderr():
        return package.make(
            "HalfCheetah-v5",
            env_type="gymnasium",
            num_envs=num_envs,
            num_threads=threads,
            seed=SEED,
        )


def clock(
    make: Callable[[], Sampler],
    *,
    num_envs: int,
    chunk: int,
    seconds: float,
    min_chunks: int,
    warm_up: bool = True,
) -> Row:
    """Runs a sampler for a while and says how fast it was.

    Args:
        make: Makes the sampler.
        num_envs: Its environments.
        chunk: Iterations (a step of every environment each) per timing.
        seconds: Timings until then …
        min_chunks: … and at least so many.
        warm_up: Whether some steps come before them.

    Returns:
        ``rates`` [environment steps/s], one per chunk; ``per_receive``, environments' results per
        receive; ``calls``, policy calls per iteration; ``memory_mib`` that the sampler added;
        ``cpus`` that it got on average and ``others``, CPUs that other programs took meanwhile;
        ``gaps``.
    """
    trim_memory()
    before = memory_bytes([os.getpid()])
    sampler = make()
    try:
        if warm_up:
            sampler.run(min(chunk * num_envs, _WARM_UP))
        counts = sampler.counts
        steps_before, receives_before = counts.env_steps, counts.receives
        rates: list[float] = []
        begin, cpu_begin = time.perf_counter(), cpu_seconds(sampler.pids)
        busy_begin = _busy_seconds()
        while len(rates) < min_chunks or time.perf_counter() - begin < seconds:
            steps, start = counts.env_steps, time.perf_counter()
            sampler.run(chunk * num_envs)
            rates.append((counts.env_steps - steps) / (time.perf_counter() - start))
        wall = time.perf_counter() - begin
        cpus = (cpu_seconds(sampler.pids) - cpu_begin) / wall
        others = max(0.0, (_busy_seconds() - busy_begin) / wall - cpus)
        memory = memory_bytes([os.getpid(), *sampler.pids]) - before
    finally:
        sampler.close()
    steps, receives = counts.env_steps - steps_before, counts.receives - receives_before
    return {
        "num_envs": num_envs,
        "rates": rates,
        "per_receive": steps / receives,
        "calls": receives * num_envs / steps,
        "memory_mib": memory / 2**20,
        "cpus": cpus,
        "others": others,
        "gaps": counts.gaps,
    }


def memory_bytes(pids: Sequence[int]) -> int:
    """Memory of processes, shared pages counted once (PSS; without Linux resident memory)."""
    try:
        return sum(_proportional(pid) for pid in pids)
    except OSError:
        import psutil

        return sum(psutil.Process(pid).memory_info().rss for pid in pids)


def cpu_seconds(pids: Sequence[int]) -> float:
    """CPU time of this process and of others [s]."""
    total = time.process_time()
    for pid in pids:
        try:
            with open(f"/proc/{pid}/stat") as file:
                user, system = file.read().rsplit(")", 1)[1].split()[11:13]
            total += (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")
        except OSError:
            import psutil

            times = psutil.Process(pid).cpu_times()
            total += times.user + times.system
    return total


def _busy_seconds() -> float:
    """CPU time of all programs since the machine started [s]; 0 where that is not known."""
    try:
        with open("/proc/stat") as file:
            user, nice, system = file.readline().split()[1:4]
    except OSError:
        return 0.0
    return (int(user) + int(nice) + int(system)) / os.sysconf("SC_CLK_TCK")


def _proportional(pid: int) -> int:
    with open(f"/proc/{pid}/smaps_rollup") as file:
        for line in file:
            if line.startswith("Pss:"):
                return int(line.split()[1]) * 1024
    raise OSError(f"no Pss of process {pid}")


def trim_memory() -> None:
    """Gives freed memory back to the system: what comes next needs it, and is not to seem small."""
    gc.collect()
    with contextlib.suppress(OSError, AttributeError, TypeError):  # not glibc
        ctypes.CDLL(None).malloc_trim(0)


def _directions(num_envs: int) -> Array:
    return 2.0 * np.random.default_rng(SEED).integers(0, 2, num_envs) - 1.0
