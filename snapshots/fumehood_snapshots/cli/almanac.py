"""``fumehood snapshot almanac``: builds the bundled small library."""

from __future__ import annotations

from pathlib import Path

import click

from fumehood_snapshots.almanac.benchmark import NAME, build_almanac
from fumehood_snapshots.cli.build import say_built
from fumehood_snapshots.cli.showing import json_option


@click.command()
@click.argument("out", type=click.Path(path_type=Path), default=NAME)
@json_option
def almanac(out: Path, as_json: bool) -> None:
    """Build the bundled snapshot OUT.

    It has thirty documents about a fictional island. OUT is ./almanac by default.
    """
    say_built(out, build_almanac(out), as_json=as_json)
