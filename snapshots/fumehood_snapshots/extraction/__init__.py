"""Extracts title and text from the raw bytes of a page; removes markup and keeps the wording."""
