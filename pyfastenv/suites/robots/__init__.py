"""Robots built from primitives: nothing to download."""
