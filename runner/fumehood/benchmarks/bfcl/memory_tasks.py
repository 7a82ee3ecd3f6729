"""Loads BFCL's memory categories: conversations with facts to remember, then a question.

BFCL plays the conversations of a scenario once, each in a new context, and asks every question in a
context that contains only the memory's content. ``conversation_cases`` and ``question_cases`` do
the same: the questions use the memory that an agent wrote in a run of the conversations.
``conversation_and_question_cases`` puts both into one episode, where the agent's own context may
also contain the facts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from fumehood.benchmarks.bfcl.package import Entry, join_messages, read_chats, read_entries
from fumehood.benchmarks.bfcl.world_memory import EMPTY, open_memory
from fumehood.benchmarks.shared.reading import Place, Problem, Unreadable, read_records
from fumehood.core.conversation import Turn
from fumehood.core.episode_spec import SeatSpec
from fumehood.core.errors import InputError, SpecError
from fumehood.core.gold import Gold
from fumehood.core.json_values import JsonObject
from fumehood.core.ledger import Budget
from fumehood.core.task import Case, Task

SCENARIOS = ("student", "customer", "finance", "healthcare", "notetaker")
"""In the order of ``bfcl_eval.constants.category_mapping``."""
CALLS_PER_TURN = 200
"""Budget of calls, multiplied by the number of turns. BFCL limits only the steps of a turn."""
NEW_CONVERSATION = (
    "[A new conversation begins. Only your memory contains information from earlier "
    "conversations.]\n\n"
)
"""This project's text. BFCL starts a new context at this point."""
Memory = JsonObject
"""A BFCL class → the content of the memory."""
_SILENT: JsonObject = {"submit": ""}


def conversation_and_question_cases(category: str) -> Iterator[Case]:
    """Yield one task per question, with the conversations before it."""
    empty = _empty_memory(category)
    conversations = {name: _conversation_turns(category, name) for name in SCENARIOS}
    for entry in read_entries("memory"):
        turns = (
            *conversations[entry.value["scenario"]],
            NEW_CONVERSATION + question_text(entry),
        )
        yield _question_case(entry, category, empty, turns)


def question_cases(category: str, memories: Mapping[str, Memory]) -> Iterator[Case]:
    """Yield one task of one turn per question.

    Args:
        category: Such as ``memory_kv``.
        memories: Scenario → content of the memory.
    """
    for entry in read_entries("memory"):
        scenario = entry.value["scenario"]
        memory = memories[scenario]
        turn = f"{_system_text(category, scenario, memory)}\n\n{question_text(entry)}"
        yield _question_case(entry, category, memory, (turn,))


def conversation_cases(category: str) -> Iterator[Case]:
    """Yield one ungraded task per scenario, with its conversations and no question."""
    for scenario in SCENARIOS:
        turns = _conversation_turns(category, scenario)
        moves = (_write_move(category, "nothing"), *[_SILENT] * len(turns))
        gold = Gold("bfcl", ({"op": "bfcl_chats"},), oracle=moves)
        yield Case(_task(scenario, category, _empty_memory(category), turns), gold)


def read_memories(folder: Path, category: str) -> dict[str, Memory]:
    """Return the memories that an agent wrote, by scenario.

    Args:
        folder: Contains, for each scenario, BFCL's own snapshot ``SCENARIO_final.json`` or the
            episode ``SCENARIO.json`` that ``fumehood show --json`` printed.
        category: Such as ``memory_kv``.

    Raises:
        InputError: A scenario's file is missing or invalid.
    """
    class_name = _class_name(category)
    return {name: {class_name: _read_memory(folder, class_name, name)} for name in SCENARIOS}


def _read_memory(folder: Path, class_name: str, scenario: str) -> JsonObject:
    names = (f"{scenario}_final.json", f"{scenario}.json")
    path = next((folder / name for name in names if (folder / name).is_file()), None)
    if path is None:
        raise InputError(f"{folder}: contains neither {names[0]} nor {names[1]}")
    content = next((record.value for record in read_records(path)), None)
    if isinstance(content, dict) and isinstance(content.get("events"), list):
        content = _final_state(content["events"]).get(class_name)
    try:
        open_memory(class_name, content)
    except SpecError as error:
        raise Unreadable(Place(path), Problem.INVALID_RECORD, str(error)) from None
    assert isinstance(content, dict)
    return {name: content[name] for name in EMPTY[class_name]}


def _final_state(events: list[Any]) -> JsonObject:
    closed = [
        event for event in events if isinstance(event, dict) and event.get("kind") == "closed"
    ]
    state = closed[-1].get("final_state") if closed else None
    return state if isinstance(state, dict) else {}


def _question_case(entry: Entry, category: str, memory: Memory, turns: tuple[str, ...]) -> Case:
    name = entry.value["id"].replace("memory", category, 1)
    answer = str(entry.answer[0])
    moves: tuple[JsonObject, ...] = (
        _write_move(category, answer),
        *[_SILENT] * (len(turns) - 1),
        _read_move(category),
        {"submit": answer},
    )
    criterion: JsonObject = {"op": "bfcl_memory", "ground_truth": entry.answer}
    gold = Gold("bfcl", (criterion,), solvable=True, oracle=moves)
    return Case(_task(name, category, memory, turns), gold)


def _task(name: str, category: str, memory: Memory, turns: tuple[str, ...]) -> Task:
    first, *later = turns
    seat = SeatSpec(
        instruction=first,
        budget=Budget(steps=CALLS_PER_TURN * len(turns)),
        further_turns=tuple(map(Turn, later)),
    )
    return Task(
        task_id=name,
        world="bfcl_memory",
        harness_mode="native",
        initial_state={"memory": memory},
        seed=1,
        seats=(seat,),
        tags={"category": category, "turns": len(turns)},
    )


def _class_name(category: str) -> str:
    """Return the BFCL class of a category's memory, such as ``MemoryAPI_kv``."""
    return category.replace("memory_", "MemoryAPI_")


def _empty_memory(category: str) -> Memory:
    return {_class_name(category): dict(EMPTY[_class_name(category)])}


def _conversation_turns(category: str, scenario: str) -> tuple[str, ...]:
    """Return the user's messages in all conversations of a scenario, in order."""
    turns: list[str] = []
    for number, chat in enumerate(read_chats(scenario)):
        first, *later = map(join_messages, chat["question"])
        prefix = (
            NEW_CONVERSATION
            if number
            else f"{_system_text(category, scenario, _empty_memory(category))}\n\n"
        )
        turns += [prefix + first, *later]
    return tuple(turns)


def _system_text(category: str, scenario: str, memory: Memory) -> str:
    """Return BFCL's text about the agent's role, with the visible part of the memory."""
    prompts = _prompts()
    ((class_name, content),) = memory.items()
    visible = open_memory(class_name, content)._dump_core_memory_to_context()
    kind = "UNIFIED" if category == "memory_rec_sum" else "CORE_ARCHIVAL"
    template: str = getattr(prompts, f"MEMORY_BACKEND_INSTRUCTION_{kind}")
    role = prompts.MEMORY_AGENT_SETTINGS[scenario]
    return template.format(scenario_setting=role, memory_content=visible).strip()


def question_text(entry: Entry) -> str:
    """Return the question, after the package's instruction about the form of answers."""
    question = "\n\n".join(map(join_messages, entry.value["question"]))
    return f"{_prompts().ADDITIONAL_SYSTEM_PROMPT_FOR_AGENTIC_RESPONSE_FORMAT}\n{question}"


def _prompts() -> Any:
    return import_module("bfcl_eval.constants.default_prompts")


def _write_move(category: str, text: str) -> JsonObject:
    if category == "memory_kv":
        return {"tool_name": "archival_memory_add", "args": {"key": "answer", "value": text}}
    if category == "memory_vector":
        return {"tool_name": "archival_memory_add", "args": {"text": text}}
    return {"tool_name": "memory_append", "args": {"text": text}}


def _read_move(category: str) -> JsonObject:
    if category == "memory_kv":
        return {"tool_name": "archival_memory_retrieve", "args": {"key": "answer"}}
    if category == "memory_vector":
        return {"tool_name": "archival_memory_retrieve", "args": {"query": "answer"}}
    return {"tool_name": "memory_retrieve", "args": {}}
