"""Reads methods as syntax trees, resolves their names, and refuses the rest."""
