"""Who decides whether a free answer is right. One file each, one table."""
