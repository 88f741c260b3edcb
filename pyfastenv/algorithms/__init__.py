"""The algorithms, a folder each: ``spec`` is the readable program, ``accelerated`` computes it."""
