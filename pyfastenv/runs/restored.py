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
        algorithm: Takes ``config``; has ``envs``, ``eval_policy`` and ``load_learned``
            (:class:`pyfastenv.training.algorithm.Algorithm`).
        config: The options.
        state: Its ``state_dict``, or the parts of it that were learned.
    """
    restored = algorithm(config)
    restored.load_learned(state)
    restored.envs.close()
    policies: PolicySpec | list[TorchPolicy] = restored.eval_policy()
    return policies
