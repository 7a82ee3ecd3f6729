"""Builds a snapshot: chunks in parallel and resumable, then one merge."""
