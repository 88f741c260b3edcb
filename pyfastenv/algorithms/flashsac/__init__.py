"""FlashSAC; ``spec`` is all of it, in plain PyTorch."""

from pyfastenv.algorithms.flashsac.spec import (
    Config,
    FlashSAC,
    FlashSACLearner,
    Functions,
    critic_loss,
    load_policy,
    policy_loss,
    train,
)

__all__ = [
    "Config",
    "FlashSAC",
    "FlashSACLearner",
    "Functions",
    "critic_loss",
    "load_policy",
    "policy_loss",
    "train",
]
