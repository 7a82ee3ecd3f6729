"""Offline search over sealed snapshots; knows nothing about the runner."""
