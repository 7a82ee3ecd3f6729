"""Monitors: they watch the steps of an agent, give suspicion scores, and decide about each step."""
