"""The process of a command: its streams, its signals and its exit status."""

from __future__ import annotations

import sys

from fumehood.cli.streams import Stream, open_missing_streams, replace_streams
from fumehood.orchestrator.stop_signals import ignore_stop_signals

INFRA = 3
"""Exit status of infrastructure failures."""


def run_command() -> str | int | None:
    """Run the command line with streams that never fail, and return the exit status.

    Raises:
        Stopped: a signal was received outside a command.
    """
    open_missing_streams()
    output = replace_streams()
    status: str | int | None = None
    from fumehood.cli.main import main

    try:
        main()
    except SystemExit as end:
        status = end.code
    ignore_stop_signals()
    return _flushed(output, status)


def _flushed(output: Stream, status: str | int | None) -> str | int | None:
    """Write what is buffered, and return the status: another one if output was lost."""
    sys.stdout.flush()
    if output.error is None:
        return status
    print(
        f"fumehood: standard output cannot be written: {output.error.strerror}; "
        "results of a run are stored: fumehood score DIR prints them again",
        file=sys.stderr,
    )
    return status or INFRA
