"""Harness modes: which layers and random source an episode has, and what agents see. One file each."""
