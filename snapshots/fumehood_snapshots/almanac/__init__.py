"""A small library of our own writing: a made-up island's almanac, with ten questions. For demos and tests."""
