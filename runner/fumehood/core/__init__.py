"""Pure data and pure decisions. No I/O, no wall clock, no global random state; standard library only."""
