"""From a slot to a record."""

from __future__ import annotations

from dataclasses import replace

from fumehood.benchmarks.in_memory import play_in_memory
from fumehood.benchmarks.native.generate.allocation import Slot, make_scene
from fumehood.benchmarks.native.generate.draft import Scene
from fumehood.benchmarks.native.record import FORMAT, TaskRecord
from fumehood.benchmarks.native.task import case_of
from fumehood.benchmarks.seeded_choices import Draws
from fumehood.core.episode_spec import SeatSpec
from fumehood.core.json_values import JsonObject
from fumehood.core.ledger import Budget

SPARE_CALLS = 4
SPARE_RETRIES = 2
"""What an agent may do beyond what the oracle does."""

_UNLIMITED = {"steps": 1000, "calls": 1000, "retries": 1000}


def make_task(slot: Slot, split: str, seed: int) -> TaskRecord:
    """Return the task of a slot; depends on nothing but the arguments."""
    scene = make_scene(slot, Draws("native", seed, slot.task_id))
    draft = _record(slot, scene, split, _UNLIMITED)
    return _record(slot, scene, split, _budget(draft))


def _record(slot: Slot, scene: Scene, split: str, budget: dict[str, int]) -> TaskRecord:
    solvable = scene.gives_up is None
    end: JsonObject = {"submit": scene.answer} if solvable else {"give_up": scene.gives_up}
    return TaskRecord.model_validate(
        {
            "format": FORMAT,
            "task_id": slot.task_id,
            "world": scene.world,
            "instruction": scene.instruction,
            "initial_state": scene.state,
            "fault_plan": list(scene.faults),
            "budget": budget,
            "criteria": list(scene.criteria),
            "solvable": solvable,
            "oracle": [*(made.to_json() for made in scene.calls), end],
            "seed": slot.number,
            "tags": {
                "split": split,
                "difficulty": slot.difficulty,
                "story": slot.story.__name__,
                "kind": slot.kind,
            },
        }
    )


def _budget(draft: TaskRecord) -> dict[str, int]:
    """Return what the oracle spends, and something to spare."""
    case = case_of(draft)
    free = replace(case.task, seats=(SeatSpec(instruction="", budget=Budget()),))
    exchanges = play_in_memory(free, case.gold.oracle or ()).exchanges
    calls = len(exchanges) + SPARE_CALLS
    failures = sum(made.failure is not None for made in exchanges)
    return {"steps": calls, "calls": calls, "retries": failures + SPARE_RETRIES}
