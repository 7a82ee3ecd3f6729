"""Hostile agents, and the proof that what surrounds them holds: run by users, on their own
machine."""
