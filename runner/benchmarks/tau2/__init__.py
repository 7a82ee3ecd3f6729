"""τ²-bench, as far as nobody has to play the user: telecom alone, with both sides' tools."""
