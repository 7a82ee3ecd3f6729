"""Forks confined processes from a warm one, limits them, and kills them at a deadline."""
