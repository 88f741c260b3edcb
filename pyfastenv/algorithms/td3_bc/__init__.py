"""TD3 with behaviour cloning, from datasets alone; ``spec`` is what TD3 does not have."""

from pyfastenv.algorithms.td3_bc.spec import TD3BC, Config, Functions, policy_loss, train

__all__ = ["TD3BC", "Config", "Functions", "policy_loss", "train"]
