"""Replays recorded behaviour and compares, at three depths: the core, the wire, a box."""
