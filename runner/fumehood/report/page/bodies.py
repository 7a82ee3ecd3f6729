"""What a page shows of a task and of each of its episodes, as JSON with harmless text."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice, zip_longest
from typing import Any

from fumehood.core.errors import InputError
from fumehood.core.evidence import AnsweredCall
from fumehood.core.json_values import JsonObject, copy_object, digest_json
from fumehood.core.outcome import outcome_to_json
from fumehood.core.policy import APPROVAL_TOKEN, entries_by_check
from fumehood.core.state_diff import Change, changes
from fumehood.core.task import Case, Task
from fumehood.core.tools import ToolCall
from fumehood.report.model_texts import Conversation
from fumehood.report.page.texts import shown, shown_json
from fumehood.report.results import Result
from fumehood.report.statistics.failures import TITLES, Attribution
from fumehood.report.traces import ReadTrace
from fumehood.worlds.registry import WORLDS, needs_server

Body = dict[str, Any]
MESSAGES_MAX = 200
"""Messages of a conversation that a page keeps; ``fumehood show --json`` prints all of them."""


def task_body(case: Case) -> Body:
    """Return the data that all episodes of a task share."""
    task = case.task
    return {
        "world": task.world,
        "harness_mode": task.harness_mode,
        "solvable": case.gold.solvable,
        "tags": shown_json(task.tags) if task.tags else "",
        "seats": [
            {
                "name": seat.name,
                "instruction": shown(seat.instruction),
                "budget": seat.budget.to_json(),
            }
            for seat in task.seats
        ],
        "faults": [
            {
                "family": shown(rule.family),
                "severity": shown(rule.severity),
                "trigger": shown_json(rule.trigger),
                "payload": shown_json(rule.payload) if rule.payload else "",
            }
            for rule in task.fault_plan
        ],
        "criteria": {
            shown(name): shown_json(criterion)
            for name, criterion in {**case.gold.by_check(), **entries_by_check(task.policy)}.items()
        },
        "state": shown_json(task.initial_state),
    }


def episode_body(
    task: Task,
    result: Result,
    trace: ReadTrace,
    why: Attribution | None,
    printed: Sequence[str],
    conversation: Conversation,
) -> Body:
    """Return the data of one episode.

    Args:
        task: the task of the episode.
        result: the result with its row.
        trace: the trace of the episode.
        why: the attribution of a failed episode, otherwise None.
        printed: files with the output of the box.
        conversation: what models were asked and answered.
    """
    row, evidence = result.row, trace.evidence
    ending = {key: value for key, value in outcome_to_json(row.outcome).items() if key != "outcome"}
    body: Body = {
        "seed": str(row.seed),
        "digest": row.trace_digest[:16],
        "trace": shown(row.trace),
        "attempts": row.attempts,
        "wall": row.wall_ms,
        "ending": {shown(key): shown(str(value)) for key, value in ending.items() if value != ""},
        "checks": [
            [shown(name), held, shown(row.score.violations_of(name))]
            for name, held in row.score.checks.items()
        ],
        "printed": [shown(path) for path in printed],
        "calls": [],
    }
    said = conversation.transcript(stamped.event for stamped in trace.events)
    body["conversation"] = [list(map(shown, line)) for line in islice(said, MESSAGES_MAX)]
    if why is not None:
        body["why"] = {
            "primary": TITLES[why.primary],
            "secondary": [TITLES[label] for label in why.secondary],
            "signs": [[TITLES[sign.label], shown(sign.description)] for sign in why.signs],
        }
    if evidence is not None:
        body["calls"] = list(_calls(task, evidence.calls, trace))
        body["refusals"] = [shown(kind) for kind in evidence.refusals]
        body["fire_counts"] = list(evidence.fire_counts)
        body["changes"] = _changes(changes(task.initial_state, evidence.final_state))
    return body


def _calls(task: Task, calls: tuple[AnsweredCall, ...], trace: ReadTrace) -> Iterator[Body]:
    stamps = [stamped for stamped in trace.events if stamped.event["kind"] == "call"]
    started_ms = trace.events[0].wall_ms if trace.events else 0
    for call, stamp, changed in zip_longest(calls, stamps, state_changes(task, calls)):
        yield {
            **_call(call, task, changed),
            "at": stamp.wall_ms - started_ms,
            "us": stamp.duration_us,
            "left": dict(call.remaining),
        }


def _call(call: AnsweredCall, task: Task, changed: tuple[Change, ...] | None) -> Body:
    body: Body = {"tool": shown(call.tool_name), "sent": shown_json(call.sent)}
    if len(task.seats) > 1:
        body["seat"] = call.seat
    if dict(call.arguments_after) != dict(call.sent):
        body["arguments_after"] = shown_json(call.arguments_after)
    if call.failure is None:
        body["output"] = shown_json(call.output)
    else:
        failure = call.failure
        body["failure"] = {
            "kind": failure.kind.value,
            "code": shown(failure.code),
            "message": shown(failure.message),
        }
        if failure.details:
            body["failure"]["details"] = shown_json(failure.details)
    if call.fired_rules:
        body["faults"] = list(call.fired_rules)
    if changed is None:
        body["changed"] = True
    elif changed:
        body["changes"] = _changes(changed)
    return body


def _changes(leaves: Sequence[Change]) -> list[list[str | None]]:
    return [[_path(change.path), _leaf(change.before), _leaf(change.after)] for change in leaves]


def _path(path: Sequence[str | int]) -> str:
    return shown(" › ".join(str(step) for step in path))


def _leaf(text: str | None) -> str | None:
    return None if text is None else shown_json(json.loads(text))


def state_changes(
    task: Task, calls: tuple[AnsweredCall, ...]
) -> Iterator[tuple[Change, ...] | None]:
    """Yield the leaves that each call changed; None if the state changed in an unknown way."""
    replay: _Replay | None = _start(task)
    digest = digest_json(task.initial_state)
    for call in calls:
        if call.state_digest == digest:
            yield ()
            continue
        digest = call.state_digest
        changed = replay.make(call) if replay else None
        if changed is None:
            # From here on the repeated state differs from the recorded one.
            replay = None
        yield changed


class _Replay:
    """A world that repeats the recorded calls."""

    def __init__(self, task: Task) -> None:
        self._world = WORLDS.load(task.world)(copy_object(task.initial_state))

    def make(self, call: AnsweredCall) -> tuple[Change, ...] | None:
        before = copy_object(self._world.state)
        try:
            arguments = _copied(call.arguments_after)
            arguments.pop(APPROVAL_TOKEN, None)
            self._world.call(ToolCall(call.tool_name, arguments))
        except Exception:
            # Code in the process of an episode can record calls that no tool allows.
            return None
        if digest_json(self._world.state) != call.state_digest:
            return None
        return changes(before, self._world.state)


def _start(task: Task) -> _Replay | None:
    try:
        if needs_server(task.world):
            # A reader of a run starts no servers and opens no connections.
            return None
        return _Replay(task)
    except InputError:
        return None


def _copied(arguments: Mapping[str, object]) -> JsonObject:
    return copy_object(arguments)  # type: ignore[arg-type]
