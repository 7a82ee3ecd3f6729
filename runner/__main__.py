"""``python -m runner``: the command without being installed."""

from runner.cli import main

main()
