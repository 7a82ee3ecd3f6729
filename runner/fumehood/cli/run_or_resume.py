"""Runs or resumes the run that a command reports on."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console

from fumehood.cli.progress import RunProgress
from fumehood.orchestrator.config import RunConfig
from fumehood.orchestrator.launch import Progress, run_or_resume
from fumehood.records.run_folder import RunFolder


def carried_out(config: RunConfig, path: Path, *, quiet: bool) -> RunFolder:
    """Return the folder of a finished run: a new run, or an existing one that is resumed.

    Args:
        config: of the run.
        path: the run folder.
        quiet: whether to print no progress.

    Raises:
        InputError: the folder holds a run with another plan, or the run cannot be executed.
        InfraError: the services do not start.
    """
    with RunProgress(Console(stderr=True), quiet=quiet) as progress:
        callbacks = Progress(progress.start, progress.row, progress.wait)
        return run_or_resume(config, path, callbacks)
