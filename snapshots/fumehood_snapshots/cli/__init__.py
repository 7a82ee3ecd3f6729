"""The command group ``snapshot``: one file a command, imported when it is asked for."""
