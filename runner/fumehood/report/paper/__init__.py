"""Reproduction of the tables and figures of ToolMisuseBench's paper (arXiv 2604.01508)."""
