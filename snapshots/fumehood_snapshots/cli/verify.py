"""``fumehood snapshot verify``: compares every byte with the manifest."""

from __future__ import annotations

from pathlib import Path

import click

from fumehood_snapshots.cli.showing import plain
from fumehood_snapshots.snapshot import open_snapshot


@click.command()
@click.argument("path", type=click.Path(path_type=Path))
def verify(path: Path) -> None:
    """Check every file of the snapshot PATH against its manifest."""
    snapshot = open_snapshot(path, verify=True)
    size = sum(entry.bytes for entry in snapshot.manifest.files.values())
    click.echo(plain(f"{path}: {len(snapshot.manifest.files)} files, {size} bytes, all unchanged"))
    click.echo(plain(f"digest sha256:{snapshot.digest}"))
