"""The command line: one file per command or group. Commands parse options and print results."""

from __future__ import annotations


def main() -> None:
    """Run the command line and exit."""
    import sys

    from fumehood.orchestrator import stop_signals

    status: str | int | None
    try:
        # Signals first, because the imports of the commands take longer than many commands.
        stop_signals.raise_stop_signals()
        from fumehood.cli.command_process import run_command

        status = run_command()
    except stop_signals.Stopped as stopped:
        # While it ends, Python restores the default action, which would replace the exit status.
        stop_signals.ignore_stop_signals()
        print("fumehood: interrupted", file=sys.stderr)
        status = stop_signals.exit_status(stopped.number)
    sys.exit(status)
