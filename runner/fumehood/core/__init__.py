"""The law: pure data and pure decisions. No I/O, no wall clock, no global chance, standard library only."""
