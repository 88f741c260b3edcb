"""The contestants: those of ``pyfastenv bench``, and EnvPool, mujoco.batch, send and recv."""

from __future__ import annotations

import time
from typing import Any, ClassVar

import gymnasium
import numpy as np

from pyfastenv.experiments.measure import quiet_stderr
from pyfastenv.tools.contestants import SEED, Actions, Contestant, Ours, time_steps


class OursByMujoco(Ours):
    """The same with ``engine="mujoco"``."""

    name: ClassVar[str] = "pyfastenv, mj_step"
    engine: ClassVar[str] = "mujoco"


class OursAsync(Ours):
    """pyfastenv's ``send`` and ``recv``: half of the environments steps, half waits."""

    name: ClassVar[str] = "pyfastenv send/recv"

    def run(self, actions: Actions) -> float:
        num_steps, num_envs = actions.shape[:2]
        half = num_envs // 2
        halves = actions.reshape(2 * num_steps, half, *actions.shape[2:])
        envs = self.envs
        envs.reset(seed=SEED)
        ids = np.arange(num_envs, dtype=np.int32)
        start = time.perf_counter()
        envs.send(halves[0], ids[:half])
        envs.send(halves[1], ids[half:])
        for batch in halves[2:]:
            infos = envs.recv(half, max_envs=half)[4]
            envs.send(batch, infos["env_id"])
        envs.recv()
        return int(num_steps) * int(num_envs) / (time.perf_counter() - start)


class EnvPool(Contestant):
    """EnvPool's synchronous ``step``, one mjData per environment, its own MuJoCo."""

    name: ClassVar[str] = "EnvPool"

    def __init__(self, env_id: str, num_envs: int, num_threads: int) -> None:
        import envpool

        self.envs = envpool.make(
            env_id, env_type="gymnasium", num_envs=num_envs, num_threads=num_threads, seed=SEED
        )

    def run(self, actions: Actions) -> float:
        actions = actions.astype(self.envs.action_space.dtype)  # float64 for its MuJoCo v5
        self.envs.reset()
        return time_steps(self.envs.step, actions)


class MujocoBatch(Contestant):
    """``mujoco.batch``: physics only, so no reward, observation, episode's end or reset."""

    name: ClassVar[str] = "mujoco.batch (physics only)"

    def __init__(self, env_id: str, num_envs: int, num_threads: int) -> None:
        from mujoco import batch

        with quiet_stderr():
            env: Any = gymnasium.make(env_id).unwrapped
        self.frame_skip = env.frame_skip
        self.batch = batch.Batch(env.model, num_envs, num_threads)
        self.noise = np.random.default_rng(SEED).uniform(-0.01, 0.01, (num_envs, env.model.nq))
        env.close()

    def run(self, actions: Actions) -> float:
        self.batch.reset()
        self.batch.qpos = self.batch.qpos + self.noise  # or all environments would move alike
        ctrl = self.batch.bind("ctrl")

        def step(action: Actions) -> None:
            ctrl[:] = action
            self.batch.step(nstep=self.frame_skip)

        return time_steps(step, actions)

    def close(self) -> None:
        del self.batch
