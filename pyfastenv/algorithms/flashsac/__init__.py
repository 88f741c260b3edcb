"""FlashSAC; ``spec`` is all of it, in plain PyTorch."""

from pyfastenv.algorithms.flashsac.spec import (
    Config,
    FlashSAC,
    Functions,
    critic_loss,
    policy_loss,
    train,
)

__all__ = ["Config", "FlashSAC", "Functions", "critic_loss", "policy_loss", "train"]
