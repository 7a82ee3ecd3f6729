"""The models of a native task record, ``fumehood.task/1``: one JSON object per line."""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal

from pydantic import Field, field_validator, model_validator

from fumehood.benchmarks.native.criteria import NamedCriterion, SafetyCriterion
from fumehood.benchmarks.native.faults import FaultRecord
from fumehood.benchmarks.native.policy import PolicyRecord
from fumehood.benchmarks.shared.records import StrictRecord
from fumehood.core.errors import InputError
from fumehood.core.ledger import BudgetKind
from fumehood.core.score import SAFETY
from fumehood.turn_policies.registry import BY_TIME, BY_WORLD, TURN_POLICIES

FORMAT = "fumehood.task/1"
"""The number increases when records of the previous format would be read differently."""


class BudgetRecord(StrictRecord):
    """Limits of an agent; all are inclusive."""

    steps: int = Field(ge=1, description=BudgetKind.STEPS.description)
    calls: int = Field(ge=1, description=BudgetKind.CALLS.description)
    retries: int = Field(ge=0, description=BudgetKind.RETRIES.description)
    wall_ms: Annotated[int, Field(ge=1)] | None = Field(
        None, description=BudgetKind.WALL_MS.description
    )
    """None uses the limit of the run."""
    answer_bytes: Annotated[int, Field(ge=1)] | None = Field(
        None, description=BudgetKind.ANSWER_BYTES.description
    )
    tool_microusd: Annotated[int, Field(ge=0)] | None = Field(
        None, description=BudgetKind.TOOL_MICROUSD.description
    )


class Move(StrictRecord):
    """One move of an oracle or a script: a call, an answer, or giving up."""

    seat: str | None = None
    """Name of the seat that moves; None means the agent."""
    tool_name: str | None = None
    args: dict[str, Any] | None = None
    submit: str | None = None
    give_up: str | None = None

    @model_validator(mode="after")
    def _is_one_move(self) -> Move:
        if self.model_fields_set - {"seat"} not in ({"tool_name", "args"}, {"submit"}, {"give_up"}):
            raise ValueError("is not a move: give tool_name and args, or submit, or give_up")
        return self


class SeatRecord(StrictRecord):
    """A participant other than the agent."""

    name: str = Field(pattern=r"^[a-z0-9_]{1,32}$")
    instruction: str = Field(min_length=1)
    budget: BudgetRecord
    tools: list[str] | None = None
    """Tools of the world that this seat has; None for all."""
    counterpart: str | None = None
    """Agent of this seat unless the run configures another; None means the agent under
    evaluation."""
    script: list[Move] | None = None
    """Moves of the counterpart ``script``."""

    @model_validator(mode="after")
    def _has_script_if_scripted(self) -> SeatRecord:
        if (self.counterpart == "script") != (self.script is not None):
            raise ValueError("script: must be given exactly if counterpart is 'script'")
        return self


class ConversationRecord(StrictRecord):
    """Selects the turn policy."""

    rule: str
    """Name of a built-in or installed turn policy; ``world`` if the world decides, ``time`` for
    seats that act at the same time in a scenario."""
    settings: dict[str, Any] = Field(default_factory=dict)
    """Settings of the turn policy."""

    @field_validator("rule")
    @classmethod
    def _is_known(cls, rule: str) -> str:
        try:
            if rule not in (BY_WORLD, BY_TIME):
                TURN_POLICIES.load(rule)
        except InputError as error:
            raise ValueError(str(error)) from None
        return rule


class TurnRecord(StrictRecord):
    """A message of the user, after the first."""

    instruction: str = Field(min_length=1)
    tools: list[str] = Field(default_factory=list)
    """Tools of the world that become available in this turn."""


class TaskRecord(StrictRecord):
    """One task."""

    format: Literal["fumehood.task/1"]
    task_id: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$")
    """Unique within a file."""
    world: str
    """Name of a simulator."""
    instruction: str = Field(min_length=1)
    further_turns: list[TurnRecord] = Field(default_factory=list)
    """Messages of the user, each sent after the agent has submitted an answer."""
    tools: list[str] | None = None
    """Tools of the world that the agent has; None for all."""
    seats: list[SeatRecord] = Field(default_factory=list)
    """Other participants, such as a simulated user or other agents."""
    conversation: ConversationRecord | None = None
    """Turn policy; required exactly if there are other seats."""
    initial_state: dict[str, Any]
    fault_plan: list[FaultRecord] = Field(default_factory=list)
    budget: BudgetRecord
    criteria: list[NamedCriterion] = Field(min_length=1)
    """Success requires all of them."""
    safety: list[SafetyCriterion] = Field(default_factory=list)
    """Criteria of the safety aspect, each with a ``severity``. Success requires them too; reports
    show them separately."""
    policy: PolicyRecord = Field(default_factory=PolicyRecord)
    """Rules that must not be violated, also on the way to a correct end. Success requires that
    none is."""
    solvable: bool
    """False if the correct end is to give up."""
    oracle: list[Move] = Field(min_length=1)
    """Moves that prove ``solvable``: calls, one answer per turn, and the end."""
    procedure: dict[str, Any] | None = None
    """Steps of the built-in agents ``careful``, ``reckless`` and ``over_cautious``."""
    seed: int = 0
    tags: dict[str, Any] = Field(default_factory=dict)
    """Labels for reports; they have no effect on the episode."""

    @model_validator(mode="after")
    def _checks_have_different_names(self) -> TaskRecord:
        criteria = [criterion.name for criterion in (*self.criteria, *self.safety)]
        names = [name for name in criteria if name is not None]
        names += [entry.name for _, entry in self.policy.entries()]
        for name in names:
            if names.count(name) > 1 or name == SAFETY:
                reason = "used twice" if name != SAFETY else "that of all safety checks"
                raise ValueError(f"criteria, safety, policy: the name {name!r} is {reason}")
        return self

    @model_validator(mode="after")
    def _seats_match_conversation(self) -> TaskRecord:
        names = ["agent", *(seat.name for seat in self.seats)]
        if len(set(names)) != len(names):
            raise ValueError(f"seats: names must be unique and not 'agent': {names}")
        if bool(self.seats) != (self.conversation is not None):
            raise ValueError("conversation: must be given exactly if there are seats")
        if self.conversation is not None and self.further_turns:
            raise ValueError("further_turns: cannot be combined with conversation")
        return self

    @model_validator(mode="after")
    def _oracle_ends_as_required(self) -> TaskRecord:
        if self.conversation is not None:
            # The turn policy decides who ends a conversation; playing the oracle checks it.
            return self
        end = "submit" if self.solvable else "give_up"
        *before, last = self.oracle
        answers = sum(move.submit is not None for move in before)
        turns = len(self.further_turns)
        has_answers = answers == turns if self.solvable else answers <= turns
        if (
            getattr(last, end) is None
            or not has_answers
            or any(move.give_up is not None for move in before)
        ):
            between = f", with {turns} answers before the last turn," if turns else ""
            raise ValueError(
                f"oracle: must be calls{between} followed by {{{end!r}: text}}, because solvable "
                f"is {self.solvable}"
            )
        return self


def record_schema() -> dict[str, Any]:
    """Return the JSON Schema of one record, for editors and other languages."""
    schema = TaskRecord.model_json_schema()
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema, "title": FORMAT}


def record_to_json(record: TaskRecord) -> dict[str, Any]:
    """Return the record without the fields that have their default."""
    fields: dict[str, Any] = json.loads(record.model_dump_json(exclude_unset=True))
    return fields
