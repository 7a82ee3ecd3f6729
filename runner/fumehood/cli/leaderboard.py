"""``fumehood leaderboard``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from fumehood.cli.baselines import noop_of
from fumehood.cli.output import PATH, print_json, print_tables, report_extra
from fumehood.cli.reading import mark_of, read_runs, unverified_option

if TYPE_CHECKING:
    from fumehood.report.runs import Run


@click.command()
@click.argument("run_dirs", metavar="DIR...", nargs=-1, required=True, type=PATH)
@unverified_option
@click.option("--json", "as_json", is_flag=True, help="Print a JSON list, one object per agent.")
def leaderboard(run_dirs: tuple[Path, ...], unverified: bool, as_json: bool) -> None:
    """Rank the agents of runs within each suite.

    Shows success with its interval and the score of the no-op baseline. Episodes are scored again
    from their traces; the baseline is computed on the tasks that are stored in the run.

    \b
    Example:
      fumehood leaderboard runs/*
    """
    with report_extra():
        from fumehood.report.leaderboard import entry, leaderboard_table, ranked
        from fumehood.report.runs import subjects_of
    runs = read_runs(run_dirs, unverified=unverified)
    noops = _noop_rates(runs)
    entries = ranked(entry(subject, noops[subject.run.label]) for subject in subjects_of(runs))
    if as_json:
        print_json([line.to_json() for line in entries])
        return
    print_tables(leaderboard_table(entries), mark=mark_of(run.folder for run in runs))


def _noop_rates(runs: Sequence[Run]) -> dict[str, float | None]:
    """Return the success rate of the no-op baseline by run label, computed once per suite."""
    by_suite: dict[object, float | None] = {}
    rates = {}
    for run in runs:
        digest = run.manifest.get("suite_digest", run.label)
        if digest not in by_suite:
            by_suite[digest] = noop_of(run.suite).success_rate
        rates[run.label] = by_suite[digest]
    return rates
