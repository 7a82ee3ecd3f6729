"""Question sets on snapshots: almanac and python-docs."""
