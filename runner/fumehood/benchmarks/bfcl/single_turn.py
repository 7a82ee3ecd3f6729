"""Entries of the single-turn categories as tasks: one message, and calls that are compared, not made."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fumehood.benchmarks.bfcl.entries import Entry, words
from fumehood.core.episode_spec import SeatSpec
from fumehood.core.gold import Gold
from fumehood.core.json_values import Json, JsonObject
from fumehood.core.ledger import Budget
from fumehood.core.task import Case, Task

BUDGET = Budget(steps=40)
"""BFCL takes the calls of one answer of the model; the longest gold has 24."""
HINT = " Note that the provided function is in Python 3 syntax."
"""Which BFCL adds to what every function is told to do."""
RELEVANCE = {"irrelevance": False, "live_irrelevance": False, "live_relevance": True}
"""Category → whether something is to be called; what, is not judged."""
UNSOLVABLE = frozenset(
    {
        "live_simple_106-63-0",
        "live_simple_112-68-0",
        "live_multiple_862-181-3",
        "live_multiple_964-207-0",
    }
)
"""Their gold names a parameter that the function lacks, or has only an empty value for a required one."""


def case_of(entry: Entry, category: str) -> Case:
    """Return an entry as a task with its gold."""
    value = entry.value
    task = Task(
        task_id=value["id"],
        world="bfcl_calls",
        profile="native",
        initial_state={"functions": [_hinted(each) for each in value["function"]]},
        fault_plan=(),
        seed=1,
        seats=(SeatSpec(instruction="\n\n".join(map(words, value["question"])), budget=BUDGET),),
        tags={"category": category},
    )
    solvable = value["id"] not in UNSOLVABLE
    return Case(
        task, Gold("bfcl", (_criterion(entry, category),), solvable, _oracle(entry, category))
    )


def _hinted(function: dict[str, Any]) -> JsonObject:
    return {**function, "description": f"{function['description']}{HINT}"}


def _criterion(entry: Entry, category: str) -> JsonObject:
    if category in RELEVANCE:
        return {"op": "bfcl_relevance", "calls": RELEVANCE[category]}
    return {
        "op": "bfcl_single_turn",
        "ground_truth": entry.answer,
        "category": category,
        "language": "PYTHON",
    }


def _oracle(entry: Entry, category: str) -> tuple[JsonObject, ...]:
    done: JsonObject = {"submit": ""}
    if category not in RELEVANCE:
        required = {
            each["name"]: each["parameters"].get("required", []) for each in entry.value["function"]
        }
        return (*(_move(call, required) for call in entry.answer), done)
    if not RELEVANCE[category]:
        return (done,)
    return ({"tool_name": entry.value["function"][0]["name"], "args": {}}, done)


def _move(
    call: dict[str, dict[str, list[Any]]], required: Mapping[str, Sequence[str]]
) -> JsonObject:
    """Return the call of a gold answer: of each argument the first value that is allowed.

    An allowed value that is empty says that the argument may be left out.
    """
    ((name, arguments),) = call.items()
    args: dict[str, Json] = {}
    for key, allowed in arguments.items():
        if "" not in allowed:
            args[key] = first_allowed(allowed)
        elif key in required.get(name, ()):
            args[key] = first_allowed([value for value in allowed if value != ""] or allowed)
    return {"tool_name": name, "args": args}


def first_allowed(allowed: Any) -> Any:
    """Return the first value that is allowed; an object holds allowed values in turn."""
    value = allowed[0] if isinstance(allowed, list) and allowed else allowed
    if isinstance(value, dict):
        return {key: first_allowed(each) for key, each in value.items() if each != [""]}
    if isinstance(value, list):
        return [first_allowed([each]) if isinstance(each, dict) else each for each in value]
    return value
