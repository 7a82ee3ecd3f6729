"""``fumehood report``."""

from __future__ import annotations

import json
from pathlib import Path

import click

from fumehood.cli.extra import report_extra
from fumehood.core.errors import InputError
from fumehood.orchestrator.rescore import rescore
from fumehood.records.run_folder import RunFolder


@click.command()
@click.argument(
    "run_dirs", metavar="DIR...", nargs=-1, required=True, type=click.Path(path_type=Path)
)
@click.option(
    "--out", type=click.Path(path_type=Path), help="Folder to write to.  [default: DIR/report]"
)
@click.option(
    "--baseline",
    metavar="AGENT",
    help="The agent that others are compared with.  [default: the first]",
)
@click.option("--json", "as_json", is_flag=True, help="One JSON object on standard output.")
def report(
    run_dirs: tuple[Path, ...], out: Path | None, baseline: str | None, as_json: bool
) -> None:
    """Write a report of the runs in DIR…: a page that opens offline, Markdown, pictures, CSV and Parquet.

    Every episode is judged again from its trace on the way. Agents of several runs are compared on the
    tasks that they share.
    """
    with report_extra():
        from fumehood.report.findings import find
        from fumehood.report.runs import join_run, subjects_of
        from fumehood.report.write import write_report
    runs = []
    for label, path in zip(_labels(run_dirs), run_dirs, strict=True):
        folder = RunFolder.open(path)
        runs.append(join_run(folder, rescore(folder), label))
    subjects = subjects_of(runs)
    chosen = [subject for subject in subjects if baseline in (None, subject.label)]
    if not chosen:
        known = ", ".join(subject.label for subject in subjects)
        raise InputError(
            f"no agent is called {baseline!r}; there are: {known}"
            if subjects
            else "no run has an agent"
        )
    written = write_report(find(runs, subjects, chosen[0]), out or run_dirs[0] / "report")
    if as_json:
        click.echo(
            json.dumps(
                {"page": str(written[0]), "files": [str(path) for path in written]}, indent=2
            )
        )
    else:
        click.echo(str(written[0]))


def _labels(run_dirs: tuple[Path, ...]) -> list[str]:
    """Return names of the runs: their folders', with a number where two are alike."""
    names = [path.resolve().name for path in run_dirs]
    return [name if names.count(name) == 1 else f"{name}#{at}" for at, name in enumerate(names, 1)]
