"""From a published record to a task and its gold."""

from __future__ import annotations

from fumehood.benchmarks.toolmisuse.oracles import OracleRecord
from fumehood.benchmarks.toolmisuse.record import TaskRecord
from fumehood.core.episode_spec import SeatSpec
from fumehood.core.errors import SpecError
from fumehood.core.fault_plan import FaultRule
from fumehood.core.gold import Gold
from fumehood.core.ledger import Budget
from fumehood.core.task import Case, Task

PROFILE = "toolmisuse"
SCORER = "toolmisuse"


def case_of(record: TaskRecord, oracle: OracleRecord | None = None) -> Case:
    """Return the record as a task and its gold.

    Args:
        record: as published or generated.
        oracle: how the task is proven solvable or unsolvable, where somebody has proven it.

    Raises:
        SpecError: the record is valid but no world serves its domain.
    """
    if record.domain == "mixed":
        raise SpecError("domain", "'mixed' is a label of the format; no world serves it")
    criteria = tuple(record.success_criteria)
    if oracle is None:
        return Case(_task(record), Gold(SCORER, criteria))
    return Case(_task(record), Gold(SCORER, criteria, oracle.solvable, tuple(oracle.oracle)))


def _task(record: TaskRecord) -> Task:
    budget = record.budget
    return Task(
        task_id=record.task_id,
        world=record.domain,
        profile=PROFILE,
        initial_state=record.initial_state,
        fault_plan=tuple(
            FaultRule(index, fault.fault_type, fault.trigger, fault.severity, fault.payload)
            for index, fault in enumerate(record.fault_plan)
        ),
        seed=record.seed,
        seats=(
            SeatSpec(
                instruction=record.instruction,
                budget=Budget(
                    steps=budget.max_steps, calls=budget.max_tool_calls, retries=budget.max_retries
                ),
            ),
        ),
        tags={"split": record.split, "difficulty": record.difficulty},
    )
