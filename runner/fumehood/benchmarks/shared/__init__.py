"""Reading, checking, playing and generating tasks: what benchmarks share."""
