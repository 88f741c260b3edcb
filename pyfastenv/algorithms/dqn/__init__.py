"""Deep Q-learning; ``spec`` is all of it, in plain PyTorch."""

from pyfastenv.algorithms.dqn.spec import DQN, Config, Functions, targets, train, value_loss

__all__ = ["DQN", "Config", "Functions", "targets", "train", "value_loss"]
