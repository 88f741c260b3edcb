"""Worker processes, shared memory and queues: a document's way to sample, to measure against.

Written anew after the description (docs/async.md): each worker steps its environments one after the
other; data are in shared arrays, signals in queues, and the sampler takes what arrives within a
timeout. Unlike the original every environment gets its task, and no worker outlives the program.
One thread may use a :class:`QueueWorkers`. Knows no policy and measures nothing but a worker's
step.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import threading
import time
import traceback
from collections.abc import Callable, Iterable, Mapping
from queue import Empty
from typing import Any, Self

import gymnasium
import numpy as np
from gymnasium.envs.mujoco.half_cheetah_v5 import HalfCheetahEnv
from numpy.typing import NDArray

import pyfastenv
from pyfastenv.experiments.measure import quiet_stderr

Array = NDArray[Any]
Arrays = dict[str, Array]

ENV_ID = "HalfCheetahDir-v5"
HORIZON = 100
OBS_SIZE, ACTION_SIZE = 20, 6
FIELDS: dict[str, tuple[type, tuple[int, ...]]] = {
    "actions": (np.float32, (ACTION_SIZE,)),
    "next_obs": (np.float64, (OBS_SIZE,)),
    "final_obs": (np.float64, (OBS_SIZE,)),
    "rewards": (np.float32, ()),
    "terminations": (np.bool_, ()),
    "truncations": (np.bool_, ()),
}
_ALIVE_CHECK = 1.0  # [s] how often a sampler that waits looks whether the workers still live
_GRACE = 3.0  # [s] for workers to end by themselves


class HalfCheetahDir(HalfCheetahEnv):  # type: ignore[misc, unused-ignore]
    """Finn et al. (2017), section 5.3: reward d·v − 0.05·‖a‖² with ``direction`` d = ±1."""

    def __init__(self) -> None:
        super().__init__(ctrl_cost_weight=0.05)
        self.direction = 1.0
        self._torso = self.model.body("torso").id
        self.observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (OBS_SIZE,), np.float64)

    def _get_rew(self, x_velocity: float, action: Array) -> tuple[float, dict[str, float]]:
        forward = self.direction * x_velocity
        cost = self.control_cost(action)
        return forward - cost, {"reward_forward": forward, "reward_ctrl": -cost}

    def _get_obs(self) -> Array:
        return np.concatenate([self.data.qpos[1:], self.data.qvel, self.data.xpos[self._torso]])


def make_env() -> gymnasium.Env[Any, Any]:
    """One environment with its time limit, as gymnasium's vectorisers want it."""
    with quiet_stderr():
        return gymnasium.wrappers.TimeLimit(HalfCheetahDir(), HORIZON)


class RowEnv(gymnasium.Env[Any, Any]):
    """gymnasium's HalfCheetah of which only a row of state is its own.

    All of a worker share one mjModel and mjData: an mjData for each of 32,000 environments would
    need some 15 GB; two copies of rows per step replace them.
    """

    def __init__(self, shared: HalfCheetahDir):
        self._shared = shared
        self._views = (shared.data.qpos, shared.data.qvel, shared.data.qacc_warmstart)
        self._row = [view.copy() for view in self._views]
        self.direction, self._length = 1.0, 0
        self._generator = shared.np_random

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Array, Any]:
        if seed is None:
            self._shared.np_random = self._generator
        obs, info = self._shared.reset(seed=seed)
        self._generator, self._length = self._shared.np_random, 0
        self._save()
        return obs, info

    def step(self, action: Array) -> tuple[Array, float, bool, bool, Any]:
        for view, row in zip(self._views, self._row, strict=True):
            view[:] = row
        self._shared.direction = self.direction
        obs, reward, terminated, _, info = self._shared.step(action)
        self._save()
        self._length += 1
        return obs, reward, terminated, self._length == HORIZON, info

    def _save(self) -> None:
        for view, row in zip(self._views, self._row, strict=True):
            row[:] = view


class GymnasiumBlock:
    """The environments that a worker steps in Python, one after another, into shared arrays."""

    def __init__(self, envs: Iterable[gymnasium.Env[Any, Any]]):
        self._envs: list[Any] = list(envs)

    def reset(self, seed: int, directions: Array, out: Arrays) -> None:
        """Environment i starts with ``seed + i`` and its direction."""
        for i, env in enumerate(self._envs):
            env.unwrapped.direction = directions[i]
            out["next_obs"][i], _ = env.reset(seed=seed + i)

    def step(self, out: Arrays) -> None:
        """Steps all with ``out["actions"]``; an ended episode's successor starts at once."""
        for i, (env, action) in enumerate(zip(self._envs, out["actions"], strict=True)):
            obs, out["rewards"][i], out["terminations"][i], truncated, _ = env.step(action)
            out["truncations"][i] = truncated
            if truncated:
                out["final_obs"][i] = obs
                obs, _ = env.reset()
            out["next_obs"][i] = obs


class PyfastenvBlock:
    """The same environments in one thread of pyfastenv: what is left is the communication."""

    def __init__(self, num_envs: int):
        self._envs = pyfastenv.make_vec(
            ENV_ID, num_envs, num_threads=1, autoreset_mode="SameStep", infos=False, copy=False
        )

    def reset(self, seed: int, directions: Array, out: Arrays) -> None:
        self._envs.reset_task(np.asarray(directions)[:, None])
        out["next_obs"][:] = self._envs.reset(seed=seed)[0]

    def step(self, out: Arrays) -> None:
        results = self._envs.step(out["actions"])
        names = ("next_obs", "rewards", "terminations", "truncations")
        for name, result in zip(names, results, strict=False):
            out[name][:] = result
        infos = results[4]
        if "final_obs" in infos:
            for i in np.flatnonzero(infos["_final_obs"]):
                out["final_obs"][i] = infos["final_obs"][i]


def _rows_block(count: int) -> GymnasiumBlock:
    with quiet_stderr():
        shared = HalfCheetahDir()
    return GymnasiumBlock(RowEnv(shared) for _ in range(count))


# by the number of environments; an object each, as the document has them, has an mjModel and an
# mjData each too
BLOCKS: dict[str, Callable[[int], GymnasiumBlock | PyfastenvBlock]] = {
    "rows": _rows_block,
    "objects": lambda count: GymnasiumBlock(make_env() for _ in range(count)),
    "ours": PyfastenvBlock,
}


def allocate(count: int) -> Arrays:
    """A block's arrays."""
    return {name: np.zeros((count, *shape), dtype) for name, (dtype, shape) in FIELDS.items()}


class QueueWorkers:
    """Processes that step blocks of environments.

    Use it in a ``with`` statement: leaving it, also by an error or Ctrl-C, ends the workers. They
    end too when this process is killed. The shared memory has no name and goes with the last
    process that maps it.

    Args:
        block: What the workers step: one of :data:`BLOCKS`.
        num_workers: Processes.
        envs_per_worker: B.

    Raises:
        ValueError: Sizes below 1.
    """

    def __init__(self, block: str, num_workers: int, envs_per_worker: int):
        for name, value in (("num_workers", num_workers), ("envs_per_worker", envs_per_worker)):
            if value < 1:
                raise ValueError(f"{name}: expected at least 1, got {value}")
        self.num_workers = num_workers
        self.envs_per_worker = envs_per_worker
        self.step_seconds = np.zeros(num_workers)  # each worker's latest step [s]
        self._pending = 0
        context = process_context()
        total = num_workers * envs_per_worker
        shared = {
            name: context.RawArray("b", int(total * np.prod(shape) * np.dtype(dtype).itemsize))
            for name, (dtype, shape) in FIELDS.items()
        }
        self._rows = [_rows(shared, i, envs_per_worker) for i in range(num_workers)]
        self._signals = [context.Queue() for _ in range(num_workers)]
        self._results = context.Queue()
        self._processes: list[Any] = []
        try:
            for i, signals in enumerate(self._signals):
                arguments = (block, i, envs_per_worker, shared, signals, self._results)
                process = context.Process(target=_work, args=arguments, daemon=True)
                process.start()
                self._processes.append(process)
        except BaseException:
            self.close()
            raise

    @property
    def pids(self) -> list[int]:
        """The workers' process ids."""
        return [process.pid for process in self._processes]

    def reset(self, seed: int, directions: Array) -> Array:
        """Starts all environments; ``directions`` are ``(num_envs,)``, ±1.

        Returns:
            Observations, ``(num_envs, 20)``.
        """
        for i, part in enumerate(np.split(directions, self.num_workers)):
            self._signals[i].put(("reset", (seed + i * self.envs_per_worker, part)))
        for _ in range(self.num_workers):
            self._take(None)
        return np.concatenate([rows["next_obs"] for rows in self._rows])

    def send(self, worker: int, actions: Array) -> None:
        """Lets a worker step its environments with ``(B, 6)`` actions."""
        self._rows[worker]["actions"][:] = actions
        self._signals[worker].put(("step", None))
        self._pending += 1

    def receive(self, timeout: float | None) -> dict[int, Arrays]:
        """Waits for one worker, then for each other one that is under way up to ``timeout``.

        Args:
            timeout: For each further result [s]; None waits for all that are under way.

        Returns:
            Copies of the arrays of those that have finished, in order of arrival.

        Raises:
            RuntimeError: Nothing has been sent; or a worker failed or died.
        """
        if self._pending == 0:
            raise RuntimeError("receive: nothing has been sent")
        results = [self._take(None)]
        for _ in range(self._pending - 1):
            with contextlib.suppress(Empty):
                results.append(self._take(timeout))
        self._pending -= len(results)
        return {
            i: {name: rows.copy() for name, rows in self._rows[i].items()}  # they are written again
            for i in results
        }

    def _take(self, timeout: float | None) -> int:
        while True:
            try:
                worker, seconds, error = self._results.get(timeout=timeout or _ALIVE_CHECK)
                break
            except Empty:
                if timeout is not None:
                    raise
                self._check_alive()
        if error:
            raise RuntimeError(f"worker {worker} failed:\n{error}")
        self.step_seconds[worker] = seconds
        return int(worker)

    def _check_alive(self) -> None:
        for i, process in enumerate(self._processes):
            if not process.is_alive():
                raise RuntimeError(f"worker {i} died with exit code {process.exitcode}")

    def close(self) -> None:
        """Ends the workers."""
        for signals in self._signals:
            signals.put(("close", None))
        deadline = time.monotonic() + _GRACE
        for process in self._processes:
            process.join(max(0.0, deadline - time.monotonic()))
            if process.is_alive():
                process.kill()
                process.join()
        for queue in (*self._signals, self._results):
            queue.close()
            queue.cancel_join_thread()
        self._signals, self._processes = [], []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


def process_context() -> Any:
    """How processes start: from a server without threads (fork is not safe beside torch's)."""
    if "forkserver" not in multiprocessing.get_all_start_methods():
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([__name__])  # imported once, not once per worker
    return context


def _rows(shared: Mapping[str, Any], worker: int, count: int) -> Arrays:
    """A worker's rows of the shared arrays."""
    arrays = {}
    for name, (dtype, shape) in FIELDS.items():
        array: Array = np.frombuffer(shared[name], dtype).reshape(-1, *shape)
        arrays[name] = array[worker * count : (worker + 1) * count]
    return arrays


def _work(
    block: str, worker: int, count: int, shared: Mapping[str, Any], signals: Any, results: Any
) -> None:
    """A worker process: obeys ``signals`` until told to close."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the sampler's to handle
    threading.Thread(target=_end_with_parent, daemon=True).start()
    try:
        rows = _rows(shared, worker, count)
        envs = BLOCKS[block](count)
        while True:
            instruction, data = signals.get()
            start = time.perf_counter()
            if instruction == "close":
                return
            if instruction == "reset":
                seed, directions = data
                envs.reset(seed, directions, rows)
            else:
                envs.step(rows)
            results.put((worker, time.perf_counter() - start, ""))
    except BaseException:
        results.put((worker, 0.0, traceback.format_exc()))


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
