"""Generates a native suite. Nothing is written unless every task passes its checks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from fumehood.benchmarks.native.generate.allocation import Slot, make_draft, slot_at
from fumehood.benchmarks.native.generate.draft import DraftTask
from fumehood.benchmarks.native.records import FORMAT, TaskRecord, record_to_json
from fumehood.benchmarks.native.tasks import case_of, refuse_incoherent
from fumehood.benchmarks.shared.generator import (
    Progress,
    SuitePlan,
    no_progress,
    split_sizes,
    write_suite,
)
from fumehood.benchmarks.shared.in_memory import Move, play_in_memory
from fumehood.benchmarks.shared.manifest import Manifest
from fumehood.benchmarks.shared.proof import ScoreEpisode, Unproven, prove_not_free, prove_solvable
from fumehood.benchmarks.shared.records import opened
from fumehood.benchmarks.shared.seeded_choices import SeededChoices
from fumehood.core.episode_spec import SeatSpec
from fumehood.core.errors import InputError
from fumehood.core.evidence import Evidence
from fumehood.core.json_values import JsonObject
from fumehood.core.ledger import Budget
from fumehood.core.task import Case

GENERATOR = 4
"""Increases with every change after which the same seed gives other bytes."""

RELEASE = "1"

FIRST_NUMBERS: Mapping[str, int] = {"train": 100_000, "dev": 300_000, "test_public": 400_000}
"""Split → first number of the names in its tasks. The ranges of the splits do not overlap."""

PROFILES: Mapping[str, Mapping[str, int]] = {
    name: dict(zip(FIRST_NUMBERS, sizes, strict=True))
    for name, sizes in (
        ("default", (24, 24, 24)),
        ("small", (240, 48, 48)),
        ("medium", (960, 192, 312)),
        ("large", (4992, 816, 1008)),
    )
}
"""Profile → split → number of tasks: multiples of 24, one task per world and kind of fault."""

SPARE_CALLS = 4
SPARE_RETRIES = 2
"""Budget beyond what the oracle uses."""

_ATTEMPTS = 4
"""Number of retries after which a failing call counts as permanently failing."""

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
    answered = play_in_memory(free, case.gold.oracle or ()).calls
    calls = len(answered) + SPARE_CALLS
    failures = sum(made.failure is not None for made in answered)
    return {"steps": calls, "calls": calls, "retries": failures + SPARE_RETRIES}


def generate_suite(
    profile: str,
    seed: int,
    out: Path,
    *,
    splits: Mapping[str, int] | None = None,
    score_episode: ScoreEpisode | None = None,
    progress: Progress = no_progress,
) -> Manifest:
    """Write a suite, one file per split, with manifest and freeze file.

    See :class:`~fumehood.benchmarks.shared.generator.Generator` for arguments and errors.
    """

    def make(split: str, index: int) -> tuple[dict[str, Any]]:
        record = make_task(slot_at(split, index, FIRST_NUMBERS[split]), split, seed)
        refuse_unfit(record, score_episode)
        return (record_to_json(record),)

    plan = SuitePlan(
        family="native",
        profile=profile,
        release=RELEASE,
        generator=GENERATOR,
        seed=seed,
        sizes=split_sizes(profile, PROFILES, splits or {}),
        files=("{split}.jsonl",),
        make=make,
    )
    return write_suite(out, plan, progress)


def refuse_unfit(record: TaskRecord, score_episode: ScoreEpisode | None) -> None:
    """Raise for a task that must not be published.

    Args:
        record: the task.
        score_episode: scores evidence; None skips the checks that play the task.

    Raises:
        Unproven: names the task and what is wrong with it.
    """
    try:
        refuse_incoherent(record)
        case = opened(case_of(record))
    except InputError as error:
        raise Unproven(record.task_id, str(error)) from None
    if score_episode is None:
        return
    evidence = prove_solvable(case, score_episode)
    prove_not_free(case, score_episode)
    _prove_no_retry_helps(case, evidence)


def _prove_no_retry_helps(case: Case, evidence: Evidence) -> None:
    """Raise if repeating the oracle's first faulted call succeeds without a change."""
    moves = case.gold.oracle or ()
    refused = next(
        (
            at
            for at, made in enumerate(evidence.calls)
            if made.failure is not None and made.fired_rules
        ),
        None,
    )
    if refused is None:
        return
    repeated: list[Move] = [*moves[:refused], *[moves[refused]] * _ATTEMPTS]
    answered = play_in_memory(case.task, repeated).calls[refused:]
    if any(made.failure is None for made in answered):
        raise Unproven(case.task.task_id, "repeating a failed call unchanged succeeds")
