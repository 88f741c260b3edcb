"""A task's functions of whole batches: plain Python, NumPy or torch, once per call of the pool.

They are the way for what cannot be compiled. The compiled ``step`` and ``observation`` write raw
values; what the functions return takes the place of the reward and the observation, and ends
episodes. Knows no pool: arrays in, arrays out.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping, MutableMapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pyfastenv.tasks.language.layout import Layout, Part, obs_parts
from pyfastenv.tasks.language.task import BATCH_METHODS, Task, arguments_of


def has_batch_functions(task: type[Task]) -> bool:
    """Whether a task's results are Python's to finish."""
    return any(hasattr(task, name) for name in BATCH_METHODS)


class BatchInfos(MutableMapping[str, Any]):
    """The infos of n steps: arrays ``(n, …)`` by name, to be read and added to."""

    def __init__(self, values: dict[str, NDArray[Any]], count: int, owner: str):
        self.added: dict[str, NDArray[Any]] = {}
        self._values = values
        self._count = count
        self._owner = owner

    def __getitem__(self, name: str) -> NDArray[Any]:
        return self.added[name] if name in self.added else self._values[name]

    def __setitem__(self, name: str, value: Any) -> None:
        self.added[name] = _checked(value, self._count, f"{self._owner}: info[{name!r}]")

    def __delitem__(self, name: str) -> None:
        raise TypeError(f"{self._owner}: info[{name!r}] cannot be taken back")

    def __iter__(self) -> Iterator[str]:
        return iter({**self._values, **self.added})

    def __len__(self) -> int:
        return len({**self._values, **self.added})


class BatchFunctions:
    """A task's ``batch_step`` and ``batch_observation``, with their arguments and results checked.

    Args:
        task: Which has one of them, or both.
        raw: The layout of what its compiled methods write.
        sample: A raw observation ``(raw.obs_size,)``, to find out what is shown for it.

    Attributes:
        shown: The layout of the observations that the environment gives.
    """

    def __init__(self, task: Task, raw: Layout, sample: NDArray[np.float64]):
        self._task = task
        self._raw = raw
        self._owner = type(task).__name__
        self._action_dtype = np.dtype(task.action_dtype)
        self._steps = hasattr(type(task), "batch_step")
        self._observes = hasattr(type(task), "batch_observation")
        self.shown: Mapping[str, Part] = raw.obs
        if self._observes:
            written = self._written(sample[None])
            self.shown = obs_parts({name: array[0] for name, array in written.items()})

    @property
    def obs_size(self) -> int:
        """Numbers in an observation that is shown."""
        return sum(part.size for part in self.shown.values())

    def observe(self, raw: NDArray[np.float64]) -> NDArray[np.float64]:
        """The observations ``(n, obs_size)`` that are shown for raw ones ``(n, raw.obs_size)``."""
        if not self._observes:
            return raw
        if len(raw) == 0:
            return np.zeros((0, self.obs_size))
        written = self._written(raw)
        sizes = {name: array[0].size for name, array in written.items()}
        expected = {name: part.size for name, part in self.shown.items()}
        if sizes != expected:
            raise ValueError(
                f"{self._owner}.batch_observation: expected numbers per environment {expected}, as "
                f"in the first run, got {sizes}"
            )
        flat = [written[name].reshape(len(raw), -1) for name in self.shown]
        return np.concatenate(flat, axis=1, dtype=np.float64)

    def finish(
        self,
        raw: NDArray[np.float64],
        actions: NDArray[Any],
        rewards: NDArray[np.float64],
        terminated: NDArray[np.bool_],
        infos: dict[str, NDArray[Any]],
    ) -> tuple[NDArray[np.float64], NDArray[np.bool_], dict[str, NDArray[Any]]]:
        """The rewards of n steps, which of them end an episode, and more infos.

        Args:
            raw: ``(n, raw.obs_size)`` that the steps led to.
            actions: ``(n, …)``; the function gets them as the task does, in its dtype.
            rewards: ``(n,)`` that the compiled steps returned.
            terminated: ``(n,)`` likewise; such an episode stays ended.
            infos: ``(n, …)`` by name.
        """
        count = len(raw)
        if not self._steps or count == 0:
            return rewards, terminated, {}
        owner = f"{self._owner}.batch_step"
        info = BatchInfos(infos, count, owner)
        kind = np.int64 if actions.ndim == 1 else self._action_dtype
        given = {
            "obs": self._parts(raw),
            "action": actions.astype(kind, copy=False),
            "reward": rewards.copy(),
            "terminated": terminated.copy(),
            "info": info,
        }
        method = type(self._task).batch_step
        returned = self._task.batch_step(**{name: given[name] for name in arguments_of(method)})
        place = f"{owner} ({_line(method)})"
        if not isinstance(returned, tuple) or len(returned) != 2:
            raise TypeError(f"{place} must return (reward, terminated), got {returned!r}")
        new_rewards = _checked(returned[0], count, f"{place}: reward", vector=True)
        ends = _checked(returned[1], count, f"{place}: terminated", vector=True)
        if ends.dtype.kind == "f":
            raise TypeError(f"{place}: terminated: expected bools, got {ends.dtype}")
        if not np.isfinite(new_rewards).all():
            bad = np.flatnonzero(~np.isfinite(new_rewards))[:4].tolist()
            raise ValueError(f"{place}: the reward is not finite in rows {bad} of {count}")
        return new_rewards.astype(np.float64), terminated | ends.astype(np.bool_), info.added

    def _written(self, raw: NDArray[np.float64]) -> dict[str, NDArray[Any]]:
        method = type(self._task).batch_observation
        place = f"{self._owner}.batch_observation ({_line(method)})"
        returned = self._task.batch_observation(self._parts(raw))
        if not isinstance(returned, Mapping):
            returned = {"observation": returned}
        return {
            name: _checked(value, len(raw), f"{place}: {name!r}")
            for name, value in returned.items()
        }

    def _parts(self, raw: NDArray[np.float64]) -> dict[str, NDArray[np.float64]]:
        """Raw observations by name: ``(n,)`` for a number, else ``(n, *shape)``; views."""
        return {
            name: raw[:, part.offset : part.offset + part.size].reshape(len(raw), *part.shape)
            for name, part in self._raw.obs.items()
        }


def _checked(value: Any, count: int, where: str, *, vector: bool = False) -> NDArray[Any]:
    """An array of numbers with a row per environment; tensors are taken too."""
    if hasattr(value, "detach"):
        value = value.detach().cpu().numpy()
    array = np.asarray(value)
    if array.dtype.kind not in "biuf":
        raise TypeError(f"{where}: expected numbers, got {value!r}")
    if array.ndim == 0 or len(array) != count or (vector and array.ndim != 1) or array.size == 0:
        shape = f"({count},)" if vector else f"({count}, …)"
        raise ValueError(f"{where}: expected shape {shape}, got {array.shape}")
    return array


def _line(method: Any) -> str:
    code = inspect.unwrap(method).__code__
    return f"{code.co_filename.rpartition('/')[2]}:{code.co_firstlineno}"
