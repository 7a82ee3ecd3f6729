"""Costs of building and searching a snapshot, as ratios against other libraries in the same run.

``python -m scripts.bench.snapshots`` prints everything. Each measurement runs in a separate
process, so that its memory is its own, and measures processor time, which other load on the machine
does not change. Absolute figures depend on the machine; the ratios are compared.
"""
