"""Sections of a report: each names its tables and pictures once, for every output."""
