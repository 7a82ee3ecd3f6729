"""Loads AgentBench's questions about Freebase."""

from __future__ import annotations

import re
from pathlib import Path

from pydantic import Field

from fumehood.benchmarks.knowledge.graph import Endpoint, QueryFailed, ontology, select_relations
from fumehood.benchmarks.knowledge.scorer import OP
from fumehood.benchmarks.knowledge.world import PARAMETERS, ROUNDS
from fumehood.benchmarks.shared.checkout import checkout_folder
from fumehood.benchmarks.shared.published_record import PublishedRecord
from fumehood.benchmarks.shared.reading import (
    Place,
    Placed,
    Problem,
    Unreadable,
    read_records,
)
from fumehood.benchmarks.shared.records import cases_of, numbered
from fumehood.core.conversation import ConversationSpec
from fumehood.core.episode_spec import SeatSpec
from fumehood.core.errors import InfraError, InputError, SpecError
from fumehood.core.gold import Gold
from fumehood.core.json_values import Json, JsonObject
from fumehood.core.ledger import Budget
from fumehood.core.task import About, Case, Suite, Task

SPLITS = ("std", "dev", "kg_rl_all")
USAGE = f"knowledge-graph:CHECKOUT[:{' | :'.join(SPLITS)}]:ENDPOINT"
DATA = Path("data", "knowledgegraph")
# The answer takes the last round.
BUDGET = Budget(steps=ROUNDS - 1, calls=ROUNDS - 1)
INSTRUCTION = """\
Answer a question from a knowledge base with your tools. A variable is a set of entities: calls of \
get_neighbors, intersection, argmax, argmin and count make the variables #0, #1 and so on. Call \
get_relations before get_neighbors, and get_attributes before argmax and argmin. You have \
{rounds} rounds: each call is one, and the answer is one. When a variable is the answer, submit \
"Final Answer: #number", such as "Final Answer: #3".

Question: {question}
Entities: {entities}"""


class Answer(PublishedRecord):
    """An entity or a value."""

    answer_argument: str


class Record(PublishedRecord):
    """A question."""

    question: str = Field(min_length=1)
    qid: str = Field(min_length=1)
    source: str = ""
    entities: dict[str, str]
    """Name in the question → ID."""
    actions: list[str] | None = None
    """Gold calls, such as ``get_neighbors(#0,film.film.actor)``."""
    answer: list[Answer]


class KnowledgeGraph:
    """The benchmark ``knowledge-graph``."""

    source = "THUDM/AgentBench 578c5e9, your checkout; Freebase: your SPARQL endpoint"

    def load(self, argument: str) -> Suite:
        """Return the questions of a split, after a test query."""
        parts = re.fullmatch(rf"(.+?)(?::({'|'.join(SPLITS)}))?:(https?://.+)", argument)
        folder, split, url = parts.groups(SPLITS[0]) if parts else (argument, "", "")
        root = checkout_folder(folder, contains=str(DATA), usage=USAGE)
        if not url:
            raise InputError(f"{folder}: the address of a SPARQL endpoint is missing; use {USAGE}")
        ontology(str(root))
        path = root / DATA / f"{split}.json"
        named = numbered(read_records(path), Record, f"kg_{split}_")
        if not named:
            raise Unreadable(Place(path), Problem.NOT_FOUND, "contains no records")
        _check_endpoint(url, named)
        cases = cases_of(named, lambda item: _case(*item, str(root), url))
        about = About(
            licence="Apache-2.0 (THUDM/AgentBench): read from your checkout; graph: your endpoint",
            criterion="the set of answers is exactly the published one; the metric f1 as published",
            scored_on="the members of the variable that the agent submits",
        )
        return Suite(f"knowledge-graph:{split}", cases, about=about)


def _check_endpoint(url: str, records: list[Placed[tuple[str, Record]]]) -> None:
    """Check that the endpoint answers and knows an entity of the first record that has one."""
    first = next((each for each in records if each.value[1].entities), None)
    if first is None:
        return
    name, entity = next(iter(first.value[1].entities.items()))
    try:
        found = Endpoint(url).values(select_relations(entity))
    except (InfraError, QueryFailed, SpecError) as error:
        raise InputError(f"knowledge-graph: {url}: {error}") from None
    if not found:
        raise InputError(
            f"knowledge-graph: {url} knows no relation of {entity} ({name}), an entity of "
            f"{first.place}; load Freebase there, as AgentBench's page says"
        )


def _case(task_id: str, record: Record, folder: str, url: str) -> Case:
    entities: JsonObject = dict(record.entities)
    instruction = INSTRUCTION.format(
        rounds=ROUNDS, question=record.question, entities=", ".join(entities) or "none"
    )
    task = Task(
        task_id=task_id,
        world="knowledge_graph",
        harness_mode="native",
        initial_state={"folder": folder, "endpoint": url, "entities": entities},
        seats=(SeatSpec(instruction=instruction, budget=BUDGET),),
        tags={"domain": "knowledgegraph", "qid": record.qid, "source": record.source},
        conversation=ConversationSpec("world", {}),
    )
    answers: list[Json] = [each.answer_argument for each in record.answer]
    oracle = None if record.actions is None else tuple(_oracle(record.actions))
    return Case(task, Gold("knowledge_graph", ({"op": OP, "answers": answers},), oracle=oracle))


def _oracle(actions: list[str]) -> list[JsonObject]:
    """Return the gold calls and the answer, which is the last variable."""
    moves: list[JsonObject] = []
    variables = 0
    for action in actions:
        parts = re.fullmatch(r"(\w+)\((.*)\)", action)
        if parts is None or parts[1] not in PARAMETERS:
            raise InputError(f"actions: {action!r} is not a call of {', '.join(PARAMETERS)}")
        names, values = PARAMETERS[parts[1]], [value.strip() for value in parts[2].split(",")]
        if len(values) != len(names):
            raise InputError(f"actions: {action!r} must have the arguments {', '.join(names)}")
        arguments: JsonObject = dict(zip(names, values, strict=True))
        moves.append({"tool_name": parts[1], "args": arguments})
        variables += not parts[1].startswith("get_") or parts[1] == "get_neighbors"
    return [*moves, {"submit": f"Final Answer: #{variables - 1}"}]
