"""``python -m fumehood``: the command without being installed."""

from fumehood.cli import main

main()
