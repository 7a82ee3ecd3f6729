"""Profiles compose an episode: which layers, which dice, what an agent is shown. One file each, one table."""
