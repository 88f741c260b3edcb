"""One environment that is only ever reset and stepped: what a pool's row must be.

Either gymnasium's own, or a FastVectorEnv of one environment and one thread.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import gymnasium
import numpy as np

import pyfastenv

Infos = Mapping[str, Any]


class Result(NamedTuple):
    """One environment's results of one step or reset."""

    obs: np.ndarray  # (obs_size,)
    reward: float
    terminated: bool
    truncated: bool
    infos: dict[str, Any]  # of info_row


class Failure(NamedTuple):
    """The environment raised."""

    message: str


def info_row(infos: Infos, row: int) -> dict[str, Any]:
    """One row's infos: (shape, bytes) by name, absent entries left out.

    As float64: a batch whose actions have several dtypes has its info entries in the widest.
    """
    result: dict[str, Any] = {}
    for key, column in infos.items():
        if key[0] == "_" or key == "env_id":
            continue
        mask = infos.get("_" + key)
        if mask is not None and not mask[row]:
            continue
        if isinstance(column, dict):
            result[key] = info_row(column, row)
        elif column[row] is not None:
            value = np.asarray(column[row], np.float64)
            result[key] = value.shape, value.tobytes()
    return result


def result_row(result: tuple[Any, ...], row: int, *, infos: bool = True) -> Result:
    """Row of what step, recv or reset returned."""
    said = info_row(result[-1], row) if infos else {}
    if len(result) == 2:
        return Result(result[0][row].copy(), 0.0, False, False, said)
    obs, rewards, terminations, truncations, _ = result
    return Result(
        obs[row].copy(), float(rewards[row]), bool(terminations[row]), bool(truncations[row]), said
    )


def diverged(result: Result) -> bool:
    return "diverged" in result.infos


def ended_with(result: Result) -> bool:
    """Whether it carries a final observation."""
    return "final_obs" in result.infos


def assert_row(ours: Result, theirs: Result, where: str, *, infos: bool = True) -> None:
    """Equal in all bits."""
    assert ours.obs.dtype == theirs.obs.dtype, where
    if ours.obs.tobytes() != theirs.obs.tobytes():
        raise AssertionError(f"{where}: obs {ours.obs}, expected {theirs.obs}")
    ours_said, theirs_said = np.float64(ours.reward).tobytes(), np.float64(theirs.reward).tobytes()
    assert ours_said == theirs_said, f"{where}: reward {ours.reward}, expected {theirs.reward}"
    assert ours[2:4] == theirs[2:4], f"{where}: flags {ours[2:4]}, expected {theirs[2:4]}"
    if infos and ours.infos != theirs.infos:
        keys = ours.infos.keys() | theirs.infos.keys()
        bad = [key for key in keys if ours.infos.get(key) != theirs.infos.get(key)]
        raise AssertionError(f"{where}: infos differ in {sorted(bad)}")


class Ours:
    """A pool of one."""

    def __init__(self, env_id: str, kwargs: Mapping[str, Any]):
        self.envs = pyfastenv.make_vec(env_id, 1, num_threads=1, **kwargs)

    def reset(self, seed: int | None, bounds: Mapping[str, float]) -> Result | Failure:
        return self._run(lambda: self.envs.reset(seed=seed, options=bounds))

    def step(self, action: np.ndarray) -> Result | Failure:
        return self._run(lambda: self.envs.step(action[None]))

    @staticmethod
    def _run(call: Any) -> Result | Failure:
        try:
            return result_row(call(), 0)
        except pyfastenv.EnvError as error:
            return Failure(error.messages[0])

    def stream(self) -> dict[str, Any]:
        """Where the random stream is."""
        state: dict[str, Any] = self.envs.np_random[0].bit_generator.state["state"]
        return state

    def close(self) -> None:
        self.envs.close()


class Gymnasium:
    """gymnasium's own, in its own vector environment."""

    def __init__(self, env_id: str, kwargs: Mapping[str, Any]):
        kwargs = dict(kwargs)
        mode, limit = kwargs.pop("autoreset_mode"), kwargs.pop("max_episode_steps")
        assert kwargs.pop("obs_dtype") is None and kwargs.pop("infos")
        self.envs = gymnasium.vector.SyncVectorEnv(
            [
                lambda: gymnasium.make(
                    env_id, disable_env_checker=True, max_episode_steps=limit or -1, **kwargs
                )
            ],
            autoreset_mode=mode,
        )

    def reset(self, seed: int | None, bounds: Mapping[str, float]) -> Result:
        return result_row(self.envs.reset(seed=seed, options=dict(bounds)), 0)

    def step(self, action: np.ndarray) -> Result:
        return result_row(self.envs.step(action[None]), 0)

    def stream(self) -> dict[str, Any]:
        state: dict[str, Any] = self.envs.envs[0].unwrapped.np_random.bit_generator.state["state"]
        return state

    def close(self) -> None:
        self.envs.close()


Reference = Ours | Gymnasium
