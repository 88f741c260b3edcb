"""The parts that all algorithms share: configuration, the loop, checkpoints, logs, evaluation.

Knows no algorithm: :mod:`pyfastenv.training.registry` finds them by name, when asked to.
"""
