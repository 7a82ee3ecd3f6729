"""Generates suites with the scheme of ToolMisuseBench, releases 0.1 and 0.2."""
