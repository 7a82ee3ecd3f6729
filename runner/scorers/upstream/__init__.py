"""Other people's checkers, unmodified, each in a process of its own without privileges."""
