"""``glovebox score``."""

from __future__ import annotations

from pathlib import Path

import click

from runner.cli.finish import finish
from runner.orchestrator.rescore import rescore
from runner.records.run_folder import RunFolder


@click.command()
@click.argument("run_dir", metavar="DIR", type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="One JSON object on standard output.")
def score(run_dir: Path, as_json: bool) -> int:
    """Judge the run in DIR again, from its traces alone, and print the table.

    Checks on the way that every trace is whole and is the one that was recorded.
    """
    folder = RunFolder.open(run_dir)
    return finish(folder, rescore(folder), as_json=as_json)
