"""Twin delayed deep deterministic policy gradient; ``spec`` is all of it, in plain PyTorch."""

from pyfastenv.algorithms.td3.spec import TD3, Config, Functions, critic_loss, policy_loss, train

__all__ = ["TD3", "Config", "Functions", "critic_loss", "policy_loss", "train"]
