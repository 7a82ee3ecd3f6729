"""Costs of building and searching, as ratios against other libraries in the same run.

``python -m fumehood_snapshots.bench`` prints everything. Each number comes from a process of its own, so that memory
is that of one thing alone, and is processor time, which says the same on a machine where others work too.
Absolute numbers belong to a machine and an hour; the ratios are what must hold.
"""
