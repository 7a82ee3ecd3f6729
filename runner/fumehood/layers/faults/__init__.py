"""Fault families, one file each, one table; each rule of a plan becomes one layer."""
