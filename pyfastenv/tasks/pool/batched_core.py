"""BatchedCore: the pool's core with a task's functions of whole batches behind every call.

It has the core's methods, so that FastVectorEnv needs not know. Raw values come from the core,
always in float64; the functions see the rows that have stepped (no autoresets, no failures, no
diverged physics). What they decide is told to the core (``amend``), so that autoreset, returns and
snapshots are the core's as ever.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pyfastenv import _core
from pyfastenv.errors import EnvError
from pyfastenv.tasks.language.batch import BatchFunctions
from pyfastenv.vector.rows import NOT_OWN, info_columns

# an info of steps alone, without a meaning: its mask says which rows have stepped
STEPPED = ("_stepped", False, "int64", None)
_MASK = "__stepped"


class BatchedCore:
    """A ``_core.VectorEnv`` whose results a task's functions finish.

    With SAME_STEP the core knows no autoreset: episodes are reset here, after the functions.

    Args:
        arguments: Of ``_core.VectorEnv``; its task's infos end with :data:`STEPPED`.
        functions: The task's.
    """

    def __init__(self, arguments: dict[str, Any], functions: BatchFunctions):
        self._functions = functions
        self._mode = arguments["autoreset_mode"]
        self._same_step = self._mode == "SameStep"
        self._num_envs = arguments["num_envs"]
        self._infos = arguments["infos"]
        self.obs_dtype = arguments["obs_dtype"] or "float64"
        self.obs_low = np.full(functions.obs_size, -np.inf)
        self.obs_high = np.full(functions.obs_size, np.inf)
        own = {"obs_dtype": "", "copy": True, "infos": True, "amended": True}
        if self._same_step:
            own |= {"autoreset_mode": "Disabled"}
        self._core = _core.VectorEnv(**{**arguments, **own})
        self._sent: NDArray[Any] | None = None  # each environment's latest action
        self._sending = threading.Lock()

    def __getattr__(self, name: str) -> Any:
        if name in ("use_buffers", "_core"):  # what is shown is not what the core writes
            raise AttributeError(name)
        return getattr(self._core, name)

    def reset(self, seeds: Any, mask: Any, bounds: Any) -> tuple[Any, ...]:
        """As the core's."""
        try:
            raw, infos = self._core.reset(seeds, mask, bounds)
        except EnvError as error:
            raw, infos = error.results
            error.results = (self._shown(raw), self._wanted(infos))
            raise
        return self._shown(raw), self._wanted(infos)

    def step(self, actions: Any) -> tuple[Any, ...]:
        """As the core's; an exception of the task's functions leaves environments stepped."""
        return self._finished(self._core.step, (actions,), lambda _: np.asarray(actions))

    def send(self, actions: Any, env_ids: Any) -> None:
        """As the core's; not with SAME_STEP."""
        self._refuse_same_step()
        with self._sending:
            self._core.send(actions, env_ids)
            actions = np.asarray(actions)
            if self._sent is None:
                kind = np.int64 if actions.ndim == 1 else np.float64
                self._sent = np.zeros((self._num_envs, *actions.shape[1:]), kind)
            self._sent[slice(None) if env_ids is None else np.asarray(env_ids)] = actions

    def send_reset(self, seeds: Any, bounds: Any, env_ids: Any) -> None:
        """As the core's; not with SAME_STEP."""
        self._refuse_same_step()
        self._core.send_reset(seeds, bounds, env_ids)

    def recv(self, *wanted: Any) -> tuple[Any, ...]:
        """As the core's."""

        def actions(infos: dict[str, Any]) -> NDArray[Any]:
            with self._sending:
                assert self._sent is not None  # rows that have stepped have been sent
                sent: NDArray[Any] = self._sent[infos["env_id"]]
                return sent

        return self._finished(self._core.recv, wanted, actions)

    def rollout(
        self, policy: _core.Policy, policy_ids: Any, num_steps: int, out: dict[str, NDArray[Any]]
    ) -> dict[str, Any]:
        """As the core's, step by step: the policy in this thread, the pool, the functions.

        Raises:
            EnvError: An environment raised, which ends the rollout: rows are zero from that step
                on, and the other environments have made it.
        """
        if self._mode == "Disabled":
            raise ValueError(
                "rollout: episodes must start by themselves: make the vector environment with "
                "autoreset_mode='SameStep' or 'NextStep'"
            )
        ends: list[tuple[int, int, float, int, bool, NDArray[Any], dict[str, float]]] = []
        obs = self._shown(self._core.observations())
        for t in range(num_steps):
            actions, log_probs, given = self._core.act(policy, policy_ids, obs)
            for name, values in (("obs", obs), ("actions", actions), ("log_probs", log_probs)):
                out[name][t] = values
            try:
                obs, ended = self._rollout_step(t, given, out)
            except EnvError as error:
                for name, array in out.items():
                    if name != "last_obs":
                        array[t:] = 0
                out["last_obs"][:] = self._shown(self._core.observations())
                error.results = _episodes(ends, out["obs"].dtype, self._functions.obs_size)
                raise
            ends += ended
        out["last_obs"][:] = obs
        return _episodes(ends, out["obs"].dtype, self._functions.obs_size)

    # ---- inside ------------------------------------------------------------------------------

    def _rollout_step(self, t: int, actions: Any, out: dict[str, Any]) -> tuple[Any, list[Any]]:
        noted: dict[str, Any] = {}
        results = self._finished(self._core.step, (actions,), lambda _: actions, noted)
        obs, rewards, terminations, truncations, infos = results
        ended = terminations | truncations
        out["rewards"][t] = rewards
        out["terminations"][t] = terminations
        out["truncations"][t] = truncations
        out["autoresets"][t] = ~(noted["stepped"] | infos.get("diverged", False))
        ends = []
        for i in np.flatnonzero(ended):
            final_obs = infos["final_obs"][i] if self._same_step else obs[i]
            returns, lengths = noted["episodes"]
            last = {name: values[i] for name, values in noted["infos"].items()}
            ends.append((t, i, returns[i], lengths[i], terminations[i], final_obs, last))
        return obs, ends

    def _refuse_same_step(self) -> None:
        if self._same_step:
            raise ValueError(
                "send: a task with functions of the batch needs autoreset_mode='NextStep' or "
                "'Disabled' for send and recv, got 'SameStep': what has ended is only known after "
                "recv"
            )

    def _finished(
        self, call: Any, given: tuple[Any, ...], actions: Any, noted: dict[str, Any] | None = None
    ) -> tuple[Any, ...]:
        """Calls the core; finishes its results, those beside failures too."""
        try:
            results = call(*given)
        except EnvError as error:
            error.results = self._finish(error.results, actions, noted)
            raise
        return self._finish(results, actions, noted)

    def _finish(
        self, results: Sequence[Any], actions: Any, noted: dict[str, Any] | None
    ) -> tuple[Any, ...]:
        raw, rewards, terminations, truncations, infos = results
        stepped = infos.pop(_MASK, None)
        infos.pop("_stepped", None)
        if stepped is None:
            stepped = np.zeros(len(raw), np.bool_)
        rows = np.flatnonzero(stepped)
        ids = infos["env_id"] if "env_id" in infos else np.arange(len(raw))
        if len(rows) > 0:
            before = rewards[rows], terminations[rows]
            columns = {n: v[rows] for n, v in infos.items() if n.removeprefix("_") not in NOT_OWN}
            columns = {n: v for n, v in columns.items() if not n.startswith("_")}
            given = actions(infos)[rows]
            now, ends, added = self._functions.finish(raw[rows], given, *before, columns)
            rewards[rows] = now
            terminations[rows] = ends
            self._core.amend(ids[rows], now, ends.astype(np.float64))
            for name, values in added.items():
                infos[name] = np.zeros((len(raw), *values.shape[1:]), values.dtype)
                infos[name][rows] = values
                infos[f"_{name}"] = stepped.copy()
        if noted is not None:
            noted |= {"stepped": stepped, "episodes": self._core.episodes()}
            noted["infos"] = {  # those that are numbers
                name: np.where(infos[f"_{name}"], values, np.nan)
                for name, values in infos.items()
                if not name.startswith("_") and name not in NOT_OWN and values.ndim == 1
            }
        ended = terminations | truncations
        if not (self._same_step and ended.any()):
            return self._shown(raw), rewards, terminations, truncations, self._wanted(infos)
        return self._reset_ended(raw, rewards, terminations, truncations, infos, ended)

    def _reset_ended(
        self, raw: Any, rewards: Any, terminations: Any, truncations: Any, infos: Any, ended: Any
    ) -> tuple[Any, ...]:
        """SAME_STEP: starts the next episodes; the last observations and infos go beside."""
        final_obs = np.full(len(raw), None, object)
        for i, obs in zip(np.flatnonzero(ended), self._shown(raw[ended]), strict=True):
            final_obs[i] = obs
        failure = None
        try:
            latest, started = self._core.reset(None, ended, [])
        except EnvError as error:
            failure, (latest, started) = error, error.results
        infos, final_info = _split_infos(infos, started, ended)
        infos |= {"final_obs": final_obs, "_final_obs": ended.copy()}
        infos |= {"final_info": final_info, "_final_info": ended.copy()}
        shown = self._shown(latest)
        results = shown, rewards, terminations, truncations, self._wanted(infos)
        if failure is not None:
            failure.results = results
            raise failure
        return results

    def _shown(self, raw: NDArray[np.float64]) -> NDArray[Any]:
        return self._functions.observe(raw).astype(self.obs_dtype, copy=False)

    def _wanted(self, infos: dict[str, Any]) -> dict[str, Any]:
        if self._infos:
            return infos
        if "final_info" in infos:
            infos["final_info"] = {}
        return {n: v for n, v in infos.items() if n.removeprefix("_") in NOT_OWN}


def _split_infos(
    infos: dict[str, Any], started: dict[str, Any], ended: NDArray[np.bool_]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Merges a step's infos with those of the resets after it: shown and ended ones."""
    shown: dict[str, Any] = {}
    final: dict[str, Any] = {}
    for name in [n for n in infos if not n.startswith("_")]:
        values, mask = infos[name], infos[f"_{name}"]
        if name == "diverged":
            shown |= {name: values, f"_{name}": mask}
            continue
        if (mask & ended).any():
            final[name] = np.where(_wide(ended, values), values, np.zeros_like(values))
            final[f"_{name}"] = mask & ended
        values, mask = values.copy(), mask & ~ended
        values[ended] = 0
        if name in started:
            values[ended] = started[name][ended]
            mask |= started[f"_{name}"] & ended
        if mask.any():
            shown |= {name: values, f"_{name}": mask}
    for name in [n for n in started if n.removeprefix("_") not in infos]:
        shown[name] = started[name]
    return shown, final


def _wide(mask: NDArray[np.bool_], values: NDArray[Any]) -> NDArray[np.bool_]:
    return mask.reshape(-1, *[1] * (values.ndim - 1))


def _episodes(ends: list[Any], dtype: Any, obs_size: int) -> dict[str, Any]:
    columns = list(zip(*ends, strict=True)) or [()] * 7
    kinds = (np.int64, np.int64, np.float64, np.int64, np.bool_, dtype)
    names = ("steps", "env_ids", "returns", "lengths", "terminated", "final_obs")
    arrays = {n: np.array(c, k) for n, c, k in zip(names, columns, kinds, strict=False)}
    arrays["final_obs"] = arrays["final_obs"].reshape(len(ends), obs_size)
    return {**arrays, "infos": info_columns(columns[6])}
