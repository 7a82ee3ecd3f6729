"""``fumehood snapshot almanac``: something small to search, which comes along."""

from __future__ import annotations

from pathlib import Path

import click

from fumehood_snapshots.almanac.benchmark import NAME, build_almanac
from fumehood_snapshots.cli.build import say_built


@click.command()
@click.argument("out", type=click.Path(path_type=Path), default=NAME)
def almanac(out: Path) -> None:
    """Build the snapshot OUT, ./almanac unless told: thirty documents about an island that does not exist."""
    say_built(out, build_almanac(out))
