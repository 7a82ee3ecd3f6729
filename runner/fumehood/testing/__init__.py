"""Helpers for tests of this project and of extensions: in-memory seats and a stub provider."""
