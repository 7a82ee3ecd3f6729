"""Plans runs, executes their episodes in boxes, scores the traces and writes the run folder."""
