"""DrQ-v2, which learns from pixels; ``spec`` is all of it, in plain PyTorch."""

from pyfastenv.algorithms.drqv2.spec import Config, DrQv2, train

__all__ = ["Config", "DrQv2", "train"]
