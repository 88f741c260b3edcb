"""Policies of a checkpoint, in algorithms of their own. Knows no algorithm."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from pyfastenv.nn.policy_spec import PolicySpec
from pyfastenv.nn.torch_policy import TorchPolicy
from pyfastenv.runs.config import RunConfig


def greedy_policies(
    algorithm: Callable[..., Any], config: RunConfig, state: Mapping[str, Any]
) -> PolicySpec | list[TorchPolicy]:
    """The deterministic policies of a checkpoint, wherever it was trained, and whatever its
    environments have become since.

    Args:
        algorithm: Takes ``config`` and ``restore``; has ``envs`` and ``eval_policy``
            (:class:`pyfastenv.training.algorithm.Algorithm`).
        config: The options.
        state: Its ``state_dict``.
    """
    restored = algorithm(config, restore=_what_acts(state))
    restored.envs.close()
    policies: PolicySpec | list[TorchPolicy] = restored.eval_policy()
    return policies


# states that other environments or another device cannot take
_NOT_OF_THE_POLICY = ("envs", "generator", "generators", "device_generator")


def _what_acts(state: Mapping[str, Any]) -> dict[str, Any]:
    """The state with None for the environments' and generators' states, wherever they stand."""
    kept = {name: None if name in _NOT_OF_THE_POLICY else part for name, part in state.items()}
    return {
        name: _what_acts(part) if isinstance(part, Mapping) else part for name, part in kept.items()
    }
