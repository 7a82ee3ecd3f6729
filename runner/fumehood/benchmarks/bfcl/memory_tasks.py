"""Loads BFCL's memory categories."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from fumehood.benchmarks.bfcl.package import Entry, chats, entries, words
from fumehood.benchmarks.bfcl.world_memory import EMPTY, opened_memory
from fumehood.benchmarks.reading import Place, Problem, Unreadable, read_records
from fumehood.core.conversation import Turn
from fumehood.core.episode_spec import SeatSpec
from fumehood.core.errors import InputError, SpecError
from fumehood.core.gold import Gold
from fumehood.core.json_values import JsonObject
from fumehood.core.ledger import Budget
from fumehood.core.task import Case, Task

SCENARIOS = ("student", "customer", "finance", "healthcare", "notetaker")
"""In the order of ``bfcl_eval.constants.category_mapping``."""
CALLS_A_TURN = 40
"""A bound on all turns together. BFCL bounds answers of the model, 20 a turn, each with any number of calls.
Its gold has up to 34 calls in a turn."""
NEXT = "[A new conversation begins. All that is left of those before is your memory.]\n\n"
"""Ours: BFCL begins a new context there."""
Memory = JsonObject
"""Class of BFCL → what it remembers."""
_HEARD: JsonObject = {"submit": ""}


def class_of(category: str) -> str:
    """Return the class of a category's memory, such as ``MemoryAPI_kv``."""
    return category.replace("memory_", "MemoryAPI_")


def whole(category: str) -> Iterator[Case]:
    """Yield a task for every question, with the conversations before it."""
    said = {name: _conversations(category, name) for name in SCENARIOS}
    for entry in entries("memory"):
        turns = (*said[entry.value["scenario"]], NEXT + _question(entry))
        yield _asked(entry, category, _nothing(category), turns)


def after(category: str, memories: Mapping[str, Memory]) -> Iterator[Case]:
    """Yield a task for every question, of one turn.

    Args:
        category: such as ``memory_kv``.
        memories: by scenario, what is remembered when the question is asked.
    """
    for entry in entries("memory"):
        scenario = entry.value["scenario"]
        memory = memories[scenario]
        asked = f"{_setting(category, scenario, memory)}\n\n{_question(entry)}"
        yield _asked(entry, category, memory, (asked,))


def conversations(category: str) -> Iterator[Case]:
    """Yield a task for every scenario, in which nothing is asked and nothing is judged."""
    for scenario in SCENARIOS:
        turns = _conversations(category, scenario)
        moves = (_remembering(category, "nothing"), *[_HEARD] * len(turns))
        gold = Gold("bfcl", ({"op": "bfcl_chats"},), oracle=moves)
        yield Case(_task(scenario, category, _nothing(category), turns), gold)


def _asked(entry: Entry, category: str, memory: Memory, turns: tuple[str, ...]) -> Case:
    name = entry.value["id"].replace("memory", category, 1)
    answer = str(entry.answer[0])
    heard = [_HEARD] * (len(turns) - 1)
    moves = (
        _remembering(category, answer),
        *heard,
        _recalling(category),
        JsonObject({"submit": answer}),
    )
    gold = Gold(
        "bfcl", ({"op": "bfcl_memory", "ground_truth": entry.answer},), solvable=True, oracle=moves
    )
    return Case(_task(name, category, memory, turns), gold)


def _task(name: str, category: str, memory: Memory, turns: tuple[str, ...]) -> Task:
    first, *later = turns
    return Task(
        task_id=name,
        world="bfcl_memory",
        profile="native",
        initial_state={"memory": memory},
        fault_plan=(),
        seed=1,
        seats=(
            SeatSpec(
                instruction=first,
                budget=Budget(steps=CALLS_A_TURN * len(turns)),
                further_turns=tuple(map(Turn, later)),
            ),
        ),
        tags={"category": category, "turns": len(turns)},
    )


def _nothing(category: str) -> Memory:
    return {class_of(category): dict(EMPTY[class_of(category)])}


def _conversations(category: str, scenario: str) -> tuple[str, ...]:
    """Return what the user says in all conversations of a scenario, in order."""
    turns: list[str] = []
    for number, chat in enumerate(chats(scenario)):
        first, *later = map(words, chat["question"])
        begins = NEXT if number else f"{_setting(category, scenario, _nothing(category))}\n\n"
        turns += [begins + first, *later]
    return tuple(turns)


def _setting(category: str, scenario: str, memory: Memory) -> str:
    """Return BFCL's words about who the agent is, and what its memory shows of itself."""
    prompts = _prompts()
    ((class_name, content),) = memory.items()
    shown = opened_memory(class_name, content)._dump_core_memory_to_context()
    kind = "UNIFIED" if category == "memory_rec_sum" else "CORE_ARCHIVAL"
    template: str = getattr(prompts, f"MEMORY_BACKEND_INSTRUCTION_{kind}")
    who = prompts.MEMORY_AGENT_SETTINGS[scenario]
    return template.format(scenario_setting=who, memory_content=shown).strip()


def _question(entry: Entry) -> str:
    asked = "\n\n".join(map(words, entry.value["question"]))
    return f"{_prompts().ADDITIONAL_SYSTEM_PROMPT_FOR_AGENTIC_RESPONSE_FORMAT}\n{asked}"


def _prompts() -> Any:
    return import_module("bfcl_eval.constants.default_prompts")


def _remembering(category: str, text: str) -> JsonObject:
    if category == "memory_kv":
        return {"tool_name": "archival_memory_add", "args": {"key": "told", "value": text}}
    return {"tool_name": "memory_append", "args": {"text": text}}


def _recalling(category: str) -> JsonObject:
    if category == "memory_kv":
        return {"tool_name": "archival_memory_retrieve", "args": {"key": "told"}}
    return {"tool_name": "memory_retrieve", "args": {}}


def memories(folder: Path, class_name: str, scenarios: Iterable[str]) -> dict[str, JsonObject]:
    """Return what is remembered when the questions are asked, by scenario.

    Args:
        folder: holds for each scenario ``SCENARIO_final.json``, as BFCL leaves it in ``memory_snapshot``, or
            ``SCENARIO.json``, the episode of that conversation as ``fumehood show --json`` prints it.
        class_name: of BFCL.
        scenarios: their names.

    Raises:
        InputError: one is missing, or cannot be used.
    """
    return {name: {class_name: _read_memory(folder, class_name, name)} for name in scenarios}


def _read_memory(folder: Path, class_name: str, scenario: str) -> JsonObject:
    names = (f"{scenario}_final.json", f"{scenario}.json")
    path = next((folder / name for name in names if (folder / name).is_file()), None)
    if path is None:
        raise InputError(
            f"{folder} holds neither {names[0]} nor {names[1]}: no memory of that scenario"
        )
    value = next((record.value for record in read_records(path)), None)
    content = value
    if isinstance(value, dict) and isinstance(value.get("events"), list):
        content = _final_state(value["events"]).get(class_name)
    try:
        opened_memory(class_name, content)
    except SpecError as error:
        raise Unreadable(Place(path), Problem.INVALID_RECORD, str(error)) from None
    assert isinstance(content, dict)
    return {name: content[name] for name in EMPTY[class_name]}


def _final_state(events: list[Any]) -> JsonObject:
    closed = [each for each in events if isinstance(each, dict) and each.get("kind") == "closed"]
    state = closed[-1].get("final_state") if closed else None
    return state if isinstance(state, dict) else {}
