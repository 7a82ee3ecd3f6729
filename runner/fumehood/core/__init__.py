"""Pure data and decisions: no I/O, no wall clock, no global random state; standard library only."""
