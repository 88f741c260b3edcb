"""Proximal policy optimisation of networks with a memory; ``spec`` is what PPO's has not."""

from pyfastenv.algorithms.recurrent_ppo.spec import Config, RecurrentPPO, train

__all__ = ["Config", "RecurrentPPO", "train"]
