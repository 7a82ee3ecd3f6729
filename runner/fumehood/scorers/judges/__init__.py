"""The registry of judges, which decide whether a free answer is right."""
