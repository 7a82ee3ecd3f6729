"""Generates a ToolMisuseBench suite. Nothing is written unless every task passes its checks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from fumehood.benchmarks.shared.generator import Progress, SuitePlan, no_progress, write_suite
from fumehood.benchmarks.shared.manifest import Manifest
from fumehood.benchmarks.shared.proof import ScoreEpisode
from fumehood.benchmarks.shared.seeded_choices import SeededChoices
from fumehood.benchmarks.toolmisuse.generate.allocation import (
    Slot,
    profile_of,
    slot_0_1,
    slot_0_2,
    slot_of_paper,
)
from fumehood.benchmarks.toolmisuse.generate.checks import refuse_incoherent
from fumehood.benchmarks.toolmisuse.generate.faults import fires_on_every_call, plan_faults
from fumehood.benchmarks.toolmisuse.generate.goal import Goal
from fumehood.benchmarks.toolmisuse.records import (
    FaultRecord,
    OracleRecord,
    Split,
    TaskRecord,
)
from fumehood.benchmarks.toolmisuse.tasks import ORACLES
from fumehood.core.json_values import JsonObject

GENERATOR = 2
"""Increases with every change after which the same seed gives other bytes."""

_SLOTS: Mapping[str, Callable[[Split, int, int], Slot]] = {
    "0.1": slot_0_1,
    "0.2": slot_0_2,
    "paper": slot_of_paper,
}

TOOLSETS = {
    "crud": "crud_v1",
    "retrieval": "retrieval_v1",
    "files": "files_v1",
    "scheduling": "scheduler_v1",
}


def make_task(slot: Slot, release: str, seed: int) -> tuple[TaskRecord, OracleRecord]:
    """Return the task of a slot and its oracle, determined by the arguments alone."""
    goal = slot.make(slot.entity, SeededChoices("toolmisuse", release, seed, slot.task_id))
    plan = plan_faults(
        slot.families,
        goal.tool_name,
        persistent=release != "0.2",
        goal_only=release == "paper",
    )
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
    """Return the criteria. Only release 0.2 has some on outputs."""
    succeeded: JsonObject = {
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
    return [*goal.checks, succeeded, *(outputs if release == "0.2" else ())]


def _oracle(task_id: str, goal: Goal, plan: Sequence[FaultRecord]) -> OracleRecord:
    call: JsonObject = {"tool_name": goal.tool_name, "args": dict(goal.arguments)}
    solvable = not any(fires_on_every_call(fault) for fault in plan)
    # adversarial_error rewrites an error of another fault, so it costs no additional call.
    failures = sum(fault.fault_type != "adversarial_error" for fault in plan) if solvable else 0
    end: JsonObject = {"submit": ""} if solvable else {"give_up": "every call fails"}
    return OracleRecord(task_id=task_id, solvable=solvable, oracle=[*[call] * (failures + 1), end])


def generate_suite(
    profile: str,
    seed: int,
    out: Path,
    *,
    splits: Mapping[str, int] | None = None,
    score_episode: ScoreEpisode | None = None,
    progress: Progress = no_progress,
) -> Manifest:
    """Write a suite in the published folder layout, with oracles, manifest and freeze file.

    See :class:`~fumehood.benchmarks.shared.generator.Generator` for arguments and errors.
    """
    chosen = profile_of(profile, splits)

    def make(split: Split, index: int) -> tuple[JsonObject, JsonObject]:
        slot = _SLOTS[chosen.release](split, index, seed)
        record, oracle = make_task(slot, chosen.release, seed)
        refuse_incoherent(record, oracle, score_episode)
        return record.model_dump(), oracle.model_dump()

    plan = SuitePlan(
        family="toolmisuse",
        profile=profile,
        release=chosen.release,
        generator=GENERATOR,
        seed=seed,
        sizes=chosen.sizes,
        files=("{split}/tasks.jsonl", ORACLES + "/{split}.jsonl"),
        make=make,
    )
    return write_suite(out, plan, progress)
