"""The steps of call processing, as layers around a toolset. Fault families are in ``faults``."""
