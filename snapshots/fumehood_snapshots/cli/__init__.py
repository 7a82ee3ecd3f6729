"""The command group ``snapshot``: one file per command, imported on use."""
