"""What people type: one file a command. Only words, flags and tables; the work is done in the rooms below."""

from fumehood.cli.main import main

__all__ = ["main"]
