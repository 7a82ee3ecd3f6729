"""Engines, which start untrusted agents in boxes, and the images of boxes."""
