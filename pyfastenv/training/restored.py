"""Policies of a checkpoint, in algorithms of their own. Knows no algorithm."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from pyfastenv.nn.policy_spec import PolicySpec
from pyfastenv.nn.torch_policy import TorchPolicy
from pyfastenv.training.config import RunConfig


def greedy_policies(
    algorithm: Callable[..., Any], config: RunConfig, state: Mapping[str, Any]
) -> PolicySpec | list[TorchPolicy]:
    """Of a checkpoint, without chance, whatever its environments have become since.

    Args:
        algorithm: Takes ``config`` and ``restore``; has ``envs`` and ``eval_policy``
            (:class:`pyfastenv.training.loop.Algorithm`).
        config: The options.
        state: Its ``state_dict``.
    """
    restored = algorithm(config, restore=_without_envs(state))
    restored.envs.close()
    policies: PolicySpec | list[TorchPolicy] = restored.eval_policy()
    return policies


def _without_envs(state: Mapping[str, Any]) -> dict[str, Any]:
    """The state with None for the environments' states, wherever they stand in it."""
    kept = {name: None if name == "envs" else part for name, part in state.items()}
    return {
        name: _without_envs(part) if isinstance(part, Mapping) else part
        for name, part in kept.items()
    }
