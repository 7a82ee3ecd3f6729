"""``fumehood compare``."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fumehood.cli.baselines import describe, noop_of, oracle_of
from fumehood.cli.engine_name import EngineName
from fumehood.cli.findings import findings_of
from fumehood.cli.output import PATH, print_json, print_tables, report_extra, say
from fumehood.cli.progress import run_with_progress
from fumehood.cli.reading import mark_of, read_run, unverified_option, verification_of
from fumehood.cli.selection import task_options, with_selection
from fumehood.core.errors import InputError
from fumehood.core.json_values import JsonObject
from fumehood.orchestrator.config import RunConfig, machine_settings, read_yaml, run_config
from fumehood.orchestrator.experiment import Cell, Plan, run_plan
from fumehood.orchestrator.rescore import rescore
from fumehood.records.run_reader import RunReader, is_experiment
from fumehood.report.statistics.infra import attempts_of
from fumehood_agent.scaffolds.table import SCAFFOLDS

if TYPE_CHECKING:
    from fumehood.report.compare.dimension import Compared, CompareOptions, Dimension, Target

DIMENSION_NAMES = ("agent", "scaffold", "budget", "faults", "model", "data-mode")
"""Equal to the names in ``fumehood.report.compare.registry``, which needs the extra ``report``."""


@click.command()
@click.argument("targets", metavar="SUITE|DIR[:AGENT]...", nargs=-1, required=True)
@click.option(
    "--by",
    "dimension",
    type=click.Choice(DIMENSION_NAMES),
    default="agent",
    show_default=True,
    help="What differs between the compared episodes.",
)
@click.option("--agent", "-a", "agents", multiple=True, help="Agent to run. Repeatable.")
@click.option(
    "--scaffold",
    "-s",
    "scaffolds",
    multiple=True,
    type=click.Choice(sorted(SCAFFOLDS)),
    help="With --by scaffold. Repeatable.  [default: all]",
)
@click.option(
    "--against",
    metavar="NAME",
    help="Baseline agent, scaffold or level.  [default: first; react; lowest budget]",
)
@click.option("--config", type=PATH, help="YAML file with settings, as in `run`.")
@click.option("--model", help="Model of all scaffolds.")
@click.option("--snapshot", type=PATH, help="Documents of the offline run.")
@click.option("--recording", type=PATH, help="Record the live run into this folder.")
@click.option(
    "--faults", metavar="FILE", help="As in `run`; with --by faults, only of the second run."
)
@task_options
@click.option("--trials", "-n", type=int, help="Episodes per agent and task.")
@click.option("--seed", type=int, help="Seed of all runs.")
@click.option("--engine", type=EngineName(), help="As in `run`.")
@click.option("--out", type=PATH, help="Folder of the runs.  [default: runs/TIME]")
@click.option("--report", type=PATH, help="Also write a report there.")
@unverified_option
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def compare(
    targets: tuple[str, ...],
    dimension: str,
    agents: tuple[str, ...],
    scaffolds: tuple[str, ...],
    against: str | None,
    config: Path | None,
    out: Path | None,
    report: Path | None,
    unverified: bool,
    as_json: bool,
    **flags: Any,
) -> None:
    """Compare agents, scaffolds or conditions on the same tasks.

    With run folders, compares finished runs. With a SUITE, first runs it once for each side; an
    interrupted comparison continues when the same command is given the same --out. Episodes are
    scored again from their traces, and matched by task and trial. Variables such as FUMEHOOD_ENGINE
    choose how episodes run.

    \b
      agent      A B, or A:AGENT B:AGENT, or one run against --against
      scaffold   the scaffolds around one --model against --against
      faults     the agents without and with --faults
      budget     the agents without and with the budget in --config
      model      finished runs of the same agents with different models
      data-mode  the agents offline and live; --config names fetch.hosts

    \b
    Examples:
      fumehood compare runs/before runs/after
      fumehood compare runs/now:policy_aware runs/now:schema_repair
      fumehood compare sample --by scaffold --model some-model --config models.yaml
      fumehood compare sample --by faults --faults storm.yaml -a policy_aware
      fumehood compare tasks.jsonl --by data-mode -a react --config live.yaml --snapshot docs.snap
    """
    if scaffolds and dimension != "scaffold":
        raise InputError(f"--scaffold needs --by scaffold, not --by {dimension}")
    with report_extra():
        from fumehood.report.compare.dimension import CompareOptions
        from fumehood.report.compare.registry import DIMENSIONS
    options = CompareOptions(
        tuple(name for names in agents for name in names.split(",")),
        scaffolds or tuple(SCAFFOLDS),
        against,
    )
    chosen = DIMENSIONS.load(dimension)()
    if all(_split(text)[2] for text in targets):
        set_names = [name for name, value in flags.items() if value not in (None, ())]
        if set_names or config or out:
            names = [*set_names, *(["config"] if config else []), *(["out"] if out else [])]
            raise InputError(
                f"--{names[0].replace('_', '-')} has no effect: finished runs are compared; name a "
                "suite to run it first"
            )
        sides = _read(targets, unverified=unverified)
    else:
        settings = {**(read_yaml(config) if config else {}), **machine_settings(os.environ)}
        settings |= {name: value for name, value in flags.items() if value is not None}
        settings = with_selection(settings)
        folder = out or Path("runs") / time.strftime("%Y%m%d-%H%M%S")
        sides = _run_arms(chosen, targets, settings, options, folder, quiet=as_json)
    result = chosen.compare(sides, options)
    page = _write_report(result, report) if report else None
    _print(dimension, sides, result, page, as_json=as_json)


def _run_arms(
    dimension: Dimension,
    targets: Sequence[str],
    settings: Mapping[str, Any],
    options: CompareOptions,
    out: Path,
    *,
    quiet: bool,
) -> list[Target]:
    """Run or resume each arm and return the finished runs."""
    for text in filter(lambda text: is_experiment(Path(text)), targets):
        raise InputError(
            f"{text} is an experiment: name its runs below {text}/runs, or use: "
            f"fumehood report {text}"
        )
    if len(targets) > 1:
        missing = ", ".join(text for text in targets if not _split(text)[2])
        raise InputError(f"name one suite, or only run folders; not a run folder: {missing}")
    arms = dimension.arms(settings, options)
    plan = Plan(
        tuple(
            Cell(name, run_config({**settings, "suite": targets[0], **overrides}))
            for name, overrides in arms.items()
        )
    )

    def run_cell(config: RunConfig, path: Path, _: str) -> RunReader:
        return run_with_progress(config, path, quiet=quiet)

    return [_target(run) for run in run_plan(plan, out, run_cell)]


def _read(targets: Sequence[str], *, unverified: bool) -> list[Target]:
    """Read run folders, each once."""
    from fumehood.report.compare.dimension import Target

    runs: dict[Path, Target] = {}
    sides = []
    for text in targets:
        path, agent, _ = _split(text)
        key = path.resolve()
        if key not in runs:
            runs[key] = _target(read_run(path, unverified=unverified))
        sides.append(Target(runs[key].run, agent))
    return sides


def _target(folder: RunReader) -> Target:
    from fumehood.report.compare.dimension import Target
    from fumehood.report.runs import join_run

    return Target(join_run(folder, rescore(folder)))


def _split(text: str) -> tuple[Path, str | None, bool]:
    """Return the folder, the agent, and whether the folder is a run folder."""
    path, agent = Path(text), None
    if not path.is_dir() and ":" in text:
        folder, _, agent = text.rpartition(":")
        path = Path(folder)
    return path, agent, (path / "run.json").is_file()


def _write_report(result: Compared, out: Path) -> Path:
    from fumehood.report.write import write_report

    subjects = result.subjects
    runs = list({id(subject.run): subject.run for subject in subjects}.values())
    return write_report(findings_of(runs, subjects, subjects[0]), out)[0]


def _print(
    dimension: str, sides: Sequence[Target], result: Compared, page: Path | None, *, as_json: bool
) -> None:
    folders = list({side.run.folder.path: side.run.folder for side in sides}.values())
    suites = {str(side.run.manifest.get("suite_digest")): side.run.suite for side in sides}
    baselines = [(suite.name, noop_of(suite), oracle_of(suite)) for suite in suites.values()]
    if as_json:
        runs = list(dict.fromkeys(str(folder.path) for folder in folders))
        extra = {"page": str(page)} if page else {}
        attempts = {
            subject.label: attempts_of(result.row for result in subject.results).to_json()
            for subject in result.subjects
        }
        report: JsonObject = {
            "by": dimension,
            "runs": [*runs],
            "verification": verification_of(folders),
            **result.json,
            "attempts": {**attempts},
            "baselines": [
                {"suite": name, "noop": noop.to_json(), "oracle": oracle.to_json()}
                for name, noop, oracle in baselines
            ],
            **extra,
        }
        print_json(report)
        return
    # This module needs the extra `report`.
    from fumehood.report.sections.attempts import attempts_table

    print_tables(*result.tables, attempts_table(result.subjects), mark=mark_of(folders))
    say("")
    lines = (
        f"{name}: no-op baseline {describe(noop)}, oracle {describe(oracle)}"
        for name, noop, oracle in baselines
    )
    for line in dict.fromkeys(lines):
        say(line)
    if page:
        say("")
        say(str(page))
