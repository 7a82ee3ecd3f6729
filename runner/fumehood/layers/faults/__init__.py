"""Fault families, one file each."""
