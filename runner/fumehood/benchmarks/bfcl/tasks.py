"""Loads BFCL's categories as suites."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from fumehood.benchmarks.bfcl import memory_tasks as memory
from fumehood.benchmarks.bfcl.memory_tasks import memories
from fumehood.benchmarks.bfcl.package import Entry, class_documents, entries, words
from fumehood.core.conversation import Turn
from fumehood.core.episode_spec import SeatSpec
from fumehood.core.errors import InputError
from fumehood.core.gold import Gold
from fumehood.core.json_values import Json, JsonObject
from fumehood.core.ledger import Budget
from fumehood.core.task import About, Case, Suite, Task


def move_of(call: str, parameters: Mapping[str, Sequence[str]]) -> Mapping[str, Json]:
    """Return a gold call as a move.

    Args:
        call: such as ``cd(folder='document')``; arguments without a name are bound in the order in which the
            function's document has them.
        parameters: names of the parameters of each function, in their order.

    Raises:
        ValueError: it is no call of a function with literal arguments.
    """
    tree = ast.parse(call.strip(), mode="eval").body
    if not isinstance(tree, ast.Call) or not isinstance(tree.func, ast.Name):
        raise ValueError(f"not a call: {call}")
    name = tree.func.id
    bound = dict(zip(parameters[name], map(_literal, tree.args), strict=False))
    named = {str(each.arg): _literal(each.value) for each in tree.keywords}
    return {"tool_name": name, "args": {**bound, **named}}


def _literal(node: ast.expr) -> Any:
    return _without_tuples(ast.literal_eval(node))


def _without_tuples(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return [_without_tuples(each) for each in value]
    return (
        {key: _without_tuples(each) for key, each in value.items()}
        if isinstance(value, dict)
        else value
    )


MORE_FUNCTIONS = "I have updated some more functions you can choose from. What about now?"
"""What the user says in a turn that has no words but tools.
Source: ``bfcl_eval.constants.default_prompts``."""


def multi_turn_case(entry: Entry, category: str) -> Case:
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
                budget=Budget(steps=memory.CALLS_A_TURN * len(turns)),
                further_turns=turns[1:],
            ),
        ),
        tags={"category": category, "turns": len(turns)},
    )
    criterion: dict[str, Json] = {"op": "bfcl_multi_turn", "ground_truth": entry.answer}
    return Case(task, Gold("bfcl", (criterion,), solvable=True, oracle=_multi_turn_oracle(entry)))


def _turns(value: dict[str, Any]) -> tuple[Turn, ...]:
    later = value.get("missed_function", {})
    return tuple(
        Turn(words(messages) or MORE_FUNCTIONS, tuple(later.get(str(index), ())))
        for index, messages in enumerate(value["question"])
    )


def _multi_turn_oracle(entry: Entry) -> tuple[dict[str, Json], ...]:
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


def single_turn_case(entry: Entry, category: str) -> Case:
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
        task,
        Gold(
            "bfcl", (_criterion(entry, category),), solvable, _single_turn_oracle(entry, category)
        ),
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


def _single_turn_oracle(entry: Entry, category: str) -> tuple[JsonObject, ...]:
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


LICENCE = "Apache-2.0 (bfcl-eval 2026.3.23, Gorilla, UC Berkeley)"
MULTI_TURN = About(
    licence=LICENCE,
    criterion="BFCL's own multi_turn_checker, unmodified, in a process without privileges",
    judged="after every turn, all simulators' public attributes and what the calls answered; no words",
)
SINGLE_TURN = About(
    licence=LICENCE,
    criterion="BFCL's own ast_checker, unmodified; for (ir)relevance, whether anything was called",
    judged="names and arguments of the calls; nothing is carried out",
)
MEMORY = About(
    licence=LICENCE,
    criterion="BFCL's own agentic_checker, unmodified, in a process without privileges",
    judged="whether the last answer has one of the right answers in it; not what is in the memory",
)

CATEGORIES: dict[str, Callable[[Entry, str], Case]] = {
    "multi_turn_base": multi_turn_case,
    "multi_turn_miss_func": multi_turn_case,
    "multi_turn_miss_param": multi_turn_case,
    "multi_turn_long_context": multi_turn_case,
    "simple_python": single_turn_case,
    "multiple": single_turn_case,
    "parallel": single_turn_case,
    "parallel_multiple": single_turn_case,
    "live_simple": single_turn_case,
    "live_multiple": single_turn_case,
    "live_parallel": single_turn_case,
    "live_parallel_multiple": single_turn_case,
    "irrelevance": single_turn_case,
    "live_irrelevance": single_turn_case,
    "live_relevance": single_turn_case,
}
MEMORIES = ("memory_kv", "memory_rec_sum")
CHATS = "chats"
"""Of a memory: the conversations alone, without a question."""
LEFT_OUT = {
    "memory_vector": "it needs sentence-transformers, faiss and a model to download (gigabytes); "
    "take bfcl:memory_kv or bfcl:memory_rec_sum",
    "web_search": "it needs the live web through a paid search service, so no score could be had twice; "
    "for questions over documents that stay the same see docs/snapshots.md",
}
"""Category → why it is not here."""


class Bfcl:
    """Argument: a category; of a memory also ``CATEGORY:chats`` or ``CATEGORY:FOLDER``."""

    def load(self, argument: str) -> Suite:
        """Return the entries of a category."""
        category, _, more = argument.partition(":")
        for left_out, reason in LEFT_OUT.items():
            if category.startswith(left_out):
                raise InputError(f"bfcl:{argument} is left out: {reason}")
        if category in MEMORIES:
            return Suite(f"bfcl:{argument}", tuple(_of_memory(category, more)), about=MEMORY)
        if argument not in CATEGORIES:
            known = ", ".join((*CATEGORIES, *MEMORIES))
            raise InputError(f"bfcl:CATEGORY, where CATEGORY is one of {known}; got {argument!r}")
        case_of = CATEGORIES[argument]
        cases = tuple(case_of(entry, argument) for entry in entries(argument))
        about = MULTI_TURN if case_of is multi_turn_case else SINGLE_TURN
        return Suite(f"bfcl:{argument}", cases, about=about)

    def recognises(self, record: JsonObject) -> bool:
        """Recognise nothing: the entries are read from BFCL's package."""
        return False


def _of_memory(category: str, more: str) -> Iterable[Case]:
    if not more:
        return memory.whole(category)
    if more == CHATS:
        return memory.conversations(category)
    remembered = memories(Path(more), memory.class_of(category), memory.SCENARIOS)
    return memory.after(category, remembered)
