"""The Python interface: run, read and compare without the command line."""
