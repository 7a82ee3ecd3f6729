"""Loads BFCL: converts the entries of each category to tasks with gold."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from fumehood.benchmarks.bfcl import memory_tasks as memory
from fumehood.benchmarks.bfcl.format_tasks import CATEGORY as FORMAT
from fumehood.benchmarks.bfcl.format_tasks import Call, format_cases
from fumehood.benchmarks.bfcl.package import (
    Entry,
    class_documents,
    join_messages,
    read_entries,
    tool_name,
)
from fumehood.benchmarks.bfcl.sentence_model import weights_digest
from fumehood.benchmarks.bfcl.source_values import (
    LANGUAGES,
    offered_functions,
    written_arguments,
)
from fumehood.benchmarks.bfcl.web_tasks import CATEGORIES as WEB_SEARCH
from fumehood.benchmarks.bfcl.web_tasks import web_cases
from fumehood.core.conversation import Turn
from fumehood.core.episode_spec import SeatSpec
from fumehood.core.errors import InfraError, InputError
from fumehood.core.gold import Gold
from fumehood.core.json_values import Json, JsonObject
from fumehood.core.ledger import Budget
from fumehood.core.task import About, Case, Suite, Task
from fumehood.third_party.process import checker

LICENCE = "Apache-2.0 (bfcl-eval 2026.3.23, Gorilla, UC Berkeley)"
MULTI_TURN_ABOUT = About(
    licence=LICENCE,
    criterion="BFCL's own multi_turn_checker, unmodified, in an unprivileged process",
    scored_on=(
        "all simulators' public attributes and the calls' results after every turn; "
        "not the messages"
    ),
)
SINGLE_TURN_ABOUT = About(
    licence=LICENCE,
    criterion=(
        "BFCL's own ast_checker, unmodified; for (ir)relevance, whether any function was called"
    ),
    scored_on="names and arguments of the calls; no function is executed",
)
MEMORY_ABOUT = About(
    licence=LICENCE,
    criterion="BFCL's own agentic_checker, unmodified, in an unprivileged process",
    scored_on="whether the last answer contains a right answer; not the content of the memory",
)
WEB_ABOUT = About(
    licence=LICENCE,
    criterion="BFCL's own agentic_checker, unmodified, in an unprivileged process",
    scored_on="whether the last answer contains a right answer; not the pages that were read",
)
VECTOR_CATEGORY = "memory_vector"
VECTOR_ABOUT = replace(
    MEMORY_ABOUT,
    criterion=(
        f"{MEMORY_ABOUT.criterion}; without model=FOLDER, the memory finds equal words only, and "
        "scores are not comparable with published ones"
    ),
)
MULTI_TURN = (
    "multi_turn_base",
    "multi_turn_miss_func",
    "multi_turn_miss_param",
    "multi_turn_long_context",
)
SINGLE_TURN = (
    "simple_python",
    *LANGUAGES,
    "multiple",
    "parallel",
    "parallel_multiple",
    "live_simple",
    "live_multiple",
    "live_parallel",
    "live_parallel_multiple",
    "irrelevance",
    "live_irrelevance",
    "live_relevance",
)
MEMORY = ("memory_kv", "memory_rec_sum", VECTOR_CATEGORY)
ALL = (*MULTI_TURN, *SINGLE_TURN, FORMAT, *MEMORY, *WEB_SEARCH)
CHATS = "chats"
"""Second part of the argument of a memory category: the conversations without a question."""
MORE_FUNCTIONS = "I have updated some more functions you can choose from. What about now?"
"""The user's message in a turn that only adds tools. Source:
``bfcl_eval.constants.default_prompts``."""
SINGLE_TURN_BUDGET = Budget(steps=40, model_calls=1)
"""BFCL scores the calls of the first model message; the longest gold has 24."""
HINT = " Note that the provided function is in Python 3 syntax."
"""BFCL appends this sentence to every function's description."""
RELEVANCE = {"irrelevance": False, "live_irrelevance": False, "live_relevance": True}
"""Category → whether a function must be called. Which function is not scored."""
UNSOLVABLE = frozenset(
    {
        "live_simple_106-63-0",
        "live_simple_112-68-0",
        "live_multiple_862-181-3",
        "live_multiple_964-207-0",
        "simple_java_36",
        "simple_java_64",
        "simple_java_65",
    }
)
"""Entries whose gold names an unknown parameter, allows only an empty value for a required one, or
has values that no source text becomes."""


class Bfcl:
    """The benchmark ``bfcl``.

    Its argument is a category; for a memory category also ``CATEGORY:chats`` or
    ``CATEGORY:FOLDER``, after ``memory_vector`` optionally ``:model=FOLDER``; for a category of web
    search also ``CATEGORY:SNAPSHOT``.
    """

    source = "package bfcl-eval 2026.3.23"

    def load(self, argument: str) -> Suite:
        """Return the entries of a category as a suite."""
        category, _, rest = argument.partition(":")
        if category in MEMORY:
            cases = tuple(_memory_cases(category, rest))
            about = VECTOR_ABOUT if category == VECTOR_CATEGORY else MEMORY_ABOUT
            return Suite(f"bfcl:{argument}", cases, about=about)
        if category in WEB_SEARCH:
            snapshot = Path(rest) if rest else None
            cases = tuple(web_cases(category, snapshot))
            return Suite(f"bfcl:{argument}", cases, snapshot, WEB_ABOUT)
        if argument == FORMAT:
            # BFCL appends its sentence twice in this category.
            cases = tuple(format_cases(partial(_functions, hints=2), _gold_calls))
            return Suite(f"bfcl:{argument}", cases, about=SINGLE_TURN_ABOUT)
        if argument in MULTI_TURN:
            case_of, about = _multi_turn_case, MULTI_TURN_ABOUT
        elif argument in SINGLE_TURN:
            case_of, about = _single_turn_case, SINGLE_TURN_ABOUT
        else:
            raise InputError(
                f"bfcl: the category must be one of {', '.join(ALL)}, not {argument!r}"
            )
        cases = tuple(case_of(entry, argument) for entry in read_entries(argument))
        return Suite(f"bfcl:{argument}", cases, about=about)


def _memory_cases(category: str, rest: str) -> Iterable[Case]:
    if category == VECTOR_CATEGORY:
        return _vector_cases(rest)
    return _cases_with_memory(category, rest)


def _vector_cases(rest: str) -> Iterator[Case]:
    added: JsonObject = {}
    if rest.startswith("model="):
        folder, _, rest = rest.removeprefix("model=").partition(":")
        path = Path(folder).absolute()
        model: JsonObject = {"folder": str(path), "sha256": weights_digest(path)}
        try:
            checker("bfcl_embeddings").ask({**model, "text": ""})
        except InfraError as error:
            raise InputError(f"{path}: must be a model that all users can read: {error}") from None
        added["embeddings"] = model
    for case in _cases_with_memory(VECTOR_CATEGORY, rest):
        state = {**case.task.initial_state, **added}
        yield replace(case, task=replace(case.task, world="bfcl_vector", initial_state=state))


def _cases_with_memory(category: str, rest: str) -> Iterable[Case]:
    if not rest:
        return memory.conversation_and_question_cases(category)
    if rest == CHATS:
        return memory.conversation_cases(category)
    return memory.question_cases(category, memory.read_memories(Path(rest), category))


def _multi_turn_case(entry: Entry, category: str) -> Case:
    value = entry.value
    turns = _turns(value)
    seat = SeatSpec(
        instruction=turns[0].instruction,
        budget=Budget(steps=memory.CALLS_PER_TURN * len(turns)),
        further_turns=turns[1:],
    )
    task = Task(
        task_id=value["id"],
        world="bfcl",
        harness_mode="native",
        initial_state={
            "initial_config": value["initial_config"],
            "involved_classes": value["involved_classes"],
            "long_context": "long_context" in category,
        },
        seed=1,
        seats=(seat,),
        tags={"category": category, "turns": len(turns)},
    )
    criterion: JsonObject = {"op": "bfcl_multi_turn", "ground_truth": entry.answer}
    return Case(task, Gold("bfcl", (criterion,), solvable=True, oracle=_multi_turn_oracle(entry)))


def _turns(value: dict[str, Any]) -> tuple[Turn, ...]:
    added = value.get("missed_function", {})
    return tuple(
        Turn(join_messages(messages) or MORE_FUNCTIONS, tuple(added.get(str(index), ())))
        for index, messages in enumerate(value["question"])
    )


def _multi_turn_oracle(entry: Entry) -> tuple[JsonObject, ...]:
    parameters = {
        document["name"]: tuple(document["parameters"]["properties"])
        for name in entry.value["involved_classes"]
        for document in class_documents(name)
    }
    moves: list[JsonObject] = []
    for turn in entry.answer:
        moves += [_move_of_python_call(call, parameters) for call in turn]
        moves.append({"submit": ""})
    return tuple(moves)


def _move_of_python_call(call: str, parameters: Mapping[str, Sequence[str]]) -> JsonObject:
    """Return a gold call, written in Python, as a move.

    Args:
        call: Such as ``cd(folder='document')``. Positional arguments are bound in document order.
        parameters: Parameter names of each function, in document order.

    Raises:
        ValueError: The text is not a call of a function with literal arguments.
    """
    tree = ast.parse(call.strip(), mode="eval").body
    if not isinstance(tree, ast.Call) or not isinstance(tree.func, ast.Name):
        raise ValueError(f"not a call: {call}")
    name = tree.func.id
    values = [_without_tuples(ast.literal_eval(node)) for node in tree.args]
    positional = dict(zip(parameters[name], values, strict=False))
    named = {
        str(keyword.arg): _without_tuples(ast.literal_eval(keyword.value))
        for keyword in tree.keywords
    }
    return {"tool_name": name, "args": {**positional, **named}}


def _without_tuples(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return [_without_tuples(item) for item in value]
    if isinstance(value, dict):
        return {key: _without_tuples(item) for key, item in value.items()}
    return value


def _functions(entry: Entry, hints: int = 1) -> list[Json]:
    return [
        {**function, "description": f"{function['description']}{HINT * hints}"}
        for function in entry.value["function"]
    ]


def _offered(entry: Entry, category: str) -> list[Any]:
    if category in LANGUAGES:
        return offered_functions(entry.value["function"], category)
    return _functions(entry)


def _single_turn_case(entry: Entry, category: str) -> Case:
    value = entry.value
    instruction = "\n\n".join(map(join_messages, value["question"]))
    task = Task(
        task_id=value["id"],
        world="bfcl_calls",
        harness_mode="native",
        initial_state={"functions": _offered(entry, category)},
        seed=1,
        seats=(SeatSpec(instruction=instruction, budget=SINGLE_TURN_BUDGET),),
        tags={"category": category},
    )
    criteria = (_single_turn_criterion(entry, category),)
    solvable = value["id"] not in UNSOLVABLE
    return Case(task, Gold("bfcl", criteria, solvable, _single_turn_oracle(entry, category)))


def _single_turn_criterion(entry: Entry, category: str) -> JsonObject:
    if category in RELEVANCE:
        return {"op": "bfcl_relevance", "calls": RELEVANCE[category]}
    criterion: JsonObject = {
        "op": "bfcl_single_turn",
        "ground_truth": entry.answer,
        "category": category,
        "language": LANGUAGES.get(category, "PYTHON"),
    }
    if category in LANGUAGES:
        # The checker needs the types of the parameters, which agents read in descriptions.
        criterion["functions"] = entry.value["function"]
    return criterion


def _single_turn_oracle(entry: Entry, category: str) -> tuple[JsonObject, ...]:
    submit: JsonObject = {"submit": ""}
    if category not in RELEVANCE:
        moves: list[JsonObject] = [
            {"tool_name": tool_name(name), "args": args}
            for name, args in _written_calls(entry, category)
        ]
        return (*moves, submit)
    if not RELEVANCE[category]:
        return (submit,)
    first = entry.value["function"][0]["name"]
    return ({"tool_name": tool_name(first), "args": {}}, submit)


def _written_calls(entry: Entry, category: str) -> list[Call]:
    calls = _gold_calls(entry)
    if category not in LANGUAGES:
        return calls
    properties = entry.value["function"][0]["parameters"]["properties"]
    return [(name, written_arguments(args, properties, category)) for name, args in calls]


def _gold_calls(entry: Entry) -> list[Call]:
    required = {
        function["name"]: function["parameters"].get("required", [])
        for function in entry.value["function"]
    }
    return [_gold_call(call, required) for call in entry.answer]


def _gold_call(
    call: dict[str, dict[str, list[Any]]], required: Mapping[str, Sequence[str]]
) -> Call:
    """Return a gold answer's name, and the first allowed value of each argument.

    An empty allowed value means that the argument may be omitted.
    """
    ((name, arguments),) = call.items()
    args: dict[str, Json] = {}
    for key, allowed in arguments.items():
        if "" not in allowed:
            args[key] = first_allowed(allowed)
        elif key in required.get(name, ()):
            args[key] = first_allowed([value for value in allowed if value != ""] or allowed)
    return name, args


def first_allowed(allowed: Any) -> Any:
    """Return the first allowed value; an object's members are lists of allowed values
    themselves."""
    value = allowed[0] if isinstance(allowed, list) and allowed else allowed
    if isinstance(value, dict):
        return {key: first_allowed(item) for key, item in value.items() if item != [""]}
    if isinstance(value, list):
        return [first_allowed([item]) if isinstance(item, dict) else item for item in value]
    return value
