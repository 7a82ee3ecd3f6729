"""A run that a command needs before it can speak of it."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console

from fumehood.cli.progress import RunProgress
from fumehood.core.errors import InputError
from fumehood.orchestrator.config import RunConfig
from fumehood.orchestrator.launch import Progress, config_of, resume_run, start_run
from fumehood.records.run_folder import RunFolder

PLAN = ("suite", "agents", "model", "trials", "seed")
"""Settings of which one that is not the same makes it another run."""


def carried_out(config: RunConfig, path: Path, *, quiet: bool) -> RunFolder:
    """Return the folder of a run that is done: begun now, or gone on with where it was left.

    Raises:
        InputError: the folder holds another run, or the run cannot be made.
        InfraError: the services do not come up.
    """
    with RunProgress(Console(stderr=True), quiet=quiet) as progress:
        told = Progress(progress.start, progress.row, progress.wait)
        if not (path / "run.json").is_file():
            return start_run(config, path, told)
        folder = RunFolder.open(path)
        there = config_of(folder)
        other = [name for name in PLAN if getattr(there, name) != getattr(config, name)]
        if other:
            raise InputError(f"{path} holds another run ({', '.join(other)}): name another --out")
        resume_run(folder, told)
        return folder
