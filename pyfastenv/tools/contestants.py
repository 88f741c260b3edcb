"""The contestants of a race: pyfastenv, the physics limit and gymnasium.

Each is made for one environment id and number of environments, and has ``run(actions)``, which
starts new episodes, steps through the prerecorded actions ``(num_steps, num_envs, …)`` and returns
environment calls per second. Making, resetting and converting the actions to the dtype that a
contestant wants are outside the timing. A call that resets an environment (NEXT_STEP autoreset)
counts as a call for everyone.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import closing
from functools import partial
from typing import Any, ClassVar

import gymnasium
import numpy as np
from numpy.typing import NDArray

import pyfastenv
from pyfastenv import _core
from pyfastenv.experiments.measure import quiet_stderr
from pyfastenv.tasks.compiler.native import NativeTask
from pyfastenv.tasks.language.find import find_task
from pyfastenv.vector import specs

Actions = NDArray[Any]
SEED = 0


class Contestant(ABC):
    """The base of contestants; most have :attr:`envs`, vectorised as gymnasium does it."""

    name: ClassVar[str]
    # of the actions, how much a run uses: slow contestants would take minutes otherwise
    share_of_steps: ClassVar[float] = 1.0
    envs: Any

    @abstractmethod
    def __init__(self, env_id: str, num_envs: int, num_threads: int) -> None: ...

    def run(self, actions: Actions) -> float:
        """Environment calls per second."""
        self.envs.reset(seed=SEED)
        return time_steps(self.envs.step, actions)

    def close(self) -> None:
        """Frees memory, threads and processes."""
        self.envs.close()


class Ours(Contestant):
    """pyfastenv's ``step``, all defaults: float64 observations, copies, infos."""

    name: ClassVar[str] = "pyfastenv"
    engine: ClassVar[str] = "auto"

    def __init__(self, env_id: str, num_envs: int, num_threads: int) -> None:
        self.envs = pyfastenv.make_vec(
            env_id, num_envs, num_threads=num_threads, engine=self.engine
        )


class PhysicsLimit(Contestant):
    """A bare C++ loop of mj_step over state rows: what nobody who calls mj_step can pass."""

    name: ClassVar[str] = "physics limit"

    def __init__(self, env_id: str, num_envs: int, num_threads: int) -> None:
        if find_task(env_id) is not None:
            raise ValueError("there is no bare loop for own tasks")
        with closing(pyfastenv.make_vec(env_id, 1)) as envs:
            if not envs._core.model_path:
                raise ValueError(f"{env_id} is not a MuJoCo environment")
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


class GymnasiumSync(Contestant):
    """gymnasium's ``SyncVectorEnv``: the environments one after the other, in Python.

    An own task, which gymnasium does not have, is stepped in plain Python (``pyfastenv.debug``).
    """

    name: ClassVar[str] = "gymnasium sync"
    share_of_steps: ClassVar[float] = 0.3
    mode: ClassVar[str] = "sync"
    vector_env: ClassVar[Any] = gymnasium.vector.SyncVectorEnv

    def __init__(self, env_id: str, num_envs: int, num_threads: int) -> None:
        task = find_task(env_id)
        if task is not None and issubclass(task[0], NativeTask):
            raise ValueError(f"{env_id} is C++; it has no plain Python")
        with quiet_stderr():
            self.envs = (
                gymnasium.make_vec(env_id, num_envs, vectorization_mode=self.mode)
                if task is None
                else self.vector_env([partial(pyfastenv.debug, env_id)] * num_envs)
            )


class GymnasiumAsync(GymnasiumSync):
    """gymnasium's ``AsyncVectorEnv``: one process per environment."""

    name: ClassVar[str] = "gymnasium async"
    share_of_steps: ClassVar[float] = 0.15
    mode: ClassVar[str] = "async"
    vector_env: ClassVar[Any] = gymnasium.vector.AsyncVectorEnv


def random_actions(env_id: str, num_steps: int, num_envs: int) -> Actions:
    """Uniform random actions: ``(num_steps, num_envs, action_size)`` float32, or int64 without the
    last axis; -1 to 1 where the space has no bounds."""
    envs = pyfastenv.make_vec(env_id, 1, num_threads=1)
    space = envs.single_action_space
    envs.close()
    rng = np.random.default_rng(SEED)
    if isinstance(space, gymnasium.spaces.Discrete):
        return rng.integers(0, space.n, (num_steps, num_envs), dtype=np.int64)
    assert isinstance(space, gymnasium.spaces.Box)
    actions = rng.random((num_steps, num_envs, *space.shape), dtype=np.float32)
    low = np.where(np.isfinite(space.low), space.low, np.minimum(-1.0, space.high))
    high = np.where(np.isfinite(space.high), space.high, np.maximum(1.0, low)).astype(low.dtype)
    actions *= high - low
    actions += low
    return actions


def time_steps(step: Callable[[Actions], Any], actions: Actions) -> float:
    """Environment calls per second of a step function through prerecorded actions."""
    start = time.perf_counter()
    for action in actions:
        step(action)
    seconds = time.perf_counter() - start
    return int(actions.shape[0]) * int(actions.shape[1]) / seconds


def first_difference(env_id: str, num_envs: int = 4, num_steps: int = 300) -> str | None:
    """Where our results first differ from gymnasium's in any bit; None if nowhere."""
    names = ("observations", "rewards", "terminations", "truncations")
    actions = random_actions(env_id, num_steps, num_envs)
    ours = pyfastenv.make_vec(env_id, num_envs)
    with quiet_stderr():
        theirs = gymnasium.make_vec(env_id, num_envs, vectorization_mode="sync")
    try:
        if not np.array_equal(ours.reset(seed=SEED)[0], theirs.reset(seed=SEED)[0]):
            return "the first observations"
        for t, action in enumerate(actions):
            pairs: Any = zip(names, ours.step(action), theirs.step(action), strict=False)
            for name, mine, other in pairs:
                if not np.array_equal(mine, other):
                    return f"the {name} of step {t}"
    finally:
        ours.close()
        theirs.close()
    return None
