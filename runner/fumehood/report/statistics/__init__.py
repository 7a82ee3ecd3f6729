"""Statistics of results, independent of files and output formats."""
