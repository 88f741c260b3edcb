"""A policy live in a browser: the commands, pushes and clock of ``pyfastenv play``."""
