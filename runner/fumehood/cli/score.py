"""``fumehood score``."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from fumehood.cli.output import PATH, print_json, print_tables, say
from fumehood.cli.reading import read_run, unverified_option
from fumehood.cli.run_summary import agent_table, finish
from fumehood.core.errors import InputError
from fumehood.exports.inspect_import import ImportedLog, read_log
from fumehood.orchestrator.config import read_yaml, run_config
from fumehood.orchestrator.rescore import rescore
from fumehood.orchestrator.run_plan import config_of
from fumehood.records.run_reader import RunReader
from fumehood.report import wording

if TYPE_CHECKING:
    from fumehood.orchestrator.judging import RunJudge

JUDGE_SETTINGS = ("judging", "models")
"""Settings of a judge in a configuration file."""


@click.command()
@click.argument("run_dir", metavar="[DIR]", required=False, type=PATH)
@click.option("--from", "log", metavar="LOG", type=PATH, help="Score this log of Inspect instead.")
@click.option("--scorer", help="Score of the log that states success.  [default: its first]")
@click.option("--judge", help="Ask this judge now; its answers are not stored.")
@click.option("--config", type=PATH, help="YAML file with `models` and `judging` for --judge.")
@unverified_option
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def score(
    run_dir: Path | None,
    log: Path | None,
    scorer: str | None,
    judge: str | None,
    config: Path | None,
    unverified: bool,
    as_json: bool,
) -> int:
    """Score a run again, or compute metrics from a log of Inspect.

    Verifies the seals first, and scores the traces. Criteria that need a judge use the stored
    answers of the run's judge, unless --judge names another one. With --from, computes the metrics
    that a log of Inspect defines, names the others, and marks everything as unsigned.

    \b
    Examples:
      fumehood score runs/20260101-120000
      fumehood score runs/20260101-120000 --judge some-model --config models.yaml
      fumehood score --from logs/2026-01-01_task.eval
    """
    if log is not None:
        if run_dir is not None or judge is not None or config is not None or unverified:
            raise InputError("--from takes no DIR, --judge, --config or --unverified")
        _print_log(read_log(log, scorer), as_json=as_json)
        return 0
    if scorer is not None:
        raise InputError("--scorer has no effect without --from LOG: remove it, or add --from LOG")
    if run_dir is None:
        raise InputError("name a run folder, or a log with --from LOG")
    folder = read_run(run_dir, unverified=unverified)
    judging = None if judge is None else other_judge(folder, judge, config)
    return finish(folder, rescore(folder, judging), as_json=as_json)


def _print_log(log: ImportedLog, *, as_json: bool) -> None:
    if as_json:
        print_json(log.to_json())
        return
    say(", ".join(f"{name} {value or 'not stated'}" for name, value in log.facts.items()))
    say(wording.sizes([result.row.name for result in log.results]))
    table = agent_table([log.summary])
    hidden = () if log.states_faults else ("recovered", "faulted")
    kept = [at for at, name in enumerate(table.header) if name not in hidden]
    rows = [tuple(row[at] for at in kept) for row in table.rows]
    header = tuple(table.header[at] for at in kept)
    print_tables(replace(table, header=header, rows=rows), mark=log.mark)
    if log.costs.calls:
        say(f"models: {log.agent} {log.costs}")
    for note in log.notes:
        say(f"note: {note}")
    for names, reason in log.not_computed.items():
        say(f"not computed: {names}: {reason}")


def other_judge(folder: RunReader, judge: str, path: Path | None) -> RunJudge:
    """Return a judge that is asked now and whose answers are not stored.

    Args:
        folder: the run.
        judge: name of the judge.
        path: YAML file with the settings of the judge; None for those of the run.

    Raises:
        InputError: the file or the judge cannot be used.
    """
    from fumehood.orchestrator.judging import RunJudge, judge_source

    file = {} if path is None else read_yaml(path)
    settings = {name: file[name] for name in JUDGE_SETTINGS if name in file}
    # The author of a run folder must not choose which host gets which key of this user.
    of_run = {**config_of(folder).model_dump(), "models": None}
    config = run_config({**of_run, **settings, "judge": judge})
    return RunJudge(judge_source(config, live=True), folder.path, keeps=False)
