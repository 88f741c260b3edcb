"""Soft actor-critic; ``spec`` is all of it, in plain PyTorch."""

from pyfastenv.algorithms.sac.spec import (
    SAC,
    Config,
    Functions,
    critic_loss,
    policy_loss,
    target_update,
    temperature_loss,
    train,
    twin_values,
)

__all__ = [
    "SAC",
    "Config",
    "Functions",
    "critic_loss",
    "policy_loss",
    "target_update",
    "temperature_loss",
    "train",
    "twin_values",
]
