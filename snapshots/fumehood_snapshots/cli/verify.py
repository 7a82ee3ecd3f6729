"""``fumehood snapshot verify``: compares every byte with the manifest."""

from __future__ import annotations

from pathlib import Path

import click

from fumehood_snapshots.cli.showing import json_option, plain, print_json
from fumehood_snapshots.snapshot import open_snapshot


@click.command()
@click.argument("path", type=click.Path(path_type=Path))
@json_option
def verify(path: Path, as_json: bool) -> None:
    """Check every file of the snapshot PATH against its manifest."""
    snapshot = open_snapshot(path, verify=True)
    size = sum(entry.bytes for entry in snapshot.manifest.files.values())
    if as_json:
        files = len(snapshot.manifest.files)
        print_json(
            {
                "path": str(path),
                "digest": f"sha256:{snapshot.digest}",
                "files": files,
                "bytes": size,
            }
        )
        return
    click.echo(plain(f"{path}: {len(snapshot.manifest.files)} files, {size} bytes, all unchanged"))
    click.echo(plain(f"digest sha256:{snapshot.digest}"))
