"""The contestants of the experiment `sampling`: loops of policy and environments.

All go through the same :class:`Policy`, except the barrier-free rollout, whose policy is in the
core. Results are copied once as the document does, and dropped. Measures nothing but how far the
workers are apart.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

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
SEED = 0
_MAX_GAPS = 500


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
        obs_size: Of the environments.
        device: Where it computes.
    """

    def __init__(self, hidden: Sequence[int], *, obs_size: int = OBS_SIZE, device: str = "cpu"):
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(SEED)
            self.network = MLP((obs_size, *hidden, ACTION_SIZE), activation="tanh", gain=None).to(
                device
            )
        self._device = device

    @property
    def megabytes(self) -> float:
        """Of its parameters, float32."""
        return sum(p.numel() for p in self.network.parameters()) * 4 / 1e6

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
    """The document's loop over worker processes (:mod:`..baselines.queue_workers`).

    Args:
        policy: Chooses the actions.
        block: What the workers step.
        workers: How many.
        envs_per_worker: B.
        timeout: For each further worker's results [s]; None: waits for all.
    """

    def __init__(
        self, policy: Policy, block: str, workers: int, envs_per_worker: int, timeout: float | None
    ):
        self.counts = Counts()
        self._policy, self._timeout = policy, timeout
        self._workers = QueueWorkers(block, workers, envs_per_worker)
        try:
            self.pids = self._workers.pids
            obs = self._workers.reset(SEED, _directions(workers * envs_per_worker))
            for i, actions in enumerate(np.split(policy(obs), workers)):
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
            if len(results) == workers.num_workers and len(counts.gaps) < _MAX_GAPS:
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
        timeout: Of ``recv``, for all results together [s] (the document's is for each worker's).
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


def our_envs(num_envs: int, num_threads: int = 0) -> pyfastenv.FastVectorEnv:
    """pyfastenv's environments, every one with its task."""
    envs = pyfastenv.make_vec(
        ENV_ID,
        num_envs,
        num_threads=num_threads,
        autoreset_mode="SameStep",
        obs_dtype="float32",
        copy=False,
        infos=False,
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

    with quiet_stderr():
        return package.make(
            "HalfCheetah-v5",
            env_type="gymnasium",
            num_envs=num_envs,
            num_threads=min(num_envs, available_cpus()),
            seed=SEED,
        )


def _directions(num_envs: int) -> Array:
    return 2.0 * np.random.default_rng(SEED).integers(0, 2, num_envs) - 1.0
