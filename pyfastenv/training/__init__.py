"""The parts that all algorithms share: the loop, how they collect and learn, who accelerates it.

Knows no algorithm: :mod:`pyfastenv.runs.registry` finds them by name, when asked to.
"""
