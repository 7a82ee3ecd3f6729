"""A small library for demos and tests: the almanac of an invented island, with ten questions."""
