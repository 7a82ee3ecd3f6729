"""``fumehood score``."""

from __future__ import annotations

from pathlib import Path

import click

from fumehood.cli.output import PATH
from fumehood.cli.reading import read_run, unverified_option
from fumehood.cli.run_summary import finish
from fumehood.orchestrator.config import read_yaml, run_config
from fumehood.orchestrator.judging import RunJudge, judge_source
from fumehood.orchestrator.rescore import rescore
from fumehood.orchestrator.setup import config_of
from fumehood.records.run_reader import RunReader

JUDGE_SETTINGS = ("judging", "models")
"""Settings of a judge in a configuration file."""


@click.command()
@click.argument("run_dir", metavar="DIR", type=PATH)
@click.option("--judge", help="Ask this judge now; its answers are not stored.")
@click.option("--config", type=PATH, help="YAML file with `models` and `judging` for --judge.")
@unverified_option
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def score(
    run_dir: Path, judge: str | None, config: Path | None, unverified: bool, as_json: bool
) -> int:
    """Score a run again from its traces.

    Verifies the seals first. Criteria that need a judge use the stored answers of the run's judge,
    unless --judge names another one.

    \b
    Examples:
      fumehood score runs/20260101-120000
      fumehood score runs/20260101-120000 --judge some-model --config models.yaml
    """
    folder = read_run(run_dir, unverified=unverified)
    judging = None if judge is None else other_judge(folder, judge, config)
    return finish(folder, rescore(folder, judging), as_json=as_json)


def other_judge(folder: RunReader, judge: str, path: Path | None) -> RunJudge:
    """Return a judge that is asked now and whose answers are not stored.

    Args:
        folder: the run.
        judge: name of the judge.
        path: YAML file with the settings of the judge; None for those of the run.

    Raises:
        InputError: the file or the judge cannot be used.
    """
    file = {} if path is None else read_yaml(path)
    settings = {name: file[name] for name in JUDGE_SETTINGS if name in file}
    # The author of a run folder must not choose which host gets which key of this user.
    of_run = {**config_of(folder).model_dump(), "models": None}
    config = run_config({**of_run, **settings, "judge": judge})
    return RunJudge(judge_source(config, live=True), folder.path, keeps=False)
