"""From a slot to a record with its oracle."""

from __future__ import annotations

from collections.abc import Sequence

from fumehood.benchmarks.seeded_choices import SeededChoices
from fumehood.benchmarks.toolmisuse.generate.allocation import Slot
from fumehood.benchmarks.toolmisuse.generate.goal import Goal
from fumehood.benchmarks.toolmisuse.generate.plans import plan_faults, strikes_every_call
from fumehood.benchmarks.toolmisuse.oracles import OracleRecord
from fumehood.benchmarks.toolmisuse.record import FaultRecord, TaskRecord
from fumehood.core.json_values import JsonObject

TOOLSETS = {
    "crud": "crud_v1",
    "retrieval": "retrieval_v1",
    "files": "files_v1",
    "scheduling": "scheduler_v1",
}


def make_task(slot: Slot, release: str, seed: int) -> tuple[TaskRecord, OracleRecord]:
    """Return the task of a slot and how it is proven; depends on nothing but the arguments."""
    goal = slot.make(slot.entity, SeededChoices("toolmisuse", release, seed, slot.task_id))
    plan = plan_faults(slot.families, goal.tool_name, persistent=release == "0.1")
    record = TaskRecord(
        task_id=slot.task_id,
        split=slot.entity.split,
        difficulty=slot.difficulty,
        domain=slot.domain,
        instruction=goal.instruction,
        toolset_id=TOOLSETS[slot.domain],
        initial_state=goal.state,
        success_criteria=_criteria(goal, release),
        budget=slot.budget,
        fault_plan=plan,
        gold_summary=f"One call of {goal.tool_name}.",
        seed=slot.seed,
    )
    return record, _oracle(slot.task_id, goal, plan)


def _criteria(goal: Goal, release: str) -> list[JsonObject]:
    """Return the checks; release 0.1 has none over outputs, so there an answer is all that is asked."""
    answered: JsonObject = {
        "op": "successful_tool_call",
        "tool_name": goal.tool_name,
        "min_count": 1,
    }
    outputs: list[JsonObject] = [
        {
            "op": "tool_output_path_equals",
            "tool_name": goal.tool_name,
            "output_path": path,
            "value": value,
        }
        for path, value in goal.output.items()
    ]
    return [*goal.checks, answered, *(outputs if release == "0.2" else ())]


def _oracle(task_id: str, goal: Goal, plan: Sequence[FaultRecord]) -> OracleRecord:
    call: JsonObject = {"tool_name": goal.tool_name, "args": dict(goal.arguments)}
    solvable = not any(strikes_every_call(fault) for fault in plan)
    # Rewriting makes no call fail of its own, so it costs no attempt.
    failures = sum(fault.fault_type != "adversarial_error" for fault in plan) if solvable else 0
    end: JsonObject = {"submit": ""} if solvable else {"give_up": "no call gets through"}
    return OracleRecord(task_id=task_id, solvable=solvable, oracle=[*[call] * (failures + 1), end])
