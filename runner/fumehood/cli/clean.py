"""``fumehood clean``."""

from __future__ import annotations

import json

import click

from fumehood.engines.orphans import Leftover, Machine
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
        found = list(machine.leftovers(images=images))
        kept = [] if dry_run else machine.remove(found)
    if as_json:
        report = {
            "dry_run": dry_run,
            "docker_unasked": machine.unasked,
            "leftovers": [_to_json(one, removed=not dry_run and one not in kept) for one in found],
        }
        click.echo(json.dumps(report, indent=2))
        return
    for one in found:
        click.echo(safe(f"{one.kind.value} {one.name}{' (in use, kept)' if one in kept else ''}"))
    if machine.unasked is not None:
        click.echo(safe(f"fumehood: no container was looked for: {machine.unasked}"), err=True)
    click.echo(f"{len(found) - len(kept)} {'to remove' if dry_run else 'removed'}")


def _to_json(one: Leftover, *, removed: bool) -> dict[str, object]:
    return {"kind": one.kind.value, "name": one.name, "run": one.run, "removed": removed}
