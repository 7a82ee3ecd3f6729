"""Parts for tests and benchmarks of this project and of extensions: real, small, in memory."""
