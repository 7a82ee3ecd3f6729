"""Generates and proves suites of safety scenarios. A task that fails a proof is refused."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from fumehood.benchmarks.native.records import TaskRecord, record_to_json
from fumehood.benchmarks.native.tasks import case_of, refuse_incoherent
from fumehood.benchmarks.safety.compose import Plan, compose, play
from fumehood.benchmarks.safety.draft import HELD_OUT, TUNING, Family
from fumehood.benchmarks.safety.families import industrial, infrastructure, medication, payments
from fumehood.benchmarks.safety.jobs import data_family
from fumehood.benchmarks.shared.generator import (
    Progress,
    SuitePlan,
    no_progress,
    split_sizes,
    write_suite,
)
from fumehood.benchmarks.shared.manifest import Manifest
from fumehood.benchmarks.shared.proof import ScoreEpisode, Unproven, prove_not_free, prove_solvable
from fumehood.benchmarks.shared.seeded_choices import SeededChoices
from fumehood.core.errors import InputError

FAMILIES: tuple[Family, ...] = (
    industrial.FAMILY,
    medication.FAMILY,
    payments.FAMILY,
    infrastructure.FAMILY,
    *map(data_family, ("retention", "access", "lab", "dispatch")),
)
"""In the order in which they take turns."""
MIXED: tuple[Family, ...] = (data_family("offboarding"), data_family("store_fire"))
"""Templates whose single job needs the worlds of two families."""
GENERATOR = 7
"""Increases with every change after which the same seed gives other bytes."""
RELEASE = "1"
SPLITS = (TUNING, HELD_OUT)
PROFILES: Mapping[str, Mapping[str, int]] = {
    name: dict.fromkeys(SPLITS, size)
    for name, size in (("small", 18), ("default", 100), ("large", 1500))
}
"""Profile → split → number of tasks."""
MIXED_DOMAIN = "mixed"
"""Domain of the tasks that combine two families."""
MIXED_EVERY = 3
"""Every third mixed task has one job that needs two domains; the others have a job of each."""
_ATTEMPTS = 5
"""Number of draws for one task; all but the last may be refused."""
_MOVED = 3
"""Number of calls to which the proof moves each fault."""


def make_task(split: str, index: int, seed: int, attempt: int = 0) -> TaskRecord:
    """Return the task at an index of a split, determined by the arguments alone."""
    draw = SeededChoices("safety", seed, split, index, attempt)
    plan = _plan(split, index, draw)
    return compose(plan, draw)


def _plan(split: str, index: int, draw: SeededChoices) -> Plan:
    """Return what the task consists of: all families, and mixed tasks, take turns."""
    position, turn = index % (len(FAMILIES) + 1), index // (len(FAMILIES) + 1)
    is_mixed = position == len(FAMILIES)
    if is_mixed and turn % MIXED_EVERY == MIXED_EVERY - 1:
        both = ((family, template) for family in MIXED for template in family.templates)
        part = draw.pick(
            [(family, template) for family, template in both if template.split == split]
        )
        return Plan(f"{MIXED_DOMAIN}-{split}-{index:05}", split, MIXED_DOMAIN, (part,))
    first = FAMILIES[turn % len(FAMILIES) if is_mixed else position]
    templates = [template for template in first.templates if template.split == split]
    parts = [(first, templates[turn % len(templates)])]
    others = [family for family in FAMILIES if (family is not first) == is_mixed]
    if others and (is_mixed or draw.below(3)):
        second = draw.pick(others)
        # Two jobs with fixed times could not both be done in time.
        left = [
            template
            for template in second.templates
            if template.split == split
            and template is not parts[0][1]
            and not (template.timed and parts[0][1].timed)
        ]
        # Half of the second jobs have fixed times, so that doing nothing often causes harm.
        urgent = [template for template in left if template.timed] if draw.below(2) else []
        parts += [(second, draw.pick(urgent or left))] if left else []
    domain = MIXED_DOMAIN if is_mixed else first.name
    return Plan(f"{domain}-{split}-{index:05}", split, domain, tuple(parts))


def refuse_unfit(record: TaskRecord, score_episode: ScoreEpisode) -> None:
    """Raise for a task that must not be published.

    Raises:
        Unproven: names the task and the proof that fails.
    """
    try:
        refuse_incoherent(record)
    except InputError as error:
        raise Unproven(record.task_id, str(error)) from None
    case = case_of(record)
    prove_solvable(case, score_episode)
    prove_not_free(case, score_episode)
    for moved in moved_faults(record, _MOVED):
        evidence, moves = play(moved)
        score = score_episode(case_of(moved).task, case.gold, evidence)
        if not score.success:
            failed = [name for name, holds in score.checks.items() if not holds]
            plan = [fault.model_dump(exclude_unset=True) for fault in moved.fault_plan]
            raise Unproven(
                record.task_id, f"the careful agent fails {failed} with {plan} ({len(moves)} moves)"
            )


def moved_faults(record: TaskRecord, places: int) -> Iterator[TaskRecord]:
    """Yield the task with each fault on a single call moved to other calls.

    Args:
        record: the task.
        places: number of calls to which each fault is moved.
    """
    draw = SeededChoices("moved", record.task_id, record.seed)
    calls = len(record.oracle) - 1
    for index, fault in enumerate(record.fault_plan):
        if fault.trigger.on_nth_call is None:
            continue
        for number in draw.some(range(1, calls + 1), min(places, calls)):
            trigger = fault.trigger.model_copy(update={"on_nth_call": number})
            plan = [*record.fault_plan]
            plan[index] = fault.model_copy(update={"trigger": trigger})
            yield record.model_copy(update={"fault_plan": plan})


def proven_task(
    split: str, index: int, seed: int, score_episode: ScoreEpisode | None
) -> TaskRecord:
    """Return the first draw for a task that passes all proofs; without a scorer, the first draw.

    Raises:
        Unproven: no draw passes.
    """
    for attempt in range(_ATTEMPTS):
        record = make_task(split, index, seed, attempt)
        try:
            if score_episode is not None:
                refuse_unfit(record, score_episode)
            return record
        except Unproven:
            if attempt == _ATTEMPTS - 1:
                raise
    raise AssertionError("the last attempt returns or raises")


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
        return (record_to_json(proven_task(split, index, seed, score_episode)),)

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
