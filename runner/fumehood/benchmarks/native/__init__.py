"""Native tasks: the record format of this project, its loader and its generator."""
