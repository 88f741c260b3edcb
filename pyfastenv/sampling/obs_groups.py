"""Observation groups: what of an environment's flat observation the policy sees, what the critic.

A critic is only there while training, so it may see what no sensor measures (an asymmetric
actor-critic: Pinto et al. 2017, arXiv:1710.06542). An environment says so by the names of its Dict
space's entries, which are places in one flat row and may overlap.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple, Self

from pyfastenv.vector.obs_views import ObsViews, holding
from pyfastenv.vector.vector_env import FastVectorEnv

POLICY, CRITIC = "policy", "critic"


class Seen(NamedTuple):
    """Columns of flat observations."""

    policy: slice
    critic: slice

    @classmethod
    def of(cls, envs: FastVectorEnv) -> Self:
        """The entries ``"policy"`` and ``"critic"``; without them, both see everything.

        Raises:
            ValueError: There is one of them without the other.
        """
        views = envs.obs_views.views if isinstance(envs.obs_views, ObsViews) else {}
        found = [name for name in (POLICY, CRITIC) if name in views]
        if not found:
            return cls(slice(0, envs.obs_size), slice(0, envs.obs_size))
        if len(found) == 1:
            raise ValueError(
                f"{envs.env_id}: expected observations {POLICY!r} and {CRITIC!r}, or neither, got "
                f"{found[0]!r} among {', '.join(views)}"
            )
        return cls(views[POLICY].place, views[CRITIC].place)


def groups_of(envs: FastVectorEnv) -> Mapping[str, slice]:
    """The columns of an own task's observations, by name; of other environments none."""
    return getattr(envs, "observation_groups", {})


def places(envs: FastVectorEnv) -> dict[str, Any]:
    """Where a checkpoint's networks found an own task's observations; of others nothing.

    Returns:
        ``"groups"``, the columns of each observation, first and behind the last, by its name, and
        ``"seen"``, those of the policy and of the critic.
    """
    groups = groups_of(envs)
    columns = {name: (at.start, at.stop) for name, at in groups.items()}
    seen = [(at.start, at.stop) for at in Seen.of(envs)]
    return {"groups": columns, "seen": seen} if groups else {}


def named_components(envs: FastVectorEnv, message: str) -> str:
    """A message about a component that is NaN, with its name too if an own task observes it."""

    def with_name(found: re.Match[str]) -> str:
        entries = holding(groups_of(envs), int(found[1]))
        return "".join([found[0], *(f" (obs[{name!r}])" for name, _ in entries)])

    return re.sub(r"component (\d+)(?= .*NaN or infinite)", with_name, message)
