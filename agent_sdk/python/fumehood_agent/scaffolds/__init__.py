"""Scaffolds: agents around a model that differ only in how they use it."""
