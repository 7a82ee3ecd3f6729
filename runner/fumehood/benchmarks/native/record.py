"""The project's own task record, ``fumehood.task/1``: one JSON object a line."""

from __future__ import annotations

import json
from typing import Any, Literal

from pydantic import Field, model_validator

from fumehood.benchmarks.native.criteria import Criterion
from fumehood.benchmarks.native.faults import FaultRecord
from fumehood.benchmarks.native.seats import BudgetRecord, ConversationRecord, Move, SeatRecord
from fumehood.benchmarks.native.strict import Strict

FORMAT = "fumehood.task/1"
"""Grows when a record of the old format would be read differently."""


class TurnRecord(Strict):
    """A message of the user, after the first."""

    instruction: str = Field(min_length=1)
    tools: list[str] = Field(default_factory=list)
    """Tools of the world that are there from this turn on and not before."""


class TaskRecord(Strict):
    """One task."""

    format: Literal["fumehood.task/1"]
    task_id: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$")
    """Unique within a file."""
    world: str
    """Name of a simulator."""
    instruction: str = Field(min_length=1)
    further_turns: list[TurnRecord] = Field(default_factory=list)
    """What the user says next, each time the agent has submitted an answer."""
    tools: list[str] | None = None
    """Tools of the world that the agent has; None for all."""
    seats: list[SeatRecord] = Field(default_factory=list)
    """Who else takes part: a simulated user, other agents."""
    conversation: ConversationRecord | None = None
    """How the seats talk; there exactly when there are seats beside the agent."""
    initial_state: dict[str, Any]
    fault_plan: list[FaultRecord] = Field(default_factory=list)
    budget: BudgetRecord
    criteria: list[Criterion] = Field(min_length=1)
    """All of them have to hold."""
    safety: list[Criterion] = Field(default_factory=list)
    """What must not happen, also on the way to a right end: they have to hold too, and are told apart."""
    solvable: bool
    """False where the right end is to give up."""
    oracle: list[Move] = Field(min_length=1)
    """Moves that prove it: calls, an answer a turn, and last how the work ends."""
    seed: int = 0
    tags: dict[str, Any] = Field(default_factory=dict)
    """Labels for tables; nothing acts on them."""

    @model_validator(mode="after")
    def _seats_talk(self) -> TaskRecord:
        names = ["agent", *(seat.name for seat in self.seats)]
        if len(set(names)) != len(names):
            raise ValueError(f"seats: need names of their own, other than 'agent': {names}")
        if bool(self.seats) != (self.conversation is not None):
            raise ValueError("conversation: goes with seats beside the agent, and only with them")
        if self.conversation is not None and self.further_turns:
            raise ValueError(
                "further_turns: are not of a conversation, where others say what is next"
            )
        return self

    @model_validator(mode="after")
    def _oracle_ends_as_it_must(self) -> TaskRecord:
        if self.conversation is not None:
            # Who has the last word is the turn_policy's to say; the oracle is proven by playing it.
            return self
        end = "submit" if self.solvable else "give_up"
        *before, last = self.oracle
        answers = sum(move.submit is not None for move in before)
        turns = len(self.further_turns)
        fits = answers == turns if self.solvable else answers <= turns
        if (
            getattr(last, end) is None
            or not fits
            or any(move.give_up is not None for move in before)
        ):
            between = f" (and an answer after each of {turns} turns before)" if turns else ""
            raise ValueError(
                f"oracle: has to be calls{between} and then {{{end!r}: text}}, as solvable is {self.solvable}"
            )
        return self


def record_schema() -> dict[str, Any]:
    """Return the JSON Schema of one record, for editors and other languages."""
    schema = TaskRecord.model_json_schema()
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema, "title": FORMAT}


def record_to_json(record: TaskRecord) -> dict[str, Any]:
    """Return the record with nothing in it that is merely a default."""
    made: dict[str, Any] = json.loads(record.model_dump_json(exclude_unset=True))
    return made
