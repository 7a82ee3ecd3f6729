"""Who speaks next: one rule a file."""
