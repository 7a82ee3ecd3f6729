"""Entries of the memory categories as tasks: conversations with something to remember, then a question.

BFCL plays a scenario's conversations once, each in a context of its own, and asks every question in a context
that holds nothing but the memory's contents. ``after`` does the same: its memory is what an agent wrote in a
run of ``conversations``. ``whole`` is all of it in one episode, where an agent may also know what was said.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Any

from fumehood.benchmarks.bfcl.entries import Entry, chats, entries, words
from fumehood.benchmarks.bfcl.memory_world import EMPTY, opened_memory
from fumehood.benchmarks.bfcl.multi_turn import CALLS_A_TURN
from fumehood.core.conversation import Turn
from fumehood.core.episode_spec import SeatSpec
from fumehood.core.gold import Gold
from fumehood.core.json_values import JsonObject
from fumehood.core.ledger import Budget
from fumehood.core.task import Case, Task

SCENARIOS = ("student", "customer", "finance", "healthcare", "notetaker")
"""In the order of ``bfcl_eval.constants.category_mapping``."""
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
