"""Converts text to the terms that are indexed and searched."""
