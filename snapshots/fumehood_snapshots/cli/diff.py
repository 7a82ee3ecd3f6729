"""``fumehood snapshot diff``: compares two snapshots."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from fumehood_snapshots.cli.showing import json_option, plain, print_json
from fumehood_snapshots.comparison import Difference, compare
from fumehood_snapshots.snapshot import open_snapshot

SHOWN_MAX = 20


@click.command()
@click.argument("left", type=click.Path(path_type=Path))
@click.argument("right", type=click.Path(path_type=Path))
@click.option("--all", "show_all", is_flag=True, help="List every document.")
@json_option
def diff(left: Path, right: Path, show_all: bool, as_json: bool) -> None:
    """Compare two snapshots; exit status 1 if they differ."""
    left_snapshot, right_snapshot = open_snapshot(left), open_snapshot(right)
    difference = compare(
        (left_snapshot.manifest, left_snapshot.documents),
        (right_snapshot.manifest, right_snapshot.documents),
    )
    if as_json:
        print_json(_to_json(difference))
        raise click.exceptions.Exit(1 if difference else 0)
    for name, (before, after) in difference.settings.items():
        click.echo(plain(f"{name}: {before!r} → {after!r}"))
    changed = [f"{document.id}: {', '.join(document.parts)}" for document in difference.changed]
    for title, lines in (
        ("only left", list(difference.only_left)),
        ("only right", list(difference.only_right)),
        ("changed", changed),
    ):
        shown = lines if show_all else lines[:SHOWN_MAX]
        for line in shown:
            click.echo(f"{title}  {plain(line)}")
        if len(lines) > len(shown):
            click.echo(f"{title}  … and {len(lines) - len(shown)} more")
    if difference:
        raise click.exceptions.Exit(1)
    click.echo(
        "equal"
        if left_snapshot.digest == right_snapshot.digest
        else "equal in documents and settings"
    )


def _to_json(difference: Difference) -> dict[str, Any]:
    return {
        "settings": {name: list(values) for name, values in difference.settings.items()},
        "only_left": list(difference.only_left),
        "only_right": list(difference.only_right),
        "changed": [
            {"id": document.id, "parts": list(document.parts)} for document in difference.changed
        ],
    }
