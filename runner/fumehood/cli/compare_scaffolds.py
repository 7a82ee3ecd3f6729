"""``fumehood compare-scaffolds``."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fumehood.cli.compare import refuse_incomparable
from fumehood.cli.extra import report_extra
from fumehood.cli.run_or_resume import carried_out
from fumehood.core.errors import InputError
from fumehood.orchestrator.config import read_yaml, run_config
from fumehood.orchestrator.rescore import rescore
from fumehood.records.run_folder import RunFolder
from fumehood_agent.scaffolds.table import SCAFFOLDS

if TYPE_CHECKING:
    from fumehood.report.compare.by_scaffold import ScaffoldEffects

FIXED = "react"
"""The scaffold of the second paper, which all its results rest on."""


@click.command("compare-scaffolds")
@click.argument("what", metavar="SUITE|DIR...", nargs=-1, required=True)
@click.option(
    "--scaffold",
    "-s",
    "scaffolds",
    multiple=True,
    type=click.Choice(sorted(SCAFFOLDS)),
    help="Repeatable.  [default: all]",
)
@click.option(
    "--against",
    type=click.Choice(sorted(SCAFFOLDS)),
    default=FIXED,
    show_default=True,
    help="What with.",
)
@click.option("--model", help="The model that all of them ask.")
@click.option(
    "--config",
    type=click.Path(path_type=Path),
    help="YAML with `models` and the rest, as in `run`.",
)
@click.option("--trials", "-n", type=int, help="Attempts per scaffold and task.")
@click.option("--seed", type=int, help="The same for every scaffold.")
@click.option("--engine", help="As in `run`.")
@click.option("--out", type=click.Path(path_type=Path), help="Run folder.  [default: runs/TIME]")
@click.option(
    "--report", type=click.Path(path_type=Path), help="Also write a page with pictures, there."
)
@click.option("--json", "as_json", is_flag=True, help="One JSON object on standard output.")
def compare_scaffolds(
    what: tuple[str, ...],
    scaffolds: tuple[str, ...],
    against: str,
    config: Path | None,
    out: Path | None,
    report: Path | None,
    as_json: bool,
    **given: Any,
) -> None:
    """Say what the scaffold around a model does to its result: the same tasks, model, trials and seeds.

    With a SUITE, runs it with every scaffold into OUT, an ordinary run folder, or goes on with the run that
    is there. With run folders, DIR..., looks at the scaffolds that they hold and runs nothing. Each scaffold
    is compared with --against: the difference in success with its interval, what flipped, and what it costs
    more in calls, tokens and money, task by task.

    \b
      fumehood compare-scaffolds sample --model some-model --config models.yaml
      fumehood compare-scaffolds runs/20261121-053345 runs/later --json
    """
    with report_extra():
        from fumehood.report.compare.by_scaffold import effects_json, scaffold_effects
        from fumehood.report.runs import join_run
    wanted = list(dict.fromkeys((against, *(scaffolds or SCAFFOLDS))))
    if all((Path(one) / "run.json").is_file() for one in what):
        folders = [RunFolder.open(Path(one)) for one in what]
    else:
        settings = {name: value for name, value in given.items() if value is not None}
        folders = [_played(what, wanted, config, out, settings, quiet=as_json)]
    runs = [join_run(folder, rescore(folder)) for folder in folders]
    effects = scaffold_effects(runs, wanted, against)
    refuse_incomparable([one.versus for one in effects.each if one.versus])
    page = _write_page(effects, report) if report else None
    if as_json:
        told = {"page": str(page)} if page else {}
        click.echo(json.dumps({**effects_json(effects), **told}, indent=2))
        return
    _print(effects)
    if page:
        click.echo(f"\n{page}")


def _played(
    what: tuple[str, ...],
    wanted: list[str],
    file: Path | None,
    out: Path | None,
    given: dict[str, Any],
    *,
    quiet: bool,
) -> RunFolder:
    if len(what) > 1:
        raise InputError(
            f"name one suite, or run folders; without a run.json are: {', '.join(_no_runs(what))}"
        )
    settings: dict[str, Any] = read_yaml(file) if file else {}
    config = run_config({**settings, **given, "suite": what[0], "agents": wanted})
    return carried_out(config, out or Path("runs") / time.strftime("%Y%m%d-%H%M%S"), quiet=quiet)


def _no_runs(what: tuple[str, ...]) -> list[str]:
    return [one for one in what if not (Path(one) / "run.json").is_file()]


def _print(effects: ScaffoldEffects) -> None:
    from fumehood.cli.reading import print_tables
    from fumehood.report.compare.by_scaffold import cost_change_table, cost_table
    from fumehood.report.sections import comparisons

    versus = [one.versus for one in effects.each if one.versus]
    print_tables(cost_table(effects), comparisons.versus_table(versus), cost_change_table(effects))


def _write_page(effects: ScaffoldEffects, out: Path) -> Path:
    from fumehood.report.findings import find
    from fumehood.report.write import write_report

    subjects = [one.subject for one in effects.each]
    runs = list({id(subject.run): subject.run for subject in subjects}.values())
    return write_report(find(runs, subjects, subjects[0]), out)[0]
