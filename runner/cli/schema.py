"""``glovebox schema``."""

from __future__ import annotations

import json

import click

from runner.orchestrator.config import RunConfig


@click.command()
@click.argument("what", type=click.Choice(["run"]))
def schema(what: str) -> None:
    """Print the JSON Schema of a file that this command reads."""
    click.echo(json.dumps(RunConfig.model_json_schema(), indent=2))
