"""Benchmarks: one folder each, a registry, and the code that benchmarks share."""
