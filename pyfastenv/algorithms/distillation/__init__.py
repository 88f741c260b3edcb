"""Student-teacher distillation; ``spec`` is the algorithm, to be read from top to bottom."""

from pyfastenv.algorithms.distillation.spec import Config, Distillation, train

__all__ = ["Config", "Distillation", "train"]
