"""``fumehood score``."""

from __future__ import annotations

from pathlib import Path

import click

from fumehood.cli.run_summary import finish
from fumehood.orchestrator.config import read_yaml, run_config
from fumehood.orchestrator.judging import RunJudge, judge_source
from fumehood.orchestrator.rescore import rescore
from fumehood.orchestrator.setup import config_of
from fumehood.records.run_folder import RunFolder

OF_JUDGES = ("judging", "models")
"""Settings of a file that a judge needs."""


@click.command()
@click.argument("run_dir", metavar="DIR", type=click.Path(path_type=Path))
@click.option(
    "--judge", help="Ask this judge now, whatever the run's own said; nothing of it is kept."
)
@click.option(
    "--config",
    type=click.Path(path_type=Path),
    help="YAML file with `models` and `judging` for --judge.",
)
@click.option("--json", "as_json", is_flag=True, help="One JSON object on standard output.")
def score(run_dir: Path, judge: str | None, config: Path | None, as_json: bool) -> int:
    """Judge the run in DIR again, from its traces alone, and print the table.

    Checks on the way that every trace is whole and is the one that was recorded. What no rule decides is
    counted from what the run's judge said then, and nobody is asked, unless --judge names somebody.
    """
    folder = RunFolder.open(run_dir)
    judging = None if judge is None else _asked_now(folder, judge, config)
    return finish(folder, rescore(folder, judging), as_json=as_json)


def _asked_now(folder: RunFolder, judge: str, path: Path | None) -> RunJudge:
    told = {} if path is None else read_yaml(path)
    settings = {name: told[name] for name in OF_JUDGES if name in told}
    config = run_config({**config_of(folder).model_dump(), **settings, "judge": judge})
    return RunJudge(judge_source(config, live=True), folder.path, keeps=False)
