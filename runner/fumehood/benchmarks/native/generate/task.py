"""Generates the record of one task."""

from __future__ import annotations

from dataclasses import replace

from fumehood.benchmarks.in_memory import play_in_memory
from fumehood.benchmarks.native.generate.allocation import Slot, make_draft
from fumehood.benchmarks.native.generate.draft import DraftTask
from fumehood.benchmarks.native.record import FORMAT, TaskRecord
from fumehood.benchmarks.native.task import case_of
from fumehood.benchmarks.seeded_choices import SeededChoices
from fumehood.core.episode_spec import SeatSpec
from fumehood.core.json_values import JsonObject
from fumehood.core.ledger import Budget

SPARE_CALLS = 4
SPARE_RETRIES = 2
"""Budget beyond what the oracle uses."""

_UNLIMITED = {"steps": 1000, "calls": 1000, "retries": 1000}


def make_task(slot: Slot, split: str, seed: int) -> TaskRecord:
    """Return the task of a slot, determined by the arguments alone."""
    draft = make_draft(slot, SeededChoices("native", seed, slot.task_id))
    unlimited = _record(slot, draft, split, _UNLIMITED)
    return _record(slot, draft, split, _budget(unlimited))


def _record(slot: Slot, draft: DraftTask, split: str, budget: dict[str, int]) -> TaskRecord:
    solvable = draft.gives_up is None
    end: JsonObject = {"submit": draft.answer} if solvable else {"give_up": draft.gives_up}
    return TaskRecord.model_validate(
        {
            "format": FORMAT,
            "task_id": slot.task_id,
            "world": draft.world,
            "instruction": draft.instruction,
            "initial_state": draft.state,
            "fault_plan": list(draft.faults),
            "budget": budget,
            "criteria": list(draft.criteria),
            "solvable": solvable,
            "oracle": [*(made.to_json() for made in draft.calls), end],
            "seed": slot.number,
            "tags": {
                "split": split,
                "difficulty": slot.difficulty,
                "template": slot.template.__name__,
                "kind": slot.kind,
            },
        }
    )


def _budget(record: TaskRecord) -> dict[str, int]:
    """Return what the oracle uses plus the spare amounts."""
    case = case_of(record)
    free = replace(case.task, seats=(SeatSpec(instruction="", budget=Budget()),))
    exchanges = play_in_memory(free, case.gold.oracle or ()).exchanges
    calls = len(exchanges) + SPARE_CALLS
    failures = sum(made.failure is not None for made in exchanges)
    return {"steps": calls, "calls": calls, "retries": failures + SPARE_RETRIES}
