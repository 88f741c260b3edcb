"""Model-based policy optimisation; ``spec`` is all of it, in plain PyTorch."""

from pyfastenv.algorithms.mbpo.spec import MBPO, Config, train

__all__ = ["MBPO", "Config", "train"]
