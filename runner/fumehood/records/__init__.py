"""Runs on disk: the folder, its rows, its traces. Knows how to keep them, not how they came about."""
