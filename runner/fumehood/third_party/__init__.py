"""Other people's checkers and simulators, unmodified, each in a process of its own without privileges."""
