"""Assigns templates and obstacles to task positions, so that worlds and faults are balanced."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from fumehood.benchmarks.native.generate import obstacles
from fumehood.benchmarks.native.generate.draft import DraftTask
from fumehood.benchmarks.native.generate.obstacles import Obstacle
from fumehood.benchmarks.native.generate.templates import crud, files, retrieval, scheduling
from fumehood.benchmarks.shared.seeded_choices import SeededChoices

Template = Callable[[SeededChoices, int], DraftTask]

WORLDS = ("crud", "retrieval", "files", "scheduling")

SOLVABLE: Mapping[str, Sequence[Template]] = {
    "crud": (crud.same_tier, crud.credit, crud.close_the_one, crud.merge_into, crud.open_or_move),
    "retrieval": (
        retrieval.find_number,
        retrieval.follow_reference,
        retrieval.larger_number,
        retrieval.all_by_one_author,
    ),
    "files": (
        files.append_line,
        files.change_setting,
        files.write_sum,
        files.follow_pointer,
        files.swap,
    ),
    "scheduling": (
        scheduling.shortly_after,
        scheduling.first_free_slot,
        scheduling.valid_or_else,
        scheduling.followers,
    ),
}
"""Solvable templates."""

UNSOLVABLE: Mapping[str, Sequence[Template]] = {
    "crud": (crud.close_if_settled, crud.missing_account),
    "retrieval": (retrieval.unanswered_question, retrieval.dangling_reference),
    "files": (files.create_if_missing, files.missing_source),
    "scheduling": (scheduling.name_is_taken, scheduling.invalid_minute),
}
"""Templates that end with giving up in half of their tasks."""

WITH_RATE_LIMIT: Mapping[str, Sequence[Template]] = {
    "crud": (crud.busy_system,),
    "retrieval": (retrieval.too_many_results,),
    "files": (files.busy_store,),
    "scheduling": (scheduling.busy_scheduler,),
}
"""Templates with a rate limit and an alternative."""

WITH_SOURCE: Mapping[str, Sequence[Template]] = {
    "crud": (crud.same_tier, crud.credit, crud.merge_into),
    "retrieval": (retrieval.find_number, retrieval.follow_reference),
    "files": (
        files.append_line,
        files.change_setting,
        files.write_sum,
        files.follow_pointer,
        files.swap,
    ),
    "scheduling": (),
}
"""Templates that read a source which may time out."""

WITH_TIMEOUT: Mapping[str, Sequence[Template]] = {
    "crud": (),
    "retrieval": (),
    "files": (),
    "scheduling": (scheduling.silent_list,),
}
"""Templates with a built-in timeout and an alternative."""

KINDS = ("clean", "timeout", "rate_limit", "schema_drift", "authz", "adversarial_error")
"""First fault of the plan. The world changes with each position, the kind with every fourth."""

DIFFICULTIES = ("easy", "medium", "hard")

_OBSTACLES: Mapping[str, tuple[Obstacle, ...]] = {
    "schema_drift": (obstacles.renamed, obstacles.ticketed),
    "authz": (obstacles.badge_given, obstacles.badge_stored, obstacles.denied),
    "adversarial_error": (obstacles.misreported,),
    "timeout": (obstacles.silent_source,),
}
"""Kind → obstacles that are added, in turn."""

_SECOND_OBSTACLES: Sequence[Obstacle] = (obstacles.renamed, obstacles.ticketed)
"""Second obstacle of a hard task, if the task allows one."""

_STRIDE = 11
"""Distance between the numbers of two tasks; a task forms several names from its number."""


@dataclass(frozen=True, slots=True)
class Slot:
    """The properties of a task that its position determines."""

    task_id: str
    kind: str
    difficulty: str
    template: Template
    obstacles: tuple[Obstacle, ...]
    """Obstacles of the kind, in the order in which they are tried."""
    number: int
    """Basis of the names in the task; unique within the split."""


def slot_at(split: str, index: int, first_number: int) -> Slot:
    """Return the slot at ``index`` of a split."""
    rest, world_at = divmod(index, len(WORLDS))
    turn, kind_at = divmod(rest, len(KINDS))
    world, kind = WORLDS[world_at], KINDS[kind_at]
    templates, obstacles_of_kind = _templates(world, kind), _OBSTACLES.get(kind, ())
    # Templates rotate fastest, then the obstacles of a template, then the difficulties.
    rotation, template_at = divmod(turn, len(templates))
    first = (template_at + rotation) % max(1, len(obstacles_of_kind))
    difficulty = (template_at + rotation // max(1, len(obstacles_of_kind))) % len(DIFFICULTIES)
    return Slot(
        task_id=f"{split}-{world}-{index:05d}",
        kind=kind,
        difficulty=DIFFICULTIES[difficulty],
        template=templates[template_at],
        obstacles=(*obstacles_of_kind[first:], *obstacles_of_kind[:first]),
        number=first_number + _STRIDE * index,
    )


def make_draft(slot: Slot, choices: SeededChoices) -> DraftTask:
    """Return the draft task of a slot, with its obstacles."""
    draft = slot.template(choices, slot.number)
    if not draft.faults:
        draft = _with_first_obstacle(draft, slot.obstacles, slot, choices)
    if slot.difficulty == "hard" and draft.faults:
        draft = _with_first_obstacle(draft, choices.shuffled(_SECOND_OBSTACLES), slot, choices)
    return draft


def _templates(world: str, kind: str) -> Sequence[Template]:
    match kind:
        case "clean":
            # Solvable and unsolvable templates alternate.
            done, left = SOLVABLE[world], UNSOLVABLE[world]
            return [
                template
                for at, solvable in enumerate(done)
                for template in (solvable, left[at % len(left)])
            ]
        case "timeout":
            return (*WITH_SOURCE[world], *WITH_TIMEOUT[world])
        case "rate_limit":
            return WITH_RATE_LIMIT[world]
        case _:
            return SOLVABLE[world]


def _with_first_obstacle(
    draft: DraftTask, candidates: Sequence[Obstacle], slot: Slot, choices: SeededChoices
) -> DraftTask:
    """Return the draft with the first obstacle that it allows, or unchanged if it allows none."""
    for obstacle in candidates:
        changed = obstacle(draft, choices, slot.number)
        if changed is not None:
            return changed
    return draft
