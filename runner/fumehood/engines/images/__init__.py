"""Builds the images that boxes are started from."""
