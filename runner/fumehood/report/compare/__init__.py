"""Comparisons of runs by one dimension: agent, scaffold, data mode."""
