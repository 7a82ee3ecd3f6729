"""Derives a reference solution of a scenario of ToolSandbox from its milestones.

ToolSandbox publishes none. A milestone demands a call, a change of a database or a text, and each
leads to the moves that reach it. Only the process of ``checker`` uses this.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from fumehood.benchmarks.toolsandbox.names import END_TOOL, USER
from fumehood.benchmarks.toolsandbox.play import START, messages_of, original, play

CONTINUE = "Please go on."
DONE = "I have done what I can do with my tools."
END: dict[str, Any] = {"seat": USER, "tool_name": END_TOOL, "args": {}}
_CHANGES = {
    "CONTACT addition": ("add_contact", "name phone_number relationship"),
    "CONTACT update": ("modify_contact", "person_id name phone_number relationship"),
    "CONTACT removal": ("remove_contact", "person_id"),
    "REMINDER addition": ("add_reminder", "content reminder_timestamp latitude longitude"),
    "REMINDER update": ("modify_reminder", "reminder_id reminder_timestamp"),
    "REMINDER removal": ("remove_reminder", "reminder_id"),
    "MESSAGING addition": ("send_message_with_phone_number", "phone_number content"),
}
"""Change of a database → the tool that makes it, and its arguments."""
_NOW = START.replace(tzinfo=UTC).timestamp()
_SEARCHES: dict[str, dict[str, Any]] = {
    "search_contacts": {"is_self": False},
    "search_messages": {"creation_timestamp_upperbound": _NOW},
    "search_reminder": {"creation_timestamp_upperbound": _NOW},
}
"""Arguments of searches for which a milestone demands none; the tools demand one."""


def reference_moves(scenario: Any) -> list[dict[str, Any]]:
    """Return the moves of both seats, with the tools' own names."""
    moves: list[dict[str, Any]] = []
    last_calls: dict[int, int] = {}
    matcher = scenario.evaluation.milestone_matcher
    for index in _order(matcher):
        if moves and "submit" in moves[-1]:
            moves.append({"seat": USER, "submit": CONTINUE})
        moves += _moves_to(matcher.milestones[index], scenario, moves, last_calls)
        last_calls[index] = len(moves) - 1
    if not moves or "submit" not in moves[-1]:
        moves.append({"submit": DONE})
    return [*moves, END, {"seat": USER, "submit": ""}]


def _order(matcher: Any) -> Iterator[int]:
    """Yield the milestones in an order that their graph permits, changes of databases first: a
    milestone may demand that no database changed since another one."""
    left = dict.fromkeys(range(len(matcher.milestones)))
    changing = {
        index
        for index, milestone in enumerate(matcher.milestones)
        for each in milestone.snapshot_constraints
        if each.target_dataframe is not None and each.database_namespace != "SANDBOX"
    }
    while left:
        behind = {after for before, after in matcher.edge_list if before in left}
        ready = [index for index in left if index not in behind]
        index = next((each for each in ready if each in changing), ready[0])
        del left[index]
        yield index


def _moves_to(
    milestone: Any, scenario: Any, before: list[dict[str, Any]], last_calls: dict[int, int]
) -> list[dict[str, Any]]:
    guardrail = original("common.evaluation").guardrail_similarity
    wanted: dict[str, Any] = {}
    texts: list[str] = []
    calls: list[dict[str, Any]] = []
    for constraint in milestone.snapshot_constraints:
        if constraint.snapshot_constraint is guardrail:
            continue
        filled = _extracted(constraint, scenario, before, last_calls)
        for row in constraint.target_dataframe.to_dicts():
            if row.get("tool_trace"):
                traces = json.loads(row["tool_trace"])
                trace = traces[0] if isinstance(traces, list) else traces
                wanted.setdefault(trace["tool_name"], {}).update({**filled, **trace["arguments"]})
            elif "content" in row and "sender" in row:
                texts.append(row["content"].format(**filled) if filled else row["content"])
            else:
                calls += _calls_to(constraint, row)
    for tool, arguments in wanted.items():
        usual = _SEARCHES.get(tool, {}) or _time_arguments(tool, scenario)
        calls.append({"tool_name": tool, "args": arguments or usual})
    if texts:
        parts = (part for part in texts[1:] if part not in texts[0])
        calls.append({"submit": " ".join([texts[0], *parts])})
    return calls


def _calls_to(constraint: Any, row: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the calls that put a row into a database, or remove it."""
    if constraint.database_namespace == "SETTING":
        for setting, value in row.items():
            name = "cellular_service" if setting == "cellular" else setting
            yield {"tool_name": f"set_{name}_status", "args": {"on": value}}
        return
    change = constraint.snapshot_constraint.__name__.removesuffix("_similarity")
    tool, names = _CHANGES[f"{constraint.database_namespace} {change}"]
    row = {"phone_number": row.get("recipient_phone_number"), **row}
    arguments = {name: row[name] for name in names.split() if row.get(name) is not None}
    yield {"tool_name": tool, "args": arguments}


def _extracted(
    constraint: Any, scenario: Any, before: list[dict[str, Any]], last_calls: dict[int, int]
) -> dict[str, Any]:
    """Return the values that a constraint takes from the result of an earlier call."""
    details = getattr(constraint.snapshot_constraint, "keywords", {})
    if "extractor" not in details:
        return {}
    identity = f"call_{last_calls[constraint.reference_milestone_node_index]}"
    for row in messages_of(play(scenario, before).context):
        if row["openai_tool_call_id"] == identity and row["tool_trace"]:
            return dict(details["extractor"](json.loads(row["tool_trace"][0]))[0])
    return {}


def _time_arguments(tool: str, scenario: Any) -> dict[str, Any]:
    """Return the time of the reminder that a scenario wants, if a tool takes it in parts."""
    if tool != "datetime_info_to_timestamp":
        return {}
    constraints = (
        constraint
        for milestone in scenario.evaluation.milestone_matcher.milestones
        for constraint in milestone.snapshot_constraints
        if constraint.database_namespace == "REMINDER" and constraint.target_dataframe is not None
    )
    time = datetime.fromtimestamp(next(constraints).target_dataframe["reminder_timestamp"][0], UTC)
    parts = ("year", "month", "day", "hour", "minute", "second")
    return {part: getattr(time, part) for part in parts}
