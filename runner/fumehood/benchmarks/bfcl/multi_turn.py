"""Entries of the multi-turn categories as tasks: the user's turns are a script, the world is BFCL's own."""

from __future__ import annotations

from typing import Any

from fumehood.benchmarks.bfcl.entries import Entry, words
from fumehood.benchmarks.bfcl.gold_calls import move_of
from fumehood.benchmarks.bfcl.tool_docs import class_documents
from fumehood.core.conversation import Turn
from fumehood.core.episode_spec import SeatSpec
from fumehood.core.gold import Gold
from fumehood.core.json_values import Json
from fumehood.core.ledger import Budget
from fumehood.core.task import Case, Task

MORE_FUNCTIONS = "I have updated some more functions you can choose from. What about now?"
"""What the user says in a turn that has no words but tools.
Source: ``bfcl_eval.constants.default_prompts``."""
CALLS_A_TURN = 40
"""A bound on all turns together. BFCL bounds answers of the model, 20 a turn, each with any number of calls.
Its gold has up to 34 calls in a turn."""


def case_of(entry: Entry, category: str) -> Case:
    """Return an entry as a task with its gold."""
    value = entry.value
    turns = _turns(value)
    task = Task(
        task_id=value["id"],
        world="bfcl",
        profile="native",
        initial_state={
            "initial_config": value["initial_config"],
            "involved_classes": value["involved_classes"],
            "long_context": "long_context" in category,
        },
        fault_plan=(),
        seed=1,
        seats=(
            SeatSpec(
                instruction=turns[0].instruction,
                budget=Budget(steps=CALLS_A_TURN * len(turns)),
                further_turns=turns[1:],
            ),
        ),
        tags={"category": category, "turns": len(turns)},
    )
    criterion: dict[str, Json] = {"op": "bfcl_multi_turn", "ground_truth": entry.answer}
    return Case(task, Gold("bfcl", (criterion,), solvable=True, oracle=_oracle(entry)))


def _turns(value: dict[str, Any]) -> tuple[Turn, ...]:
    later = value.get("missed_function", {})
    return tuple(
        Turn(words(messages) or MORE_FUNCTIONS, tuple(later.get(str(index), ())))
        for index, messages in enumerate(value["question"])
    )


def _oracle(entry: Entry) -> tuple[dict[str, Json], ...]:
    parameters = {
        document["name"]: tuple(document["parameters"]["properties"])
        for name in entry.value["involved_classes"]
        for document in class_documents(name)
    }
    moves: list[dict[str, Json]] = []
    for turn in entry.answer:
        moves += [dict(move_of(call, parameters)) for call in turn]
        moves.append({"submit": ""})
    return tuple(moves)
