"""``fumehood snapshot search``: searches a snapshot like an agent."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import click

from fumehood_snapshots.cli.showing import plain
from fumehood_snapshots.errors import SnapshotInputError
from fumehood_snapshots.snapshot import open_snapshot


@click.command()
@click.argument("path", type=click.Path(path_type=Path))
@click.argument("query")
@click.option(
    "-k", type=click.IntRange(1, 1000), help="Number of results; default: from the manifest."
)
@click.option(
    "--filter",
    "filters",
    multiple=True,
    metavar="FIELD=VALUE",
    help="Only documents whose FIELD has this VALUE. Repeatable.",
)
@click.option("--snippet-chars", type=click.IntRange(1, 1_000_000), default=200, show_default=True)
@click.option(
    "--json", "as_json", is_flag=True, help="Print one JSON object per result, one per line."
)
def search(
    path: Path, query: str, k: int | None, filters: Sequence[str], snippet_chars: int, as_json: bool
) -> None:
    """Search the snapshot PATH for QUERY."""
    hits = open_snapshot(path).search(query, k, _wanted(filters), snippet_chars)
    if not hits:
        click.echo("no hits", err=True)
    for rank, hit in enumerate(hits, start=1):
        if as_json:
            click.echo(json.dumps(asdict(hit)))
            continue
        click.echo(f"{rank:>3}  {hit.score:8.4f}  {plain(hit.id)}  {plain(hit.title)}")
        click.echo(f"               {plain(hit.snippet)}")


def _wanted(filters: Sequence[str]) -> dict[str, list[str]]:
    wanted: dict[str, list[str]] = {}
    for condition in filters:
        field, equals, value = condition.partition("=")
        if not equals:
            raise SnapshotInputError("--filter must have the form host=docs.example.org")
        wanted.setdefault(field, []).append(value)
    return wanted
