"""``fumehood compare``."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import click

from fumehood.cli.comparison_args import Sides, pairs_of
from fumehood.cli.extra import report_extra
from fumehood.core.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fumehood.report.findings import Versus

FLIPS_MAX = 40
"""So many flipped tasks are listed on a terminal."""


@click.command()
@click.argument("first", metavar="A")
@click.argument("second", metavar="B")
@click.option("--json", "as_json", is_flag=True, help="One JSON object on standard output.")
def compare(first: str, second: str, as_json: bool) -> None:
    """Compare B with A on the tasks that both attempted: differences with intervals, and what flipped.

    A and B are run folders, or DIR:AGENT where a run has several agents. Without agents, each agent of A is
    compared with its namesake in B. Every episode is judged again from its trace on the way.

    \b
      fumehood compare runs/before runs/after
      fumehood compare runs/now:policy_aware runs/now:schema_repair
    """
    with report_extra():
        from fumehood.report.findings import Versus
        from fumehood.report.sections.comparisons import versus_json
        from fumehood.report.statistics.pairs import compare as compare_results
    sides = Sides()
    found = [
        Versus(one, other, compare_results(one.results, other.results))
        for one, other in pairs_of(sides.agents(first), sides.agents(second))
    ]
    refuse_incomparable(found)
    if as_json:
        click.echo(json.dumps([versus_json(versus) for versus in found], indent=2))
        return
    for versus in found:
        _print(versus)


def refuse_incomparable(found: Sequence[Versus]) -> None:
    """Refuse a comparison in which no task is the same on both sides.

    Raises:
        InputError: says why, and of how many episodes.
    """
    pairings = [versus.comparison.pairing for versus in found]
    if any(pairing.pairs or pairing.undecided for pairing in pairings):
        return
    differing = sum(pairing.differing for pairing in pairings)
    unmatched = sum(pairing.unmatched for pairing in pairings)
    reasons = [
        f"{count} {reason}"
        for count, reason in (
            (
                differing,
                "have a task of the same name that is not the same (faults, budget or state differ)",
            ),
            (unmatched, "have a task or trial that only one side has"),
        )
        if count
    ]
    raise InputError(
        f"nothing to compare; of the episodes {', and '.join(reasons) or 'none is there'}"
    )


def _print(versus: Versus) -> None:
    from fumehood.cli.reading import print_tables
    from fumehood.report.sections import comparisons

    print_tables(
        comparisons.versus_table([versus]),
        comparisons.difference_table(versus),
        comparisons.flip_table(versus),
        comparisons.flipped_table(versus, FLIPS_MAX),
    )
