"""``fumehood report``."""

from __future__ import annotations

from pathlib import Path

import click

from fumehood.cli.findings import findings_of
from fumehood.cli.output import PATH, print_json, report_extra, say
from fumehood.cli.reading import (
    folders_of,
    read_run,
    unique_labels,
    unverified_option,
    verification_of,
)
from fumehood.core.errors import InputError
from fumehood.orchestrator.rescore import rescore
from fumehood.records.run_reader import is_experiment


@click.command()
@click.argument("run_dirs", metavar="DIR...", nargs=-1, required=True, type=PATH)
@click.option("--out", type=PATH, help="Output folder.  [default: DIR/report]")
@click.option("--baseline", metavar="AGENT", help="Baseline of comparisons.  [default: first]")
@unverified_option
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def report(
    run_dirs: tuple[Path, ...],
    out: Path | None,
    baseline: str | None,
    unverified: bool,
    as_json: bool,
) -> None:
    """Write a report of one or more runs, or of an experiment.

    The report is an HTML page that opens offline, Markdown, pictures, CSV and Parquet. Episodes are
    scored again from their traces. Agents are compared on the tasks that they share.

    \b
    Examples:
      fumehood report runs/20260101-120000
      fumehood report runs/one runs/two --baseline policy_aware --out report
    """
    with report_extra():
        from fumehood.report.runs import join_run, subjects_of
        from fumehood.report.sections.registry import SECTIONS
        from fumehood.report.write import write_report
    paths = [path for folder in run_dirs for path in folders_of(folder)]
    runs = []
    for label, path in zip(unique_labels(paths), paths, strict=True):
        folder = read_run(path, unverified=unverified)
        runs.append(join_run(folder, rescore(folder), label))
    subjects = subjects_of(runs)
    candidates = [subject for subject in subjects if baseline in (None, subject.label)]
    if not candidates:
        known = ", ".join(subject.label for subject in subjects)
        raise InputError(
            f"no agent is called {baseline!r}; the runs have: {known}"
            if subjects
            else "no run has an agent"
        )
    # In an experiment, effects replace the comparisons with one baseline.
    against = None if baseline is None and any(map(is_experiment, run_dirs)) else candidates[0]
    findings = findings_of(runs, subjects, against)
    for section in SECTIONS.extensions():
        if section.problem:
            say(f"fumehood: {section.problem}", err=True)
    written = write_report(findings, out or run_dirs[0] / "report")
    if as_json:
        files = [str(path) for path in written]
        checked = verification_of(run.folder for run in runs)
        print_json({"verification": checked, "page": files[0], "files": files})
    else:
        say(str(written[0]))
