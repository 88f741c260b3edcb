"""Deep deterministic policy gradient; ``spec`` is all of it, in plain PyTorch."""

from pyfastenv.algorithms.ddpg.spec import DDPG, Config, Functions, critic_loss, policy_loss, train

__all__ = ["DDPG", "Config", "Functions", "critic_loss", "policy_loss", "train"]
