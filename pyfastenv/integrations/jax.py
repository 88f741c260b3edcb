"""JAX: environments as pure functions of their state, inside ``jit`` and ``scan``. jax >= 0.5.

The state that a function takes and returns is the pool's snapshot, complete and of one size, so
that a call depends on its arguments alone: JAX may run it again, leave it out, or go back to an
older state. Calls are ``jax.pure_callback``: the pool steps on the CPU, wherever the arrays are.

Without ``jax_enable_x64`` JAX has no float64: what is float64 in gymnasium (rewards; observations,
unless made with ``obs_dtype="float32"``) is then rounded to float32; else it is the same bits.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, NamedTuple, cast

import jax
import numpy as np
from gymnasium.spaces import Discrete
from gymnasium.vector import AutoresetMode
from numpy.typing import NDArray

from pyfastenv.integrations import require
from pyfastenv.nn.policy_spec import PolicySpec
from pyfastenv.tasks.language.task import Task
from pyfastenv.tasks.pool.make import make_vec
from pyfastenv.vector.arguments import integer
from pyfastenv.vector.vector_env import FastVectorEnv

# inside jit a policy's numbers are traced, the rest of it is part of the program
jax.tree_util.register_dataclass(
    PolicySpec,
    data_fields=["weights", "biases", "log_std", "obs_mean", "obs_scale"],
    meta_fields=[
        "activation", "distribution", "log_std_range", "noise", "obs_clip", "clip_actions",
        "row_begin", "row_size", "greedy",
    ],
)  # fmt: skip


class Step(NamedTuple):
    """The results of a step of N environments."""

    obs: jax.Array  # (N, obs_size): where an episode ended, the next one's first
    rewards: jax.Array  # (N,) float
    terminations: jax.Array  # (N,) bool
    truncations: jax.Array  # (N,) bool
    next_obs: jax.Array  # (N, obs_size): where an episode ended, its last; else obs


class Trajectories(NamedTuple):
    """T steps of N environments; ``actions[t]`` were chosen at ``obs[t]``."""

    obs: jax.Array  # (T, N, obs_size)
    actions: jax.Array  # (T, N, action_size) float32 as drawn, or (T, N) int32
    log_probs: jax.Array  # (T, N) float32, of the actions as drawn
    rewards: jax.Array  # (T, N), of observations' dtype
    terminations: jax.Array  # (T, N) bool
    truncations: jax.Array  # (T, N) bool
    next_obs: jax.Array  # (T, N, obs_size) as in Step


def make_jax(env_id: str | type[Task], num_envs: int = 1, **kwargs: Any) -> JaxVectorEnv:
    """Makes environments for JAX.

    Args:
        env_id: As for :func:`pyfastenv.make_vec`: ``"HalfCheetah-v5"``, an own task …
        num_envs: N.
        **kwargs: See :class:`pyfastenv.FastVectorEnv`; the autoreset mode is chosen here, and
            observations are float32 unless asked for.
    """
    kwargs = {"obs_dtype": "float32", **kwargs}
    return to_jax(make_vec(env_id, num_envs, autoreset_mode=AutoresetMode.SAME_STEP, **kwargs))


def to_jax(envs: FastVectorEnv) -> JaxVectorEnv:
    """The environments as functions for JAX, whose ``close`` closes them.

    Raises:
        ValueError: Their autoreset mode is not SAME_STEP, or their observations are a Dict.
    """
    require(envs, AutoresetMode.SAME_STEP, "JAX")
    return JaxVectorEnv(envs)


class JaxVectorEnv:
    """Use :func:`make_jax` or :func:`to_jax`.

    ``reset``, ``step`` and ``rollout`` may be called anywhere in a program that ``jax.jit``
    compiles; ``vmap`` runs them one after another. An error of the pool (NaN actions, say) is
    raised by JAX, as an error of its own with the pool's words.
    """

    def __init__(self, envs: FastVectorEnv):
        self.envs = envs
        self._in_use = threading.Lock()  # JAX may run independent calls at once
        self._obs = jax.ShapeDtypeStruct((envs.num_envs, envs.obs_size), _known(envs.obs_dtype))
        self._rewards = jax.ShapeDtypeStruct((envs.num_envs,), _known(np.float64))
        self._flags = jax.ShapeDtypeStruct((envs.num_envs,), np.bool_)

    @property
    def num_envs(self) -> int:
        """N."""
        return self.envs.num_envs

    def reset(self, seed: Any) -> tuple[jax.Array, jax.Array]:
        """Starts new episodes.

        Args:
            seed: ``()`` integer: environment i gets ``seed + i``; or ``(N,)``, one for each.

        Returns:
            The state, ``(N, state_bytes)`` uint8, and observations ``(N, obs_size)``.
        """

        def run(seed: Any) -> tuple[NDArray[Any], ...]:
            obs, _ = self.envs.reset(seed=np.asarray(seed).tolist())
            return self.envs.get_state(), obs

        state, obs = self._call(run, (self._state, self._obs), seed)
        return state, obs

    def step(self, state: jax.Array, actions: jax.Array) -> tuple[jax.Array, Step]:
        """Steps every environment once.

        Args:
            state: What ``reset``, ``step`` or ``rollout`` returned.
            actions: ``(N, action_size)`` float32, or ``(N,)`` integers.

        Returns:
            The state after, and what the environments gave.
        """

        def run(state: Any, actions: Any) -> tuple[NDArray[Any], ...]:
            self.envs.set_state(np.asarray(state))
            obs, rewards, terminations, truncations, infos = self.envs.step(np.asarray(actions))
            next_obs = obs
            if "final_obs" in infos:
                next_obs = obs.copy()
                for i in np.flatnonzero(infos["_final_obs"]):
                    next_obs[i] = infos["final_obs"][i]
            return self.envs.get_state(), obs, rewards, terminations, truncations, next_obs

        shapes = (self._state, self._obs, self._rewards, self._flags, self._flags, self._obs)
        after, *results = self._call(run, shapes, state, actions)
        return after, Step(*results)

    def rollout(
        self, state: jax.Array, policy: PolicySpec, num_steps: int
    ) -> tuple[jax.Array, Trajectories]:
        """Runs the policy inside the pool, as :func:`pyfastenv.rollout` does, with its results.

        Args:
            state: What ``reset``, ``step`` or ``rollout`` returned; the streams that actions are
                drawn from are part of it.
            policy: Its arrays may be JAX's. Every environment follows the first of its K policies.
            num_steps: T, at least 1; part of the program, not traced.

        Returns:
            The state after, and the trajectories.
        """
        num_steps = integer("num_steps", num_steps, minimum=1)
        envs = self.envs
        discrete = isinstance(envs.single_action_space, Discrete)
        lead = (num_steps, envs.num_envs)
        action_shape = (num_steps, *cast(tuple[int, ...], envs.action_space.shape))

        def run(state: Any, policy: PolicySpec) -> tuple[NDArray[Any], ...]:
            envs.set_state(np.asarray(state))
            arrays = jax.tree.map(lambda array: np.asarray(array, np.float32), policy)
            out: dict[str, NDArray[Any]] = {
                "obs": np.empty((*lead, envs.obs_size), envs.obs_dtype),
                "actions": np.empty(action_shape, np.int64 if discrete else np.float32),
                "log_probs": np.empty(lead, np.float32),
                "rewards": np.empty(lead, envs.obs_dtype),
                **{name: np.empty(lead, np.bool_) for name in _FLAGS},
                "last_obs": np.empty((envs.num_envs, envs.obs_size), envs.obs_dtype),
            }
            ends = envs.run_rollout(arrays.to_core(envs.single_action_space), None, num_steps, out)
            next_obs = np.concatenate([out["obs"][1:], out["last_obs"][None]])
            if len(ends.get("steps", ())):
                next_obs[ends["steps"], ends["env_ids"]] = ends["final_obs"]
            names = ("obs", "actions", "log_probs", "rewards", "terminations", "truncations")
            return envs.get_state(), *(out[name] for name in names), next_obs

        def shape(like: jax.ShapeDtypeStruct) -> jax.ShapeDtypeStruct:
            return jax.ShapeDtypeStruct((num_steps, *like.shape), like.dtype)

        actions = jax.ShapeDtypeStruct(action_shape, np.int32 if discrete else np.float32)
        log_probs = jax.ShapeDtypeStruct(lead, np.float32)
        rewards = jax.ShapeDtypeStruct(lead, self._obs.dtype)
        obs, flags = shape(self._obs), shape(self._flags)
        after, *results = self._call(
            run, (self._state, obs, actions, log_probs, rewards, flags, flags, obs), state, policy
        )
        return after, Trajectories(*results)

    def close(self) -> None:
        """Closes the environments."""
        self.envs.close()

    @property
    def _state(self) -> jax.ShapeDtypeStruct:
        """The shape of snapshots; it is another once a model field is set per environment."""
        return jax.ShapeDtypeStruct((self.num_envs, self.envs.state_bytes), np.uint8)

    def _call(
        self,
        run: Callable[..., tuple[NDArray[Any], ...]],
        shapes: tuple[jax.ShapeDtypeStruct, ...],
        *arguments: Any,
    ) -> tuple[jax.Array, ...]:
        """Runs a function of the pool's, now or whenever JAX runs the program."""

        def locked(*arguments: Any) -> tuple[NDArray[Any], ...]:
            with self._in_use:
                results = run(*arguments)
            return tuple(
                array.astype(shape.dtype, copy=False)
                for array, shape in zip(results, shapes, strict=True)
            )

        results = jax.pure_callback(locked, shapes, *arguments, vmap_method="sequential")
        return cast(tuple[jax.Array, ...], results)


_FLAGS = ("terminations", "truncations", "autoresets")


def _known(dtype: Any) -> np.dtype[Any]:
    """JAX's dtype for one of NumPy's, which depends on jax_enable_x64."""
    known: np.dtype[Any] = jax.dtypes.canonicalize_dtype(dtype)
    return known
