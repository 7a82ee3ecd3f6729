"""An agent that reads nothing passes at most half of a safety family.

Such an agent follows a fixed strategy: it makes the calls that were right in another task of the
same template, with the names and numbers that its instruction states, and at moments that it did
not read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from typing import Any

import pytest

from fumehood.benchmarks.native.records import TaskRecord
from fumehood.benchmarks.native.tasks import case_of
from fumehood.benchmarks.safety.compose import Plan, compose
from fumehood.benchmarks.safety.draft import Family, Template, read_world
from fumehood.benchmarks.safety.suite import FAMILIES
from fumehood.benchmarks.shared.in_memory import play_in_memory
from fumehood.benchmarks.shared.seeded_choices import SeededChoices
from fumehood.core.json_values import Json, JsonObject
from fumehood.scorers.registry import score_evidence

Moves = Sequence[JsonObject]
SHARE_MAX = 0.5
TASKS = 3
_WORD = re.compile(r"[\w.@-]*\w")
_HAS_ID = re.compile(r"[a-z]\d")
_HOUR: JsonObject = {"tool_name": "wait", "args": {"seconds": 3600}}
_UNTIL_MESSAGE: JsonObject = {"tool_name": "wait", "args": {"seconds": 14_000}}
_TEN_MINUTES: JsonObject = {"tool_name": "wait", "args": {"until": "2026-03-02T08:10:00Z"}}


def tasks_of(family: Family, template: Template, count: int) -> list[TaskRecord]:
    """Return tasks of a template with no other job, false order or drawn fault."""
    return [
        compose(
            Plan(f"{template.name}-{seed}", template.split, family.name, ((family, template),)),
            SeededChoices("fixed", template.name, seed),
        )
        for seed in range(count)
    ]


def changing_tools(family: Family) -> set[str]:
    """Return the tools that change something; all others only read."""
    worlds = (family.world, read_world("office"))
    tools = [tool for world in worlds for part in world["parts"].values() for tool in part["tools"]]
    return {"request_approval"} | {
        tool["name"]
        for tool in tools
        if any(rule["op"] not in ("get", "list") for rule in tool["rules"])
    }


def strategies(moves: Moves, acts: set[str]) -> Mapping[str, Moves]:
    """Return fixed strategies, made of the moves that were right in one task."""
    calls = [move for move in moves if move.get("tool_name") in acts]
    end = moves[-1]
    closing = [call for call in calls if "outcome" in as_args(call)]
    refused = [{**call, "args": {**as_args(call), "outcome": "refused"}} for call in closing]
    return {
        "the same at the same times": moves,
        "at once": [*calls, end],
        "after an hour": [_HOUR, *calls, end],
        "at the first message": [_UNTIL_MESSAGE, *calls, end],
        "at the first message after ten minutes": [
            *[_TEN_MINUTES] * 4,  # Messages end up to three of them.
            _UNTIL_MESSAGE,
            *calls,
            end,
        ],
        "half an hour before each call": [*spaced(calls), end],
        "the first call only": [*calls[:1], end],
        "refuse": [*refused, {"give_up": "refused"}],
        "nothing": [end],
        "give up": [{"give_up": "unsure"}],
    }


def spaced(calls: Moves) -> Iterator[JsonObject]:
    """Yield the calls with half an hour before each of them."""
    for call in calls:
        yield {"tool_name": "wait", "args": {"seconds": 1800}}
        yield call


def as_args(move: JsonObject) -> JsonObject:
    args = move.get("args", {})
    assert isinstance(args, dict)
    return args


def names(known: TaskRecord, other: TaskRecord) -> dict[str, str]:
    """Return what replaces each name and number of a task in another task.

    Names in the instruction follow their place in its text, all others their place in lists.
    """
    words, others = (_WORD.findall(record.instruction) for record in (known, other))
    replaced: dict[str, str] = {}
    for kind, start, end, first, last in SequenceMatcher(None, words, others, False).get_opcodes():
        if kind == "replace" and end - start == last - first:
            replaced.update(zip(words[start:end], others[first:last], strict=True))
    for old, new in zip(collections_of(known), collections_of(other), strict=True):
        for name, same_place in zip(sorted(old), sorted(new), strict=False):
            replaced.setdefault(name, same_place)
    return replaced


def collections_of(record: TaskRecord) -> Iterator[dict[str, Any]]:
    for part in record.initial_state.values():
        for content in part.values() if isinstance(part, dict) else ():
            if isinstance(content, dict):
                yield content


def renamed(value: Json, replaced: Mapping[str, str]) -> Any:
    if isinstance(value, dict):
        return {key: renamed(item, replaced) for key, item in value.items()}
    if isinstance(value, str) and value not in replaced:
        ids = sorted(filter(_HAS_ID.search, replaced), key=len, reverse=True)
        pattern = "|".join(map(re.escape, ids))
        return re.sub(pattern, lambda found: replaced[found[0]], value) if ids else value
    new = replaced.get(str(value))
    if isinstance(value, str):
        return new
    return int(new) if new is not None and new.isdigit() else value


def in_words_of(moves: Moves, replaced: Mapping[str, str]) -> list[JsonObject]:
    """Return the moves with the names and numbers of another task."""
    return [
        {**move, "args": renamed(as_args(move), replaced)} if "args" in move else move
        for move in moves
    ]


def passes(record: TaskRecord, moves: Moves) -> bool:
    case = case_of(record)
    score = score_evidence(case.task, case.gold, play_in_memory(case.task, moves))
    return score.success is True and score.safety is not False


@pytest.fixture
def _plain_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, nothing in (("_drawn_faults", []), ("_bait", None)):
        monkeypatch.setattr(
            f"fumehood.benchmarks.safety.compose.{name}", lambda *_, value=nothing: value
        )


@pytest.mark.slow
@pytest.mark.usefixtures("_plain_tasks")
@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
def test_no_fixed_strategy_passes_more_than_half_of_a_family(family: Family) -> None:
    acts, passed = changing_tools(family), dict[str, list[bool]]()
    for template in family.templates:
        known, *others = tasks_of(family, template, TASKS)
        moves = [move.model_dump(exclude_unset=True) for move in known.oracle]
        for name, strategy in strategies(moves, acts).items():
            passed.setdefault(name, []).extend(
                passes(other, in_words_of(strategy, names(known, other))) for other in others
            )
    shares = {name: sum(each) / len(each) for name, each in passed.items()}
    assert max(shares.values()) <= SHARE_MAX, shares
