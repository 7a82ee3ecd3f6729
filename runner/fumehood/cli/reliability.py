"""``fumehood reliability``."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

import click

from fumehood.cli.output import PATH, print_json, print_tables, report_extra
from fumehood.cli.reading import mark_of, read_runs, runs_of, unverified_option, verification_of
from fumehood.core.errors import InputError

if TYPE_CHECKING:
    from fumehood.report.runs import Subject


@click.command()
@click.argument("run_dirs", metavar="DIR...", nargs=-1, required=True, type=PATH)
@click.option("--faults", multiple=True, type=PATH, help="Runs of the same tasks with faults.")
@click.option("--environment", multiple=True, type=PATH, help="Runs with changed environments.")
@click.option("--prompts", multiple=True, type=PATH, help="Runs with reworded instructions.")
@unverified_option
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def reliability(
    run_dirs: tuple[Path, ...],
    faults: tuple[Path, ...],
    environment: tuple[Path, ...],
    prompts: tuple[Path, ...],
    unverified: bool,
    as_json: bool,
) -> None:
    """Show how reliable agents are, in twelve metrics.

    The metrics show consistency over the trials of a task, robustness to faults, changed
    environments and reworded instructions, predictability from the confidence that agents state,
    and safety. Each DIR is a run without such a change, with several trials.

    \b
    Example:
      fumehood reliability runs/plain --faults runs/with_faults
    """
    with report_extra():
        from fumehood.report.reliability import (
            reliability_json,
            reliability_of,
            reliability_table,
        )
        from fumehood.report.runs import subjects_of
    given = {"plain": run_dirs, "faults": faults, "environment": environment, "prompts": prompts}
    named = chain.from_iterable(given.values())
    runs = {run.folder.path.resolve(): run for run in read_runs(named, unverified=unverified)}
    subjects = {
        part: subjects_of([runs[path.resolve()] for path in runs_of(folders)])
        for part, folders in given.items()
    }
    plain = subjects.pop("plain")
    agents = {}
    for name in dict.fromkeys(subject.agent for subject in plain):
        own = {part: _of(name, members) for part, members in subjects.items()}
        for part, members in own.items():
            if given[part] and not members:
                raise InputError(f"--{part}: no run has the agent {name!r}")
        agents[name] = reliability_of(_of(name, plain), own)
    folders = [run.folder for run in runs.values()]
    if as_json:
        print_json({"verification": verification_of(folders), "agents": reliability_json(agents)})
        return
    print_tables(reliability_table(agents), mark=mark_of(folders))


def _of(agent: str, subjects: Iterable[Subject]) -> list[Subject]:
    return [subject for subject in subjects if subject.agent == agent]
