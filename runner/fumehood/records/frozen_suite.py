"""The stored form of a suite: one line per task with its gold, equal for all benchmarks."""

from __future__ import annotations

import json
from collections.abc import Mapping
from hashlib import sha256
from typing import Any

from fumehood.core.conversation import ConversationSpec, Turn
from fumehood.core.episode_spec import SeatSpec
from fumehood.core.errors import InputError
from fumehood.core.fault_plan import FaultRule
from fumehood.core.gold import Gold
from fumehood.core.json_values import Json, JsonObject, ordered_json
from fumehood.core.ledger import Budget, BudgetKind
from fumehood.core.task import Case, Suite, Task


def freeze_suite(suite: Suite) -> str:
    """Return the suite as JSON lines.

    Keys keep their order: faults rename arguments in it, and agents read results in it.
    """
    return "".join(ordered_json(_case_to_json(case)) + "\n" for case in suite.cases)


_last_digest: list[tuple[Suite, str]] = []
"""The suite whose digest was computed last: a command asks several times for that of one suite."""


def suite_digest(suite: Suite) -> str:
    """Return the SHA-256 of the stored form of a suite in hex."""
    if not _last_digest or _last_digest[0][0] is not suite:
        _keep_digest(suite, freeze_suite(suite).encode("ascii"))
    return _last_digest[0][1]


def _keep_digest(suite: Suite, stored: bytes) -> None:
    _last_digest[:] = [(suite, sha256(stored).hexdigest())]


def read_frozen_suite(name: str, content: bytes) -> Suite:
    """Return the suite that :func:`freeze_suite` wrote.

    Args:
        name: of the suite.
        content: of ``suite.jsonl``.

    Raises:
        InputError: a line is not a stored task.
    """
    try:
        # One parser keeps each key once, and the tasks of a suite have the same keys.
        cases = json.loads(f"[{','.join(content.decode('ascii').splitlines())}]")
        suite = Suite(name, tuple(map(_case_from_json, cases)))
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(f"the run folder's suite.jsonl cannot be read: {error!r}") from None
    _keep_digest(suite, content)
    return suite


def _case_to_json(case: Case) -> JsonObject:
    task, gold = case.task, case.gold
    frozen: JsonObject = {
        "task_id": task.task_id,
        "world": task.world,
        "harness_mode": task.harness_mode,
        "initial_state": task.initial_state,
        "fault_plan": [rule.to_json() for rule in task.fault_plan],
        "seed": str(task.seed),
        "seats": [_seat_to_json(seat) for seat in task.seats],
        "tags": task.tags,
        "gold": {
            "scorer": gold.scorer,
            "criteria": [dict(criterion) for criterion in gold.criteria],
            "solvable": gold.solvable,
            "oracle": None if gold.oracle is None else [dict(step) for step in gold.oracle],
            **({} if gold.procedure is None else {"procedure": dict(gold.procedure)}),
        },
    }
    if task.policy:
        frozen["policy"] = task.policy
    if task.conversation is not None:
        frozen["conversation"] = task.conversation.to_json()
        frozen["counterparts"] = dict(task.counterparts)
        frozen["scripts"] = {
            seat: [dict(step) for step in steps] for seat, steps in task.scripts.items()
        }
    return frozen


def _seat_to_json(seat: SeatSpec) -> JsonObject:
    limits: JsonObject = {kind.value: seat.budget[kind] for kind in BudgetKind}
    value: JsonObject = {"name": seat.name, "instruction": seat.instruction, "budget": limits}
    if seat.tools is not None:
        value["tools"] = list(seat.tools)
    if not seat.further_turns:
        return value
    turns: list[Json] = [
        {"instruction": turn.instruction, "tools": list(turn.tools)} for turn in seat.further_turns
    ]
    return {**value, "further_turns": turns}


def _case_from_json(value: Mapping[str, Any]) -> Case:
    gold = value["gold"]
    task = Task(
        task_id=value["task_id"],
        world=value["world"],
        harness_mode=value["harness_mode"],
        initial_state=value["initial_state"],
        fault_plan=tuple(
            FaultRule(index, rule["family"], rule["trigger"], rule["severity"], rule["payload"])
            for index, rule in enumerate(value["fault_plan"])
        ),
        seed=int(value["seed"]),
        seats=tuple(
            SeatSpec(
                name=seat["name"],
                instruction=seat["instruction"],
                budget=Budget(**seat["budget"]),
                further_turns=tuple(
                    Turn(turn["instruction"], tuple(turn["tools"]))
                    for turn in seat.get("further_turns", ())
                ),
                tools=tuple(seat["tools"]) if "tools" in seat else None,
            )
            for seat in value["seats"]
        ),
        tags=value["tags"],
        conversation=_conversation(value.get("conversation")),
        counterparts=value.get("counterparts", {}),
        scripts={seat: tuple(steps) for seat, steps in value.get("scripts", {}).items()},
        policy=value.get("policy", {}),
    )
    oracle = None if gold["oracle"] is None else tuple(gold["oracle"])
    criteria, procedure = tuple(gold["criteria"]), gold.get("procedure")
    return Case(task, Gold(gold["scorer"], criteria, gold["solvable"], oracle, procedure))


def _conversation(value: Mapping[str, Any] | None) -> ConversationSpec | None:
    return None if value is None else ConversationSpec(value["rule"], value["settings"])
