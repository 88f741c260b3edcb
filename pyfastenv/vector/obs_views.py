"""ObsViews: a Dict of observations as named views of flat rows. Knows no pool and no task.

The pool keeps one flat row per environment whatever its observation space is. A Dict space is a set
of places in that row: its entries are views, nothing is copied, and they may overlap (a critic may
see what the policy sees, and more).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, NamedTuple, TypeVar

import gymnasium
import numpy as np
from numpy.typing import DTypeLike

ArrayOrTensor = TypeVar("ArrayOrTensor", bound=Any)


class ObsView(NamedTuple):
    """Where an entry stands in a flat observation."""

    offset: int
    shape: tuple[int, ...]

    @property
    def place(self) -> slice:
        """The place of its numbers."""
        return slice(self.offset, self.offset + int(np.prod(self.shape)))


def holding(groups: Mapping[str, slice], column: int) -> list[tuple[str, int]]:
    """The entries that a column of flat rows is in, and its number in each.

    Args:
        groups: Places of entries in flat rows, by name.
        column: Counted from 0.
    """
    entries = groups.items()
    return [(name, column - at.start) for name, at in entries if at.start <= column < at.stop]


class FlatViews(ABC):
    """How observations that the pool keeps as flat rows are shown to users."""

    @abstractmethod
    def of(self, flat: ArrayOrTensor) -> Any:
        """Views of flat rows, an array or a tensor ``(…, row size)``, as users see them."""

    @abstractmethod
    def space(self, dtype: DTypeLike) -> gymnasium.Space[Any]:
        """One environment's; ``dtype`` is that of its numbers."""

    def of_results(self, results: tuple[Any, ...]) -> tuple[Any, ...]:
        """Shows the flat results of ``reset``, ``step`` or ``recv``, final observations too."""
        obs, *others, infos = results
        final_obs = infos.get("final_obs")
        if final_obs is not None:
            for i in np.flatnonzero(infos["_final_obs"]):
                final_obs[i] = self.of(final_obs[i])
        return self.of(obs), *others, infos


class ObsViews(FlatViews):
    """The entries of a Dict space, by name, in the space's order (gymnasium sorts them).

    Args:
        views: By name.
    """

    def __init__(self, views: Mapping[str, ObsView]):
        self.views = dict(sorted(views.items()))

    def of(self, flat: ArrayOrTensor) -> dict[str, ArrayOrTensor]:
        """The entries of flat observations, an array or a tensor ``(…, obs_size)``.

        Returns:
            By name ``(…, *shape)``: views of ``flat``, with its memory, lifetime and dtype.
        """
        lead = tuple(flat.shape[:-1])
        return {
            name: part if len(view.shape) == 1 else part.reshape((*lead, *view.shape))
            for name, view in self.views.items()
            for part in (flat[..., view.place],)
        }

    def space(self, dtype: DTypeLike) -> gymnasium.spaces.Dict:
        """One environment's."""
        kind: Any = np.dtype(dtype).type
        return gymnasium.spaces.Dict(
            {
                name: gymnasium.spaces.Box(-np.inf, np.inf, view.shape, kind)
                for name, view in self.views.items()
            }
        )


def row_of(obs: Any, i: int) -> Any:
    """One environment's observation out of a batch of arrays, or of dicts of them."""
    if isinstance(obs, Mapping):
        return {name: values[i] for name, values in obs.items()}
    return obs[i]
