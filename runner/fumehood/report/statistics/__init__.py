"""From results to numbers. Knows nothing about files, pages or pictures."""
