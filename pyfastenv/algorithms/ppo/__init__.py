"""Proximal policy optimisation; ``spec`` is all of it, in plain PyTorch."""

from pyfastenv.algorithms.ppo.spec import PPO, Config, Functions, ppo_loss, train

__all__ = ["PPO", "Config", "Functions", "ppo_loss", "train"]
