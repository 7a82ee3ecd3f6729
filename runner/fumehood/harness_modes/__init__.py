"""Profiles compose an episode: which layers, which random_source, what an agent is shown. One file each, one table."""
