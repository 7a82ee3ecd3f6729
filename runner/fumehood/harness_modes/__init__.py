"""Harness modes: the layers and the random source of an episode. One file each."""
