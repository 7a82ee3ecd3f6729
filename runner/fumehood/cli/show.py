"""``fumehood show``."""

from __future__ import annotations

import itertools
import json
from collections import Counter
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import click

from fumehood.cli.output import PATH, paged, print_json, print_tables, say
from fumehood.cli.reading import find_episode, read_run, unverified_option, verification_of
from fumehood.core.errors import InputError
from fumehood.core.ledger import BudgetKind
from fumehood.core.outcome import outcome_name
from fumehood.orchestrator.run_plan import config_of, instructions_of
from fumehood.records.row import EpisodeRow
from fumehood.records.run_reader import RunReader
from fumehood.report import wording
from fumehood.report.model_texts import ENCRYPTED_NOTE, Conversation
from fumehood.report.text_table import TextTable
from fumehood.scorers.found import failed_checks
from fumehood.scorers.verdict import SHARED, VERIFICATION, VERIFIER, Verdict, verdict_from_json

QUOTED_LINES = 20
"""Lines of one message that are printed; --json prints all."""
QUOTED_CHARACTERS = 500
"""Length of a printed line."""
PRICE = BudgetKind.TOOL_MICROUSD.value
TRIALS_SHOWN = 12
"""Trials of an agent and task that the list shows; --json prints all."""


@click.command()
@click.argument("run_dir", metavar="DIR", type=PATH)
@click.argument("episode", required=False)
@click.option("--failed", is_flag=True, help="Only episodes that were graded and failed.")
@click.option("--agent", "-a", metavar="GLOB", help="Only episodes of agents whose label matches.")
@click.option("--task", metavar="GLOB", help="Only episodes of tasks whose ID matches.")
@click.option(
    "--ended", metavar="GLOB", help="Only these outcomes, such as gave_up or out_of_budget*."
)
@unverified_option
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def show(
    run_dir: Path, episode: str | None, unverified: bool, as_json: bool, **filters: Any
) -> None:
    """Show an episode call by call, or list all episodes.

    EPISODE is AGENT/TASK/TRIAL, AGENT/TASK, or a part that only one episode has. The list has one
    row for each agent and task, with the numbers of its trials. A long output is shown in a pager.

    \b
    Examples:
      fumehood show runs/20260101-120000
      fumehood show runs/20260101-120000 --failed --agent policy_aware
      fumehood show runs/20260101-120000 policy_aware/crud_gold
    """
    if episode is not None and any(filters.values()):
        name = next(name for name, value in filters.items() if value)
        raise InputError(f"--{name} has no effect on one episode: remove it, or remove {episode}")
    folder = read_run(run_dir, unverified=unverified)
    rows = folder.rows()
    if episode is None:
        _list(folder, [row for row in rows if _passes(row, **filters)], as_json)
        return
    row = find_episode(rows, episode, run_dir)
    records = folder.read_trace(row) if row.trace else []
    events = [json.loads(record.event_json) for record in records]
    if as_json:
        checked = verification_of([folder])
        shown = {
            "verification": checked,
            "row": row.to_json(),
            "events": events,
            "conversation": _conversation_json(folder, row, events),
        }
        print_json(shown)
        return
    with paged():
        for line in _lines(folder, row, events):
            say(line)


def _conversation_json(
    folder: RunReader, row: EpisodeRow, events: list[dict[str, Any]]
) -> list[dict[str, str]]:
    said = Conversation(folder.exchanges(row.name)).transcript(events)
    return [{"seat": seat, "who": who, "text": text} for seat, who, text in said]


def _passes(
    row: EpisodeRow, *, failed: bool, agent: str | None, task: str | None, ended: str | None
) -> bool:
    named = fnmatchcase(row.name.agent, agent or "*") and fnmatchcase(row.name.task, task or "*")
    ends = fnmatchcase(outcome_name(row.outcome), ended or "*")
    return named and ends and (not failed or row.score.success is False)


def _list(folder: RunReader, rows: Sequence[EpisodeRow], as_json: bool) -> None:
    mark = folder.provenance.mark
    if as_json:
        extra = {"unverified": mark} if mark else {}
        print_json([{**extra, **row.to_json()} for row in rows])
        return
    with paged():
        if mark:
            say(mark)
        say(_size(rows))
        print_tables(_episode_table(rows))


def _size(rows: Sequence[EpisodeRow]) -> str:
    """Return how many episodes were selected, and how many of them were solved."""
    successes = [row.score.success for row in rows]
    parts = [f"{successes.count(True)} solved", f"{successes.count(False)} failed"]
    parts += [f"{successes.count(None)} without a score"] * (None in successes)
    shared = sum(row.score.metrics.get(VERIFICATION) == SHARED for row in rows)
    parts += [f"{shared} of them {SHARED}"] * (shared > 0)
    return f"{wording.sizes([row.name for row in rows])}: {', '.join(parts)}"


def _episode_table(rows: Sequence[EpisodeRow]) -> TextTable:
    """Return one row per agent and task: its trials with their marks, and how they ended."""
    groups: dict[tuple[str, str], list[EpisodeRow]] = {}
    for row in sorted(rows, key=lambda row: row.name.trial):
        groups.setdefault((row.name.agent, row.name.task), []).append(row)
    # In the order of the run; several episodes at once may finish in another order.
    agents = list(dict.fromkeys(row.name.agent for row in rows))
    lines = []
    for (agent, task), trials in sorted(groups.items(), key=lambda item: agents.index(item[0][0])):
        ended = Counter(outcome_name(row.outcome) for row in trials)
        marks = [f"{row.name.trial} {_mark(row.score.success)}" for row in trials[:TRIALS_SHOWN]]
        marks += [f"and {len(trials) - TRIALS_SHOWN} more"] * (len(trials) > TRIALS_SHOWN)
        solved = sum(row.score.success is True for row in trials)
        ends = ", ".join(f"{name} {count}" for name, count in ended.items())
        lines.append((agent, task, f"{solved} of {len(trials)}", ", ".join(marks), ends))
    header = ("agent", "task", "solved", "trials", "ended")
    return TextTable("", header, lines, names=2, trailing_text=2)


def _lines(folder: RunReader, row: EpisodeRow, events: list[dict[str, Any]]) -> Iterator[str]:
    if folder.provenance.mark:
        yield folder.provenance.mark
    yield f"{row.name}   {outcome_name(row.outcome)}   {_mark(row.score.success)}"
    case = next((case for case in folder.suite().cases if case.task.task_id == row.name.task), None)
    task = None if case is None else case.task
    if case is not None and task is not None:
        yield ""
        received = instructions_of(config_of(folder)).of(case, row.name.trial)
        for line in received[0].instruction.splitlines():
            yield f"  > {line}"
        yield ""
    conversation = Conversation(folder.exchanges(row.name))
    if conversation.is_encrypted:
        yield f"  ({ENCRYPTED_NOTE})"
    several = task is not None and len(task.seats) > 1
    for event in _joined(events):
        prefix = f"{event['seat']}: " if several and "seat" in event else ""
        for line in _event_lines(event):
            yield f"  {prefix}{line.lstrip()}" if prefix else line
        if event["kind"] == "model_call":
            for who, text in conversation.lines(event["seat"], event["request"]):
                yield from _quoted(who, text)
    price_microusd = sum(event.get("charged", {}).get(PRICE, 0) for event in events)
    if price_microusd:
        yield f"      price of all calls: {_usd(price_microusd)}"
    failed = {check.name: check for check in failed_checks(row.score, case, events)}
    for name, holds in row.score.checks.items():
        yield f"  {_mark(holds)} {name}"
        check = failed.get(name)
        if check is not None and check.expected is not None:
            yield f"      expected {_short(check.expected)}"
            if check.found is not None:
                yield f"      found {_cut(check.found)}"
    yield from _verdict_lines(verdict_from_json(row.score.metrics.get(VERIFIER)))
    for path in folder.outputs(row.name):
        yield f"  printed: {path}"


def _verdict_lines(verdict: Verdict | None) -> Iterator[str]:
    if verdict is None:
        return
    rewards = _rewards(verdict)
    left_out = f", {verdict.left_out} left out" if verdict.left_out else ""
    plural = "" if verdict.files == 1 else "s"
    files = f"{verdict.files} file{plural} of the workspace{left_out}"
    where = SHARED if verdict.is_shared else files
    if verdict.changed is not None:
        yield "  the agent ran inside the workspace (shared); the files that it changed:"
        for path in verdict.changed:
            yield f"    {_cut(path)}"
    yield f"  verifier: {rewards or verdict.problem} ({where})"
    if verdict.checkpoint:
        yield f"  kept workspace: {_cut(verdict.checkpoint)}"
    for line in verdict.output.splitlines()[-QUOTED_LINES:]:
        yield f"    {_cut(line)}"
    if verdict.shared is not None:
        difference = verdict.shared.reward - verdict.reward
        yield (
            f"  tests in the workspace: {_rewards(verdict.shared) or verdict.shared.problem} "
            f"({SHARED}; difference {difference:+g})"
        )
        for line in verdict.shared.output.splitlines()[-QUOTED_LINES:]:
            yield f"    {_cut(line)}"


def _rewards(verdict: Verdict) -> str:
    return ", ".join(f"{name} {value:g}" for name, value in verdict.rewards.items())


def _quoted(who: str, text: str) -> Iterator[str]:
    lines = text.splitlines() or [""]
    shown = lines[:QUOTED_LINES]
    yield f"        {who}: {_cut(shown[0])}"
    for line in shown[1:]:
        yield f"          {_cut(line)}"
    if len(lines) > len(shown):
        yield f"          [{len(lines) - len(shown)} more lines]"


def _cut(line: str) -> str:
    return line if len(line) <= QUOTED_CHARACTERS else f"{line[: QUOTED_CHARACTERS - 3]}..."


def _joined(events: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield the events; equal ones of a scenario that follow each other without effect are one."""
    for name, group in itertools.groupby(events, _idle_name):
        first, *others = group
        if name is None or not others:
            yield from (first, *others)
        else:
            yield {**first, "last_ms": others[-1]["at_ms"], "count": 1 + len(others)}


def _idle_name(event: dict[str, Any]) -> str | None:
    is_idle = event["kind"] == "world_event" and not event["had_effect"]
    return event["name"] if is_idle else None


def _event_lines(event: dict[str, Any]) -> Iterator[str]:
    if str(event["kind"]).startswith(("model_", "monitor", "provider_", "permission")):
        yield f"      {_model_line(event)}"
        return
    match event["kind"]:
        case "call":
            at = f"  at {event['at_ms'] / 1000:g} s" if "at_ms" in event else ""
            price = event["charged"].get(PRICE)
            cost = f", {_usd(price)}" if price else ""
            yield f"  {event['number']:>3} {event['tool']} {_short(event['arguments'])}{at}{cost}"
            if "arguments_after" in event:
                yield f"      delivered {_short(event['arguments_after'])}"
            for fault in event["faults"]:
                yield f"      fault {fault['rule']}: {fault['family']}"
            failure = event.get("failure")
            if failure is None:
                yield f"      = {_short(event['output'])}"
                yield from (f"      changed {path}" for path in _changed_files(event["output"]))
            else:
                details = _short(failure["details"])
                yield f"      ! {failure['code']}: {failure['message']} {details}"
        case "refused":
            yield f"      refused: {event['refusal']} ({event['actual']}, limit {event['limit']})"
        case "confidence":
            yield f"      states a confidence of {event['confidence']:g}"
        case "turn_began":
            yield f"      receives turn {event['turn']}: {_short(event['text'])}"
        case "turn_ended":
            yield f"      turn {event['turn']}: {_short(event['answer'])}"
        case "world_event":
            effect = "" if event["had_effect"] else ", without effect"
            to = f" to {event['last_ms'] / 1000:g} s" if "last_ms" in event else ""
            times = f", {event['count']} times" if "count" in event else ""
            yield f"      event {event['name']} at {event['at_ms'] / 1000:g} s{to}{effect}{times}"
        case "seat_ended":
            end = dict(event["end"])
            facts = [f"{name} {_short(value)}" for name, value in end.items() if name != "outcome"]
            yield f"      ended: {', '.join((end['outcome'], *facts))}"
        case "closed":
            for rule, count in enumerate(event["fire_counts"]):
                outcome = f"fired {count}×" if count else "not reached"
                yield f"      fault {rule}: {outcome}"


def _changed_files(output: Any) -> list[Any]:
    """Return the paths that a call changed in a workspace."""
    paths = output.get("changed_files") if isinstance(output, dict) else None
    return paths if isinstance(paths, list) else []


def _usd(microusd: int) -> str:
    return f"${microusd / 1_000_000:.6f}"


def _monitor_line(event: dict[str, Any]) -> str:
    where = f"monitor {event['monitor']} {event['stage']} {event['step']} {event['number']}"
    decision = event.get("decision")
    if decision is None:
        return f"{where}: failed ({event['failed']})"
    reason = f": {_cut(decision['reason'])}" if decision["reason"] else ""
    return f"{where}: {decision['action']}, suspicion {decision['suspicion']:g}{reason}"


def _model_line(event: dict[str, Any]) -> str:
    match event["kind"]:
        case "monitor":
            return _monitor_line(event)
        case "permission":
            return f"permission for {_cut(event['title'])}: {event['answer']}"
        case "model_call":
            status = "" if event["status"] == 200 else f", status {event['status']}"
            tokens = event["spent"]["model_tokens"]
            return f"model request to {event['model']}: {tokens:,} tokens{status}"
        case "model_refused":
            needs = ", ".join(f"{name} in {place}" for name, place in event["needs"].items())
            if budget := event.get("budget"):
                kind = BudgetKind(budget["kind"])
                left = f"{budget['used']:,} of {budget['limit']:,} are used"
                needs = f"{kind.unit}: it may need {budget['requested']:,}, and {left}"
            return f"model request refused: {event['reason']}{f' ({needs})' if needs else ''}"
        case "model_problem":
            return f"model problem, seen by the {event['source']}: {event['problem']}"
    return f"provider {event['provider']} checked: {event['result']}"


def _mark(success: bool | None) -> str:
    return {True: "✓", False: "✗", None: "·"}[success]


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 300 else f"{text[:297]}..."
