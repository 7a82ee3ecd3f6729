"""``fumehood reproduce``."""

from __future__ import annotations

import os
import time
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fumehood.benchmarks.shared.generator import GENERATORS
from fumehood.benchmarks.shared.manifest import Manifest, read_manifest
from fumehood.benchmarks.toolmisuse.tasks import SHA256_BY_PUBLISHED_PATH, task_files
from fumehood.cli.engine_name import EngineName
from fumehood.cli.output import PATH, print_json, print_tables, report_extra, say
from fumehood.cli.progress import run_with_progress
from fumehood.orchestrator.config import RunConfig, machine_settings, run_config
from fumehood.orchestrator.experiment import Cell, Plan, run_plan
from fumehood.orchestrator.rescore import rescore
from fumehood.records.run_reader import RunReader
from fumehood.scorers.registry import score_evidence

if TYPE_CHECKING:
    from fumehood.report.findings import Findings
    from fumehood.report.paper.reproduction import Data


@click.command()
@click.argument("what", type=click.Choice(["toolmisuse"]))
@click.option("--data", type=PATH, help="Published task files.  [default: generate]")
@click.option(
    "--profile",
    default="paper",
    show_default=True,
    help="Generated suite: `small` has 50 tasks, `paper` 1,000.",
)
@click.option("--out", type=PATH, help="Output folder.  [default: runs/reproduce-TIME]")
@click.option(
    "--engine", type=EngineName(), help="As in `run`; the agents are built in.  [default: inline]"
)
@click.option("--concurrency", "-j", type=int, help="Concurrent episodes.  [default: 2]")
@click.option("--service-workers", type=int, help="Service processes.  [default: 1]")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def reproduce(
    what: str,
    data: Path | None,
    profile: str,
    out: Path | None,
    as_json: bool,
    **flags: Any,
) -> None:
    """Reproduce the tables and figures of a paper.

    toolmisuse: the three baseline agents of arXiv 2604.01508 and policy_aware, on the test split.
    Prints the published and the reproduced number and their difference for every cell of both
    tables and both figures. The published tasks are not included. Download them and pass --data;
    otherwise tasks calibrated to the tables are generated, and the output says so. The same --out
    continues an interrupted reproduction. Variables such as FUMEHOOD_ENGINE choose how episodes
    run.

    \b
    Example:
      fumehood reproduce toolmisuse --data path/to/ToolMisuseBench --out runs/paper
    """
    with report_extra():
        from fumehood.report.paper.published import AGENTS, SPLIT
        from fumehood.report.paper.reproduction import write_reproduction
    machine = machine_settings(os.environ)
    folder_path = out or Path("runs") / time.strftime("reproduce-%Y%m%d-%H%M%S")
    tasks = data or generated_tasks(folder_path / "tasks", profile)
    settings = {
        "suite": f"{what}:{tasks}:{SPLIT}",
        "agents": (*AGENTS, "policy_aware"),
        "engine": "inline",
        **machine,
        **{name: value for name, value in flags.items() if value is not None},
    }
    plan = Plan((Cell("test", run_config(settings)),))

    def run_cell(config: RunConfig, path: Path, _: str) -> RunReader:
        return run_with_progress(config, path, quiet=as_json)

    (folder,) = run_plan(plan, folder_path / "experiment", run_cell)
    findings = _find(folder)
    data_source = data_of(tasks, SPLIT, len(folder.suite().cases))
    written = write_reproduction(findings, data_source, str(folder.path), folder_path)
    _print(findings, data_source, written, as_json=as_json)


def _find(folder: RunReader) -> Findings:
    from fumehood.report.findings import compute_findings
    from fumehood.report.runs import join_run, subjects_of

    run = join_run(folder, rescore(folder))
    subjects = subjects_of([run])
    return compute_findings([run], subjects, subjects[0], has_page=False)


def _print(findings: Findings, data: Data, written: list[Path], *, as_json: bool) -> None:
    from fumehood.report.paper.reproduction import as_data, cells, reading_tables, statements

    if as_json:
        files = [str(path) for path in written]
        tables = [as_data(name, lines) for name, (_, lines) in cells(findings).items()]
        result = {
            "page": files[0],
            "files": files,
            "before_comparing": list(statements(data)),
            "cells": {table.name: table.records() for table in tables},
        }
        print_json(result)
        return
    say("Before comparing:")
    for statement in statements(data):
        say(f"* {statement}")
    say("")
    print_tables(*reading_tables(findings))
    say("")
    say(str(written[0]))


SEED = 42
"""Default seed of the published generator."""


def generated_tasks(root: Path, profile: str) -> Path:
    """Generate tasks of the test split, if they are missing, and return their folder.

    Raises:
        InputError: the profile does not exist, or the folder holds something else.
    """
    if not (root.is_dir() and read_manifest(root)):
        only_test = {"train": 0, "dev": 0}
        GENERATORS.load("toolmisuse")(
            profile, SEED, root, splits=only_test, score_episode=score_evidence
        )
    return root


def data_of(root: Path, split: str, tasks: int) -> Data:
    """Describe the files that a split was read from.

    Args:
        root: folder in the published layout, or one file.
        split: name of the split.
        tasks: number of tasks in it.
    """
    from fumehood.report.paper.reproduction import Data

    files = (root,) if root.is_file() else task_files(root, split)
    digests = {path: sha256(path.read_bytes()).hexdigest() for path in files}
    manifest = read_manifest(root) if root.is_dir() else None
    return Data(
        path=str(root),
        files=tuple((path.name, digest) for path, digest in digests.items()),
        tasks=tasks,
        generated=None if manifest is None else _made_from(manifest),
        is_calibrated=manifest is not None and manifest.profile == "paper",
        published_as=next(
            (
                name
                for name, known in SHA256_BY_PUBLISHED_PATH.items()
                if known in digests.values() and split in name
            ),
            None,
        ),
    )


def _made_from(manifest: Manifest) -> str:
    return f"profile {manifest.profile}, release {manifest.release}, seed {manifest.seed}"
