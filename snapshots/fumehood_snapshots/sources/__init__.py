"""What a snapshot can be built from; each source yields items in one order and knows nothing of a build."""
