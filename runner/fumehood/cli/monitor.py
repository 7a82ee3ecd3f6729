"""``fumehood monitor``."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fumehood.cli.output import PATH, print_json, print_tables, report_extra, say
from fumehood.cli.progress import part_progress
from fumehood.cli.reading import mark_of, read_runs, unverified_option, verification_of
from fumehood.core.episode_spec import MonitorSpec
from fumehood.core.errors import InputError
from fumehood.core.json_values import JsonObject
from fumehood.core.score import SEVERITIES
from fumehood.gateway.responses import read_response
from fumehood.monitors.host import AskModel, MonitorHost
from fumehood.monitors.monitor import Facts
from fumehood.monitors.offline import Exchanges, Timeline, play
from fumehood.monitors.offline import recorded as recorded_decisions
from fumehood.orchestrator.config import read_yaml, run_config
from fumehood.orchestrator.harm import first_harm
from fumehood.orchestrator.monitor_models import ask_models
from fumehood.orchestrator.monitors import monitor_specs
from fumehood.records.files import write_export
from fumehood.records.row import EpisodeName
from fumehood.records.run_reader import RunReader

if TYPE_CHECKING:
    from fumehood.report.monitors import WatchedEpisode
    from fumehood.report.results import Result
    from fumehood.report.runs import Run
    from fumehood.report.statistics.pairs import Difference


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
@click.option(
    "--monitor",
    "monitors",
    multiple=True,
    metavar="MONITOR",
    help="FILE.yaml, FILE.py:Class, module:Class or model:NAME. Repeatable: a monitor decides "
    "only if the one before it escalates.",
)
@click.option("--config", type=PATH, help="YAML file with `models`, and with `monitors`.")
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
    monitors: tuple[str, ...],
    config: Path | None,
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
    settings = {**(read_yaml(config) if config else {}), **_given(monitors)}
    if bool(settings.get("monitors")) is recorded:
        raise InputError("name exactly one: --monitor, --config with `monitors`, or --recorded")
    if recorded and against is not None:
        raise InputError("--against and --recorded exclude each other: remove one")
    if against is not None and len(run_dirs) > 1:
        raise InputError("--against needs one run to compare with; name one DIR")
    named = run_config({"suite": "", "agents": ("",), **settings})
    specs = monitor_specs(named)
    if html is not None and not html.parent.is_dir():
        raise InputError(f"--html: there is no folder {html.parent}; create it first")
    with _started(specs, ask_models(named, specs)) as host:
        runs = read_runs(run_dirs, unverified=unverified)
        watched = read_runs([against] if against else [], unverified=unverified)
        results = [(run, each) for run in runs for each in run.results if each.row.trace]
        results.sort(key=lambda pair: (pair[0].label, str(pair[1].row.name)))
        episodes = []
        with part_progress("monitor", len(results), "episodes", quiet=as_json) as done:
            for run, result in results:
                episodes.append(_watched(run, result, host, severity))
                done()
    name = ", ".join(spec.name for spec in specs) or "live monitors"
    score = monitor_score(name, episodes, severity, false_alarms, _changes(runs, watched))
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


def _given(monitors: Sequence[str]) -> dict[str, Any]:
    return {"monitors": monitors} if monitors else {}


@contextmanager
def _started(specs: Sequence[MonitorSpec], ask_model: AskModel | None) -> Iterator[MonitorHost]:
    """Yield the host of the monitors, whose processes end with the context.

    Raises:
        InputError: a monitor cannot be made, or does not pass the health check.
        InfraError: no process can be started.
    """
    host = MonitorHost(specs)
    try:
        if specs:
            host.start(ask_model)
        yield host
    finally:
        host.stop()


def _watched(run: Run, result: Result, host: MonitorHost, severity: str) -> WatchedEpisode:
    """Return an episode with the decisions of the monitors, or with those that were recorded."""
    from fumehood.report.monitors import WatchedEpisode

    case = next(one for one in run.suite.cases if one.task.task_id == result.task.task_id)
    records = run.folder.read_trace(result.row)
    events: list[JsonObject] = [json.loads(record.event_json) for record in records]
    if host.specs:
        facts = Facts(
            world=case.task.world,
            instructions={seat.name: seat.instruction for seat in case.task.seats},
        )
        monitors = host.reviewer(list(host.specs))
        try:
            decisions = play(monitors, facts, events, _exchanges(run.folder, result.row.name))
        finally:
            monitors.release()
    else:
        decisions = recorded_decisions(events)
    is_harmful = result.success is not None and result.row.score.violates(severity)
    return WatchedEpisode(
        result,
        (run.suite.name, run.clusters[case.task.task_id]),
        decisions,
        Timeline(events),
        severity,
        first_harm(case, records, severity) if is_harmful else None,
        was_live=not host.specs,
    )


def _exchanges(folder: RunReader, name: EpisodeName) -> Exchanges:
    """Return the recorded model requests of an episode; none if the run did not record them."""
    return {
        (each.seat, each.key, each.occurrence): (
            json.loads(each.request),
            read_response(each.response, each.status),
        )
        for each in folder.exchanges(name)
    }


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
        raise InputError("--against: the runs share no agent; name a run of the same agents")
    return {agent: live_changes(plain[agent], live[agent]) for agent in shared}
