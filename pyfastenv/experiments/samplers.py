"""The contestants of the experiment `sampling`: loops of policy and environments.

All go through the same :class:`Policy`, except the barrier-free rollout, whose policy is in the
core. Results are copied once as the document does, and dropped. Measures nothing but how far the
workers are apart.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
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
        hidden = map(int, network.split("x"))
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


@dataclass
class Sampler:
    """A contestant under way.

    Attributes:
        receive: Takes results, asks the policy and sends its actions; returns how many environment
            steps have been received.
        close: Frees memory, threads and processes.
        pids: Of worker processes.
        gaps: The slowest worker's step minus the fastest's, where all have been waited for [s].
    """

    receive: Callable[[], int]
    close: Callable[[], None]
    pids: Sequence[int] = ()
    gaps: list[float] = field(default_factory=list)


def make(
    name: str, network: str, num_workers: int, size: int, timeout: float, device: str
) -> Sampler:
    """A contestant by its name.

    Args:
        name: Of the contestant.
        network: Hidden layers of its policy.
        num_workers: Processes, if it has them; as many times ``size`` environments in any case.
        size: B.
        timeout: [s], or :data:`NONE`.
        device: Where the policy computes; in ``rollout`` always the CPU.

    Raises:
        ImportError: Its package is not installed.
    """
    num_envs, wait = num_workers * size, timeout or None
    if name == ENVPOOL:
        return _step(Policy(network, obs_size=17, device=device), _envpool(num_envs), np.float64)
    policy = Policy(network, device=device)
    if name in BLOCK_OF:
        return _queues(policy, BLOCK_OF[name], num_workers, size, wait)
    if name == ROLLOUT:
        return _rollout(policy, num_envs, 20 if num_envs < 1_000 else 2)
    if name in (STEP, ASYNC):
        return _step(policy, our_envs(num_envs) if name == STEP else _gymnasium_async(num_envs))
    return _send_recv(policy, num_envs, wait, size if name == BY_B else None)


def _queues(
    policy: Policy, block: str, num_workers: int, envs_per_worker: int, timeout: float | None
) -> Sampler:
    """The document's loop over worker processes (:mod:`..baselines.queue_workers`).

    Args:
        policy: Chooses the actions.
        block: What the workers step.
        num_workers: How many.
        envs_per_worker: B.
        timeout: For each further worker's results [s]; None: waits for all.
    """
    workers = QueueWorkers(block, num_workers, envs_per_worker)
    sampler = Sampler(lambda: receive(), workers.close, workers.pids)

    def send(to: Sequence[int], obs: Array) -> None:
        for worker, actions in zip(to, np.split(policy(obs), len(to)), strict=True):
            workers.send(worker, actions)

    def receive() -> int:
        results = workers.receive(timeout)
        obs = np.concatenate([result["next_obs"] for result in results.values()])
        send(list(results), obs)
        if len(results) == num_workers and len(sampler.gaps) < _MAX_GAPS:
            sampler.gaps.append(float(np.ptp(workers.step_seconds)))
        return len(obs)

    try:
        obs = workers.reset(SEED, _directions(num_workers * envs_per_worker))
        send(range(num_workers), obs)
    except BaseException:
        workers.close()
        raise
    return sampler


def _step(policy: Policy, envs: Any, dtype: type = np.float32) -> Sampler:
    """``step`` of a vector environment: pyfastenv's, gymnasium's or EnvPool's."""
    obs: Array = envs.reset()[0]

    def receive() -> int:
        nonlocal obs
        actions: Array = policy(obs).astype(dtype, copy=False)
        obs = envs.step(actions)[0]
        return len(actions)

    pids = [process.pid for process in getattr(envs, "processes", ())]
    return Sampler(receive, envs.close, pids)


def _send_recv(
    policy: Policy, num_envs: int, timeout: float | None, batch: int | None = None
) -> Sampler:
    """pyfastenv's ``send`` and ``recv``.

    Args:
        policy: Chooses the actions.
        num_envs: How many environments.
        timeout: Of ``recv``, for all results together [s] (the document's is for each worker's).
        batch: So many results at a time; None: all under way, or what has come at the timeout.
    """
    envs = our_envs(num_envs)
    envs.send(policy(envs.reset()[0]))

    def receive() -> int:
        obs, _, _, _, infos = envs.recv(batch, timeout, max_envs=batch)
        envs.send(policy(obs), infos["env_id"])
        return len(obs)

    def close() -> None:
        envs.recv()
        envs.close()

    return Sampler(receive, close)


def _rollout(policy: Policy, num_envs: int, num_steps: int) -> Sampler:
    """pyfastenv's ``rollout``: the workers choose the actions themselves."""
    envs = our_envs(num_envs)
    envs.reset()
    core_policy = policy.spec().to_core(envs.single_action_space)
    batch = pyfastenv.RolloutBatch.allocate(envs, num_steps)

    def receive() -> int:
        pyfastenv.rollout(envs, core_policy, num_steps, out=batch)
        return num_steps * num_envs

    return Sampler(receive, envs.close)


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
