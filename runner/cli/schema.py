"""``glovebox schema``."""

from __future__ import annotations

import json

import click

from runner.benchmarks.native.record import record_schema
from runner.orchestrator.config import RunConfig


@click.command()
@click.argument("what", type=click.Choice(["run", "task"]))
def schema(what: str) -> None:
    """Print the JSON Schema of a file that this command reads: of a run, or of one task a line."""
    found = RunConfig.model_json_schema() if what == "run" else record_schema()
    click.echo(json.dumps(found, indent=2))
