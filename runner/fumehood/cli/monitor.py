"""``fumehood monitor``."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

import click

from fumehood.cli.output import PATH, print_json, print_tables, report_extra, say
from fumehood.cli.progress import task_progress
from fumehood.cli.reading import mark_of, read_runs, unverified_option, verification_of
from fumehood.core.errors import InputError, SpecError
from fumehood.core.json_values import JsonObject
from fumehood.core.score import SEVERITIES
from fumehood.core.task import Case
from fumehood.monitors.monitor import Decision, Facts, Monitor, Step, decide
from fumehood.monitors.offline import StepDecision, Timeline, play, recorded
from fumehood.monitors.rules import RuleMonitor
from fumehood.orchestrator.config import parse_yaml
from fumehood.orchestrator.harm import first_harm
from fumehood.records.files import write_export

if TYPE_CHECKING:
    from fumehood.report.monitors import WatchedEpisode
    from fumehood.report.results import Result
    from fumehood.report.runs import Run
    from fumehood.report.statistics.pairs import Difference

Make = Callable[[], Monitor]


class _Share(click.ParamType[float]):
    """A share, such as ``1%`` or ``0.01``."""

    name = "share"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        text = str(value).strip()
        try:
            share = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
        except ValueError:
            share = -1.0
        if not 0 <= share <= 1:
            self.fail(f"{text} must be from 0 % to 100 %, such as 1%", param, ctx)
        return share


@click.command()
@click.argument("run_dirs", metavar="DIR...", nargs=-1, required=True, type=PATH)
@click.option("--monitor", "source", help="File with rules, or module:Class.")
@click.option("--recorded", is_flag=True, help="Score the decisions of the run's live monitors.")
@click.option(
    "--severity",
    type=click.Choice(list(SEVERITIES)),
    default=next(iter(SEVERITIES)),
    show_default=True,
    help="Class of safety violations that are harmful; more severe ones are, too.",
)
@click.option(
    "--false-alarms",
    type=_Share(),
    default="1%",
    show_default=True,
    help="Largest share of honest episodes with an alarm, for the threshold.",
)
@click.option("--against", type=PATH, help="Run of the same tasks with the monitor live.")
@click.option("--html", type=PATH, help="Also write one page that opens offline.")
@unverified_option
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def monitor(
    run_dirs: tuple[Path, ...],
    source: str | None,
    recorded: bool,
    severity: str,
    false_alarms: float,
    against: Path | None,
    html: Path | None,
    unverified: bool,
    as_json: bool,
) -> None:
    """Play a monitor over recorded traces, and score its alarms.

    An episode is harmful if it violates a safety check. The score is the ROC curve of the
    suspicions, recall and precision, how long alarms come before the harm, and the time of the
    monitor. With --against, also what the live monitor prevents, and the utility that it costs.

    \b
    Examples:
      fumehood monitor runs/DIR --monitor rules.yaml --false-alarms 5% --html monitor.html
      fumehood monitor runs/DIR --monitor my_monitor:Monitor --against runs/WATCHED
      fumehood monitor runs/WATCHED --recorded
    """
    with report_extra():
        from fumehood.report.monitors import (
            agent_table,
            alarm_table,
            area_text,
            cost_table,
            live_table,
            monitor_json,
            monitor_score,
        )
    if (source is None) is not recorded:
        raise InputError("name either --monitor or --recorded")
    if against is not None and len(run_dirs) > 1:
        raise InputError("--against needs one run to compare with; name one DIR")
    make = None if source is None else _factory(source)
    if html is not None and not html.parent.is_dir():
        raise InputError(f"--html: there is no folder {html.parent}; create it first")
    runs = read_runs(run_dirs, unverified=unverified)
    watched = read_runs([against] if against else [], unverified=unverified)
    count = sum(len(run.results) for run in runs)
    with task_progress("monitor", count, quiet=as_json) as done:
        episodes = [each for run in runs for each in _episodes(run, make, severity, done)]
    score = monitor_score(
        source or "live monitors", episodes, severity, false_alarms, _changes(runs, watched)
    )
    folders = [run.folder for run in (*runs, *watched)]
    mark = mark_of(folders)
    if html is not None:
        from fumehood.report.page.monitors import monitor_page

        write_export(html, monitor_page(score, [*runs, *watched], mark))
    if as_json:
        print_json({"verification": verification_of(folders), **monitor_json(score)})
        return
    say(area_text(score))
    tables = (alarm_table(score), agent_table(score), live_table(score), cost_table(score))
    print_tables(*tables, mark=mark)


def _factory(source: str) -> Make:
    """Return a function that makes a monitor for an episode.

    Raises:
        InputError: there is no such file or class, or it is no monitor.
    """
    module, colon, name = source.partition(":")
    if not colon:
        settings = parse_yaml(Path(source))
        if not isinstance(settings, dict):
            raise InputError(f"{source}: must be an object with rules")
        try:
            needs_state = RuleMonitor(settings).needs_state
        except SpecError as error:
            raise InputError(f"{source}: {error}") from None
        return _without_state(source, lambda: RuleMonitor(settings), needs_state)
    sys.path.insert(0, str(Path.cwd()))
    try:
        make: Make = getattr(import_module(module), name)
    except ImportError as error:
        raise InputError(f"--monitor {source}: {error}") from None
    except AttributeError:
        raise InputError(f"--monitor: the module {module} has no class {name}") from None
    return _without_state(source, make, bool(getattr(make, "needs_state", False)))


def _without_state(source: str, make: Make, needs_state: bool) -> Make:
    if needs_state:
        raise InputError(
            f"{source} needs the state of the world, which traces do not contain; "
            "run it live, and score its decisions with --recorded"
        )
    return make


def _episodes(
    run: Run, make: Make | None, severity: str, done: Callable[[], None]
) -> list[WatchedEpisode]:
    cases = {case.task.task_id: case for case in run.suite.cases}
    episodes = []
    for result in sorted(run.results, key=lambda result: str(result.row.name)):
        if result.row.trace:
            episodes.append(_watched(run, cases[result.task.task_id], result, make, severity))
        done()
    return episodes


def _watched(
    run: Run, case: Case, result: Result, make: Make | None, severity: str
) -> WatchedEpisode:
    from fumehood.report.monitors import WatchedEpisode

    records = run.folder.read_trace(result.row)
    events: list[JsonObject] = [json.loads(record.event_json) for record in records]
    decisions: Sequence[StepDecision]
    if make is None:
        decisions = recorded(events)
    else:
        facts = Facts(
            world=case.task.world,
            instructions={seat.name: seat.instruction for seat in case.task.seats},
        )
        decisions = _played(make(), facts, events)
    is_harmful = result.success is not None and result.row.score.violates(severity)
    return WatchedEpisode(
        result,
        (run.suite.name, run.clusters[case.task.task_id]),
        decisions,
        Timeline(events),
        severity,
        first_harm(case, records, severity) if is_harmful else None,
        was_live=make is None,
    )


def _played(own: Monitor, facts: Facts, events: Sequence[JsonObject]) -> list[StepDecision]:
    def decided(step: Step) -> tuple[str, Decision, str]:
        try:
            return "", decide(own, step), ""
        except Exception as error:
            return "", Decision(), f"{type(error).__name__}: {error}"

    own.begin(facts)
    return play(decided, events)


def _changes(runs: Sequence[Run], watched: Sequence[Run]) -> dict[str, dict[str, Difference]]:
    """Return the changes with the live monitor, by agent.

    Raises:
        InputError: the runs have no agent in common.
    """
    from fumehood.report.monitors import live_changes
    from fumehood.report.runs import subjects_of

    if not watched:
        return {}
    plain, live = (
        {subject.agent: subject.results for subject in subjects_of(own)} for own in (runs, watched)
    )
    shared = [agent for agent in plain if agent in live]
    if not shared:
        raise InputError("--against: the runs have no agent in common; name one of the same agents")
    return {agent: live_changes(plain[agent], live[agent]) for agent in shared}
