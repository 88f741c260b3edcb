"""Robots with tasks of our own."""
