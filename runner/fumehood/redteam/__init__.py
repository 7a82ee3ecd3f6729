"""Attacks on the boundaries around an agent, with canaries and control episodes."""
