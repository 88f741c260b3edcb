"""Checks whether a task does what it should, in each way of running it."""
