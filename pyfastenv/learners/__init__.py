"""Gradient steps of the algorithms, and termination rules as functions of tensors."""
