"""``fumehood leaderboard``."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from fumehood.cli.baselines import noop_of
from fumehood.cli.extra import report_extra
from fumehood.orchestrator.rescore import rescore
from fumehood.records.run_folder import RunFolder

if TYPE_CHECKING:
    from fumehood.report.runs import Run


@click.command()
@click.argument(
    "run_dirs", metavar="RUN...", nargs=-1, required=True, type=click.Path(path_type=Path)
)
@click.option(
    "--json", "as_json", is_flag=True, help="One JSON list on standard output, a line an agent."
)
def leaderboard(run_dirs: tuple[Path, ...], as_json: bool) -> None:
    """Rank the agents of the run folders RUN…, suite by suite, with intervals and the no-op score beside.

    Every episode is judged again from its trace on the way, and the no-op is played on the tasks as the run
    froze them.

    \b
      fumehood leaderboard runs/*
    """
    with report_extra():
        from fumehood.report.leaderboard import leaderboard_table, ranked, standing
        from fumehood.report.runs import join_run, subjects_of
    folders = [RunFolder.open(path) for path in dict.fromkeys(path.resolve() for path in run_dirs)]
    runs = [
        join_run(folder, rescore(folder), name)
        for folder, name in zip(folders, _names(folders), strict=True)
    ]
    noops = _noops(runs)
    lines = ranked(standing(subject, noops[subject.run.label]) for subject in subjects_of(runs))
    if as_json:
        click.echo(json.dumps([line.to_json() for line in lines], indent=2))
        return
    from fumehood.cli.reading import print_tables

    print_tables(leaderboard_table(lines))


def _noops(runs: Sequence[Run]) -> dict[str, float | None]:
    """Return what doing nothing scores, by label of the run; tasks that runs share are played once."""
    by_suite: dict[object, float | None] = {}
    found = {}
    for run in runs:
        digest = run.manifest.get("suite_digest", run.label)
        if digest not in by_suite:
            by_suite[digest] = noop_of(run.suite).success_rate
        found[run.label] = by_suite[digest]
    return found


def _names(folders: Sequence[RunFolder]) -> list[str]:
    """Return names of the runs: their folders', with a number where two are alike."""
    names = [folder.path.name for folder in folders]
    return [name if names.count(name) == 1 else f"{name}#{at}" for at, name in enumerate(names, 1)]
