"""The contestants: pyfastenv, the physics limit, EnvPool, mujoco.batch and gymnasium.

Each is made for one environment id and number of environments, and has ``run(actions)``, which
starts new episodes, steps through the prerecorded actions ``(num_steps, num_envs, …)`` and returns
environment calls per second. Making, resetting and converting the actions to the dtype that a
contestant wants are outside the timing. A call that resets an environment (NEXT_STEP autoreset)
counts as a call for everyone.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, ClassVar, Protocol

import gymnasium
import numpy as np
from numpy.typing import NDArray

import pyfastenv
from pyfastenv import _core
from pyfastenv.experiments.measure import quiet_stderr
from pyfastenv.vector import specs

Actions = NDArray[Any]
SEED = 0


class Contestant(Protocol):
    """What the benchmark needs of a contestant."""

    name: ClassVar[str]
    # of the actions, how much a run uses: slow contestants would take minutes otherwise
    share_of_steps: ClassVar[float]

    def __init__(self, env_id: str, num_envs: int, num_threads: int) -> None: ...

    def run(self, actions: Actions) -> float:
        """Environment calls per second."""

    def close(self) -> None:
        """Frees memory, threads and processes."""


class Ours:
    """pyfastenv's ``step``, all defaults: float64 observations, copies, infos."""

    name: ClassVar[str] = "pyfastenv"
    share_of_steps: ClassVar[float] = 1.0
    engine: ClassVar[str] = "auto"

    def __init__(self, env_id: str, num_envs: int, num_threads: int) -> None:
        self.envs = pyfastenv.make_vec(
            env_id, num_envs, num_threads=num_threads, engine=self.engine
        )

    def run(self, actions: Actions) -> float:
        self.envs.reset(seed=SEED)
        return _time_steps(self.envs.step, actions)

    def close(self) -> None:
        self.envs.close()


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


class PhysicsLimit:
    """A bare C++ loop of mj_step over state rows: what nobody who calls mj_step can pass."""

    name: ClassVar[str] = "physics limit"
    share_of_steps: ClassVar[float] = 1.0

    def __init__(self, env_id: str, num_envs: int, num_threads: int) -> None:
        self.env_id = env_id
        self.num_threads = num_threads

    def run(self, actions: Actions) -> float:
        return _core.physics_limit(
            env_id=self.env_id,
            assets_dir=specs.assets_dir(),
            actions=actions,
            num_threads=self.num_threads,
            seed=SEED,
        )

    def close(self) -> None:
        pass


class EnvPool:
    """EnvPool's synchronous ``step``, one mjData per environment, its own MuJoCo."""

    name: ClassVar[str] = "EnvPool"
    share_of_steps: ClassVar[float] = 1.0

    def __init__(self, env_id: str, num_envs: int, num_threads: int) -> None:
        import envpool

        self.envs: Any = envpool.make(
            env_id, env_type="gymnasium", num_envs=num_envs, num_threads=num_threads, seed=SEED
        )

    def run(self, actions: Actions) -> float:
        actions = actions.astype(self.envs.action_space.dtype)  # float64 for its MuJoCo v5
        self.envs.reset()
        return _time_steps(self.envs.step, actions)

    def close(self) -> None:
        self.envs.close()


class MujocoBatch:
    """``mujoco.batch``: physics only, so no reward, observation, episode's end or reset."""

    name: ClassVar[str] = "mujoco.batch (physics only)"
    share_of_steps: ClassVar[float] = 1.0

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

        return _time_steps(step, actions)

    def close(self) -> None:
        del self.batch


class GymnasiumSync:
    """gymnasium's ``SyncVectorEnv``: the environments one after the other, in Python."""

    name: ClassVar[str] = "gymnasium sync"
    share_of_steps: ClassVar[float] = 0.3
    mode: ClassVar[str] = "sync"

    def __init__(self, env_id: str, num_envs: int, num_threads: int) -> None:
        with quiet_stderr():
            self.envs = gymnasium.make_vec(env_id, num_envs, vectorization_mode=self.mode)

    def run(self, actions: Actions) -> float:
        self.envs.reset(seed=SEED)
        return _time_steps(self.envs.step, actions)

    def close(self) -> None:
        self.envs.close()


class GymnasiumAsync(GymnasiumSync):
    """gymnasium's ``AsyncVectorEnv``: one process per environment."""

    name: ClassVar[str] = "gymnasium async"
    share_of_steps: ClassVar[float] = 0.15
    mode: ClassVar[str] = "async"


def random_actions(env_id: str, num_steps: int, num_envs: int) -> Actions:
    """Uniform random actions: ``(num_steps, num_envs, action_size)`` float32, or int64 without the
    last axis."""
    envs = pyfastenv.make_vec(env_id, 1, num_threads=1)
    space = envs.single_action_space
    envs.close()
    rng = np.random.default_rng(SEED)
    if isinstance(space, gymnasium.spaces.Discrete):
        return rng.integers(0, space.n, (num_steps, num_envs), dtype=np.int64)
    assert isinstance(space, gymnasium.spaces.Box)
    actions = rng.random((num_steps, num_envs, *space.shape), dtype=np.float32)
    actions *= space.high - space.low
    actions += space.low
    return actions


def _time_steps(step: Callable[[Actions], Any], actions: Actions) -> float:
    start = time.perf_counter()
    for action in actions:
        step(action)
    seconds = time.perf_counter() - start
    return int(actions.shape[0]) * int(actions.shape[1]) / seconds
