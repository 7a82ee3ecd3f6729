"""``fumehood clean``."""

from __future__ import annotations

import click

from fumehood.cli.output import print_json, say
from fumehood.engines.engine import Orphan
from fumehood.engines.orphans import Machine
from fumehood.engines.ownership import owner_is_alive


@click.command()
@click.option("--dry-run", is_flag=True, help="Only list, remove nothing.")
@click.option("--images", is_flag=True, help="Also remove outdated images.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def clean(dry_run: bool, images: bool, as_json: bool) -> None:
    """Remove containers, processes and folders of killed commands.

    Resources of running commands, and of commands on other machines, are kept. `fumehood run` does
    the same at its start for the engine that it uses.

    \b
    Example:
      fumehood clean --dry-run
    """
    report_orphans(dry_run=dry_run, images=images, as_json=as_json)


def report_orphans(*, dry_run: bool, images: bool, as_json: bool) -> int:
    """Print the orphans, and return how many remain.

    Args:
        dry_run: remove nothing.
        images: include outdated images.
        as_json: print one JSON object.
    """
    with Machine(owner_is_alive) as machine:
        orphans = list(machine.orphans(images=images))
        kept = orphans if dry_run else machine.remove(orphans)
    if as_json:
        report = {
            "dry_run": dry_run,
            "unreachable": machine.unreachable,
            "orphans": [_to_json(orphan, removed=orphan not in kept) for orphan in orphans],
        }
        print_json(report)
        return len(kept)
    for orphan in orphans:
        suffix = " (in use, kept)" if orphan in kept and not dry_run else ""
        say(f"{orphan.kind.value} {orphan.name}{suffix}")
    for engine, reason in machine.unreachable.items():
        say(f"fumehood: engine {engine} was not searched: {reason}", err=True)
    count = f"{len(orphans)} to remove" if dry_run else f"{len(orphans) - len(kept)} removed"
    say(count)
    return len(kept)


def _to_json(orphan: Orphan, *, removed: bool) -> dict[str, object]:
    return {"kind": orphan.kind.value, "name": orphan.name, "run": orphan.run, "removed": removed}
