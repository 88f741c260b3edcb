"""Deep deterministic policy gradient; ``spec`` is all of it, in plain PyTorch."""

from pyfastenv.algorithms.ddpg.spec import (
    DDPG,
    Config,
    DDPGLearner,
    Functions,
    critic_loss,
    load_policy,
    policy_loss,
    train,
)

__all__ = [
    "DDPG",
    "Config",
    "DDPGLearner",
    "Functions",
    "critic_loss",
    "load_policy",
    "policy_loss",
    "train",
]
