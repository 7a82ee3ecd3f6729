"""The command line: one file per command or group. Commands parse options and print results."""

from fumehood.cli.main import main

__all__ = ["main"]
