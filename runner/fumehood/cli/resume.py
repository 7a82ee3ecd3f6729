"""``fumehood resume``."""

from __future__ import annotations

from pathlib import Path

import click
from rich.console import Console

from fumehood.cli.progress import RunProgress
from fumehood.cli.run_summary import finish
from fumehood.orchestrator.launch import Progress, resume_run
from fumehood.records.run_folder import RunFolder


@click.command()
@click.argument("run_dir", metavar="DIR", type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="One JSON object on standard output.")
def resume(run_dir: Path, as_json: bool) -> int:
    """Finish the run in DIR: run the episodes that are missing or failed on our side, repeat none."""
    folder = RunFolder.open(run_dir)
    with RunProgress(Console(stderr=True), quiet=as_json) as progress:
        resume_run(folder, Progress(progress.start, progress.row, progress.wait))
    return finish(folder, folder.rows(), as_json=as_json)
