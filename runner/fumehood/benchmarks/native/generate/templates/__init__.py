"""Task templates, one module per world."""
