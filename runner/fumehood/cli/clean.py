"""``fumehood clean``."""

from __future__ import annotations

import json

import click

from fumehood.engines.engine import Orphan
from fumehood.engines.orphans import Machine
from fumehood.engines.ownership import owner_is_alive
from fumehood.report.safe_text import safe


@click.command()
@click.option("--dry-run", is_flag=True, help="Only list them.")
@click.option(
    "--images", is_flag=True, help="Also images that were built from what has changed since."
)
@click.option("--json", "as_json", is_flag=True, help="One JSON object instead of lines.")
def clean(dry_run: bool, images: bool, as_json: bool) -> None:
    """List and remove what commands left behind that were killed: containers, processes, folders.

    What belongs to a command that still runs, or to one on another machine, is left alone. `fumehood run`
    does the same when it starts, for the engine it uses.
    """
    with Machine(owner_is_alive) as machine:
        orphans = list(machine.orphans(images=images))
        kept = [] if dry_run else machine.remove(orphans)
    if as_json:
        report = {
            "dry_run": dry_run,
            "unreachable": machine.unreachable,
            "orphans": [
                _to_json(orphan, removed=not dry_run and orphan not in kept) for orphan in orphans
            ],
        }
        click.echo(json.dumps(report, indent=2))
        return
    for orphan in orphans:
        in_use = " (in use, kept)" if orphan in kept else ""
        click.echo(safe(f"{orphan.kind.value} {orphan.name}{in_use}"))
    for engine, reason in machine.unreachable.items():
        click.echo(safe(f"fumehood: engine {engine} was not searched: {reason}"), err=True)
    click.echo(f"{len(orphans) - len(kept)} {'to remove' if dry_run else 'removed'}")


def _to_json(orphan: Orphan, *, removed: bool) -> dict[str, object]:
    return {
        "kind": orphan.kind.value,
        "name": orphan.name,
        "run": orphan.run,
        "removed": removed,
    }
