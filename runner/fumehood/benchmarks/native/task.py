"""From a native record to a task and its gold."""

from __future__ import annotations

from pydantic import BaseModel

from fumehood.benchmarks.native.record import TaskRecord
from fumehood.benchmarks.native.seats import SeatRecord
from fumehood.core.conversation import ConversationSpec, Turn
from fumehood.core.episode_spec import SeatSpec
from fumehood.core.gold import Gold
from fumehood.core.json_values import JsonObject
from fumehood.core.ledger import Budget
from fumehood.core.score import SAFETY
from fumehood.core.task import Case, Task

PROFILE = "native"
SCORER = "native"


def case_of(record: TaskRecord) -> Case:
    """Return the record as a task and its gold."""
    talk = record.conversation
    task = Task(
        task_id=record.task_id,
        world=record.world,
        profile=PROFILE,
        initial_state=record.initial_state,
        fault_plan=tuple(fault.rule(index) for index, fault in enumerate(record.fault_plan)),
        seed=record.seed,
        seats=(_agent_seat(record), *(_seat(seat) for seat in record.seats)),
        tags=record.tags,
        conversation=None if talk is None else ConversationSpec(talk.rule, talk.settings),
        players={seat.name: seat.player for seat in record.seats if seat.player is not None},
        scripts={
            seat.name: tuple(_given(move) for move in seat.script)
            for seat in record.seats
            if seat.script is not None
        },
    )
    gold = Gold(
        SCORER,
        (
            *(_given(criterion) for criterion in record.criteria),
            *({**_given(criterion), "aspect": SAFETY} for criterion in record.safety),
        ),
        record.solvable,
        tuple(_given(move) for move in record.oracle),
    )
    return Case(task, gold)


def _agent_seat(record: TaskRecord) -> SeatSpec:
    return SeatSpec(
        instruction=record.instruction,
        budget=Budget(**record.budget.model_dump()),
        further_turns=tuple(
            Turn(turn.instruction, tuple(turn.tools)) for turn in record.further_turns
        ),
        tools=_names(record.tools),
    )


def _seat(record: SeatRecord) -> SeatSpec:
    return SeatSpec(
        name=record.name,
        instruction=record.instruction,
        budget=Budget(**record.budget.model_dump()),
        tools=_names(record.tools),
    )


def _names(tools: list[str] | None) -> tuple[str, ...] | None:
    return None if tools is None else tuple(tools)


def _given(part: BaseModel) -> JsonObject:
    """Return what the record said, without defaults: the families and the scorer have their own."""
    return {
        key: value
        for key, value in part.model_dump(exclude_unset=True).items()
        if value is not None
    }
