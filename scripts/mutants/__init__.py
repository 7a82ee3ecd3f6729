"""Measures whether the tests notice a change of one token in the code that decides scores."""
