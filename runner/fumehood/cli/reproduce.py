"""``fumehood reproduce``."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from fumehood.cli.extra import report_extra
from fumehood.cli.provenance import data_of, generated_tasks
from fumehood.cli.run_or_resume import carried_out
from fumehood.orchestrator.config import run_config
from fumehood.orchestrator.rescore import rescore
from fumehood.records.run_folder import RunFolder

if TYPE_CHECKING:
    from fumehood.report.findings import Findings
    from fumehood.report.paper.reproduction import Data


@click.command()
@click.argument("what", type=click.Choice(["toolmisuse"]))
@click.option(
    "--data",
    type=click.Path(path_type=Path),
    help="Published or generated files; without it, generated.",
)
@click.option("--profile", default="large", show_default=True, help="How many tasks to generate.")
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    help="Folder to write to.  [default: runs/reproduce-TIME]",
)
@click.option(
    "--engine",
    default="process",
    show_default=True,
    help="The agents are built in, so no box is needed.",
)
@click.option(
    "--concurrency", "-j", type=int, default=2, show_default=True, help="Episodes running at once."
)
@click.option(
    "--service-workers", type=int, default=1, show_default=True, help="Sandbox service processes."
)
@click.option("--json", "as_json", is_flag=True, help="One JSON object on standard output.")
def reproduce(
    what: str,
    data: Path | None,
    profile: str,
    out: Path | None,
    engine: str,
    concurrency: int,
    service_workers: int,
    as_json: bool,
) -> None:
    """Run a paper's protocol and write its tables and figures, ours beside the published numbers.

    toolmisuse: three baselines on the test split, as in arXiv 2604.01508. The published tasks do not come
    along: download them and pass --data, else tasks of the same kind are generated and the result says so.
    With --out of an earlier reproduction that was interrupted, it is finished.
    """
    with report_extra():
        from fumehood.report.paper.published import AGENTS, SPLIT
        from fumehood.report.paper.reproduction import write_reproduction
    folder_path = out or Path("runs") / time.strftime("reproduce-%Y%m%d-%H%M%S")
    tasks = data or generated_tasks(folder_path / "tasks", profile)
    settings = {
        "suite": f"{what}:{tasks}:{SPLIT}",
        "agents": AGENTS,
        "engine": engine,
        "concurrency": concurrency,
        "service_workers": service_workers,
    }
    folder = carried_out(run_config(settings), folder_path / "run", quiet=as_json)
    findings = _find(folder)
    about = data_of(tasks, SPLIT, len(folder.suite().cases))
    written = write_reproduction(findings, about, str(folder.path), folder_path)
    _tell(findings, about, written, as_json=as_json)


def _find(folder: RunFolder) -> Findings:
    from fumehood.report.findings import find
    from fumehood.report.runs import join_run, subjects_of

    run = join_run(folder, rescore(folder))
    subjects = subjects_of([run])
    return find([run], subjects, subjects[0])


def _tell(findings: Findings, data: Data, written: list[Path], *, as_json: bool) -> None:
    from fumehood.cli.reading import print_tables
    from fumehood.report.paper.reproduction import reading_tables, statements

    if as_json:
        files = [str(path) for path in written]
        told = {"page": files[0], "files": files, "before_comparing": list(statements(data))}
        click.echo(json.dumps(told, indent=2))
        return
    print_tables(*reading_tables(findings))
    click.echo("\nBefore comparing:")
    for statement in statements(data):
        click.echo(f"* {statement}")
    click.echo(f"\n{written[0]}")
