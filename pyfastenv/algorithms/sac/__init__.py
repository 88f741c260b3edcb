"""Soft actor-critic; ``spec`` is all of it, in plain PyTorch."""

from pyfastenv.algorithms.sac.spec import (
    METRICS,
    SAC,
    Config,
    Functions,
    SACLearner,
    SACOptions,
    critic_loss,
    load_policy,
    policy_loss,
    target_update,
    temperature_loss,
    train,
    twin_values,
)

__all__ = [
    "METRICS",
    "SAC",
    "Config",
    "Functions",
    "SACLearner",
    "SACOptions",
    "critic_loss",
    "load_policy",
    "policy_loss",
    "target_update",
    "temperature_loss",
    "train",
    "twin_values",
]
