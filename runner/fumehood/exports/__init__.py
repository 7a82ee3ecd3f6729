"""Converts runs to the formats of other tools."""
