"""Questions that are answered by searching a snapshot and citing from it."""
