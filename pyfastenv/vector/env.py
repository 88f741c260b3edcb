"""FastEnv: one environment with gymnasium's Env API, for checkers, evaluation and debugging."""

from __future__ import annotations

import multiprocessing
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, SupportsFloat

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode
from numpy.typing import NDArray

from pyfastenv.vector.obs_views import row_of
from pyfastenv.vector.vector_env import FastVectorEnv

# what gymnasium's MuJoCo environments have
_ELSEWHERE = {
    "data": "its state is in no MjData; observations and infos show it",
    "model": "envs.new_model() makes its MjModel, envs.set_model_field() changes fields of it",
}


class FastEnv(gymnasium.Env[NDArray[Any], Any]):
    """Steps one environment on the calling thread: a FastVectorEnv of one.

    ``gymnasium.make("pyfastenv:pyfastenv/HalfCheetah-v5")`` makes one, with gymnasium's usual
    wrappers (which do the truncation).

    Args:
        env_id: The environment, e.g. ``"HalfCheetah-v5"``.
        render_mode: None or ``"rgb_array"``.
        **kwargs: The environment's and the renderer's arguments; see FastVectorEnv.
    """

    metadata = {"render_modes": ["rgb_array"]}

    def __init__(self, env_id: str, *, render_mode: str | None = None, **kwargs: Any):
        self._begin(FastVectorEnv, env_id, render_mode, kwargs)
        if multiprocessing.current_process().name == "Worker<AsyncVectorEnv>-0":
            warnings.warn(
                "AsyncVectorEnv steps each environment in a process of its own, which is slow: "
                "gymnasium.make_vec without vectorization_mode, or pyfastenv.make_vec, steps all "
                "in threads of one",
                RuntimeWarning,
                stacklevel=2,
            )

    def _begin(
        self, pool: type[FastVectorEnv], what: Any, render_mode: str | None, kwargs: dict[str, Any]
    ) -> None:
        self.envs = pool(
            what,
            1,
            num_threads=1,
            autoreset_mode=AutoresetMode.DISABLED,
            max_episode_steps=0,
            render_mode=render_mode,
            **kwargs,
        )
        self.metadata = {
            key: value for key, value in self.envs.metadata.items() if key != "autoreset_mode"
        }
        self.render_mode = render_mode
        self._generator: np.random.Generator | None = None
        self._np_random_seed = self.envs.np_random_seed[0]
        self.observation_space = self.envs.single_observation_space
        self.action_space = self.envs.single_action_space

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[Any], dict[str, Any]]:
        """Starts an episode; ``options`` as for :meth:`FastVectorEnv.reset`."""
        if seed is not None:
            super().reset(seed=seed)  # np_random_seed
            self._generator = None
        with self._shared():
            obs, infos = self.envs.reset(seed=seed, options=options)
        return row_of(obs, 0), _first(infos)

    def step(self, action: Any) -> tuple[NDArray[Any], SupportsFloat, bool, bool, dict[str, Any]]:
        """Runs one step; ``action`` has ``action_space``'s shape.

        Raises:
            ResetNeededError: The episode has been terminated, or none has begun. (gymnasium's go
                on with whatever comes after the end.)
        """
        with self._shared():
            results = self.envs.step(np.asarray(action)[None])
        obs, rewards, terminations, truncations, infos = results
        return (
            row_of(obs, 0),
            float(rewards[0]),
            bool(terminations[0]),
            bool(truncations[0]),
            _first(infos),
        )

    # gymnasium.Env's np_random and reset read and write this
    @property
    def _np_random(self) -> np.random.Generator:
        if self._generator is None:
            self._generator = self.envs.generator(0)
        return self._generator

    @_np_random.setter
    def _np_random(self, generator: np.random.Generator) -> None:
        self.envs.read_generator(0, generator)
        self._generator = generator

    @contextmanager
    def _shared(self) -> Iterator[None]:
        """The environment draws from ``np_random`` inside, once somebody has asked for it."""
        if self._generator is None:
            yield
            return
        self.envs.read_generator(0, self._generator)
        try:
            yield
        finally:
            self.envs.write_generator(0, self._generator)

    def render(self) -> NDArray[np.uint8] | None:
        """Draws a ``(height, width, 3)`` uint8 frame; returns None without a render mode."""
        frames = self.envs.render()
        return None if frames is None else frames[0]

    def close(self) -> None:
        """Frees the environment."""
        self.envs.close()

    if not TYPE_CHECKING:  # with it, every name would be an attribute

        def __getattr__(self, name: str) -> Any:
            why = f": {_ELSEWHERE[name]}" if name in _ELSEWHERE else ""
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}{why}")


def _first(infos: dict[str, Any]) -> dict[str, Any]:
    return {key: value[0] for key, value in infos.items() if not key.startswith("_")}
