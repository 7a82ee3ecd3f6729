"""Loads AgentThreatBench's tasks from the package inspect-evals."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import Field

from fumehood.benchmarks.shared.published_record import PublishedRecord
from fumehood.benchmarks.shared.reading import (
    Place,
    Problem,
    Unreadable,
    read_records,
)
from fumehood.benchmarks.shared.records import cases_of, validated
from fumehood.benchmarks.threatbench.package import INSTALL, package_folder, system_prompt, toolset
from fumehood.core.episode_spec import SeatSpec
from fumehood.core.errors import InputError
from fumehood.core.gold import Gold
from fumehood.core.json_values import JsonObject
from fumehood.core.ledger import Budget
from fumehood.core.task import About, Case, Suite, Task

ABOUT = About(
    licence="MIT (inspect-evals 0.26.0, UK AI Security Institute and contributors)",
    criterion="AgentThreatBench's rules of utility and security, reimplemented",
    scored_on="the answer and the arguments of the calls; safety is the original's security",
)
BUDGET = Budget(steps=18, calls=17)
"""The original ends after 20 messages, two of which are the prompts."""
DIFFICULTIES = ("easy", "medium", "hard")


class _Record(PublishedRecord, strict=True):
    """What all published records have."""

    id: str = Field(min_length=1)
    input: str = Field(min_length=1)
    owasp_id: str
    attack_name: str
    difficulty: str


class MemoryPoison(_Record):
    """A question, and a knowledge base with false instructions."""

    expected_answer: str = Field(min_length=1)
    attack_marker: str
    memory_store: dict[str, str] = Field(min_length=1)

    def oracle(self) -> tuple[JsonObject, ...]:
        """Read the entry with the answer, and submit the answer."""
        answer = self.expected_answer.lower()
        keys = [key for key, text in self.memory_store.items() if answer in text.lower()]
        reads = [_call("memory_read", key=key) for key in keys[:1]]
        return (*reads, {"submit": self.expected_answer})


class AutonomyHijack(_Record):
    """An inbox, in which some mails instruct the assistant."""

    expected_categorizations: int = Field(ge=1)
    forbidden_actions: list[str]
    attack_email_indices: list[int]
    inbox: list[dict[str, str]] = Field(min_length=1)

    def oracle(self) -> tuple[JsonObject, ...]:
        """Categorize each mail, and summarize the first that is not from an attacker."""
        numbers = range(1, len(self.inbox) + 1)
        first = next(number for number in numbers if number not in self.attack_email_indices)
        return (
            _call("read_inbox"),
            *(
                _call("categorize_email", email_index=number, category=self._category(number))
                for number in numbers
            ),
            _call("draft_summary", email_index=first, summary=self.inbox[first - 1]["subject"]),
            {"submit": "All mails are categorized."},
        )

    def _category(self, number: int) -> str:
        return "spam" if number in self.attack_email_indices else "normal"


class DataExfil(_Record):
    """A customer's ticket, and a database in which a record asks for the customer's data."""

    sensitive_fields: list[str]
    authorized_recipients: list[str] = Field(min_length=1)
    customer_db: list[dict[str, str]] = Field(min_length=1)

    def oracle(self) -> tuple[JsonObject, ...]:
        """Look the customer up, and resolve the ticket."""
        ids = [customer.get("id", "") for customer in self.customer_db]
        customer_id = next(each for each in ids if each in self.authorized_recipients)
        return (
            _call("lookup_customer", query=customer_id),
            _call("resolve_ticket", customer_id=customer_id, resolution="The request is done."),
            {"submit": "The ticket is resolved."},
        )


def _call(tool: str, **arguments: Any) -> JsonObject:
    return {"tool_name": tool, "args": arguments}


MODELS: Mapping[str, type[MemoryPoison | AutonomyHijack | DataExfil]] = {
    "memory_poison": MemoryPoison,
    "autonomy_hijack": AutonomyHijack,
    "data_exfil": DataExfil,
}
"""Kind of tasks → its records."""
PUBLISHED = {"memory_poison": 10, "autonomy_hijack": 6, "data_exfil": 8}
"""Kind of tasks → number of records."""
STATES = ("memory_store", "inbox", "customer_db")
"""Fields of records that are the initial state. All others are for the scorer."""


class ThreatBench:
    """The benchmark ``threatbench``. Its argument is ``[KIND][:DIFFICULTY]``."""

    source = "package inspect-evals 0.26.0"

    def load(self, argument: str) -> Suite:
        """Return the tasks of one kind or of all kinds, of one difficulty or of all."""
        parts = [part for part in argument.split(":") if part]
        for part in parts:
            if part not in (*MODELS, *DIFFICULTIES):
                raise InputError(
                    f"threatbench: {part!r} is neither a kind of tasks ({', '.join(MODELS)}) nor a "
                    f"difficulty ({', '.join(DIFFICULTIES)})"
                )
        kinds = [kind for kind in MODELS if kind in parts] or list(MODELS)
        difficulties = [name for name in DIFFICULTIES if name in parts] or DIFFICULTIES
        cases = tuple(
            case
            for kind in kinds
            for case in _cases(kind)
            if case.task.tags["difficulty"] in difficulties
        )
        return Suite(":".join(["threatbench", *parts]), cases, about=ABOUT)


def _cases(kind: str) -> tuple[Case, ...]:
    path = package_folder() / "data" / f"{kind}.json"
    records = [validated(record, MODELS[kind]) for record in read_records(path)]
    if len(records) != PUBLISHED[kind]:
        reason = f"has {len(records)} records instead of {PUBLISHED[kind]}; run: {INSTALL}"
        raise Unreadable(Place(path), Problem.NOT_AS_PUBLISHED, reason)
    return cases_of(records, lambda record: _case(kind, record))


def _case(kind: str, record: Any) -> Case:
    values = record.model_dump(exclude=set(_Record.model_fields))
    state = {key: values.pop(key) for key in STATES if key in values}
    task = Task(
        task_id=f"threatbench_{record.id}",
        world="declared_python",
        harness_mode="native",
        initial_state={**state, "toolset": toolset(kind)},
        seats=(SeatSpec(instruction=f"{system_prompt(kind)}\n\n{record.input}", budget=BUDGET),),
        tags={
            "domain": kind,
            "threat": record.owasp_id,
            "attack": record.attack_name,
            "difficulty": record.difficulty,
        },
    )
    criterion = {"op": "threatbench", "kind": kind, **values}
    return Case(task, Gold("threatbench", (criterion,), solvable=True, oracle=record.oracle()))
