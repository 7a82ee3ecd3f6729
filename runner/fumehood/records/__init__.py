"""Reads, writes, signs and verifies run folders, and keeps results in the user's state folder."""
