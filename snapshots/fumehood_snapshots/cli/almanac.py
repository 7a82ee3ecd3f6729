"""``fumehood snapshot almanac``: builds the bundled small library."""

from __future__ import annotations

from pathlib import Path

import click

from fumehood_snapshots.almanac.benchmark import NAME, build_almanac
from fumehood_snapshots.cli.build import say_built


@click.command()
@click.argument("out", type=click.Path(path_type=Path), default=NAME)
def almanac(out: Path) -> None:
    """Build the snapshot OUT (default ./almanac): thirty documents about an invented island."""
    say_built(out, build_almanac(out))
