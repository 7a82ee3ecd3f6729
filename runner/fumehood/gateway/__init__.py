"""Models behind a seat's second socket: charged before, passed on untouched, settled after."""
