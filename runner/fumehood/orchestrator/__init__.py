"""Plans episodes, launches boxes, gathers traces, judges them, writes everything down. Holds the gold."""
