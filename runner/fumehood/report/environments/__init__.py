"""How much of a score was the environment: the same tasks offline and live, and agents within each."""
