"""Deep deterministic policy gradient: TD3 with other settings."""

from pyfastenv.algorithms.ddpg.spec import DDPG, Config, train

__all__ = ["DDPG", "Config", "train"]
