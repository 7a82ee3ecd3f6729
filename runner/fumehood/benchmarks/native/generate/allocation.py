"""Which story and which troubles stand where, so that worlds and faults balance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from fumehood.benchmarks.native.generate import obstacles
from fumehood.benchmarks.native.generate.draft import Scene
from fumehood.benchmarks.native.generate.obstacles import Trouble
from fumehood.benchmarks.native.generate.templates.table import (
    BUSY,
    READ_FROM,
    SILENT,
    TO_BE_DONE,
    TO_BE_LEFT,
    WORLDS,
    Story,
)
from fumehood.benchmarks.seeded_choices import Draws

KINDS = ("clean", "timeout", "rate_limit", "schema_drift", "authz", "adversarial_error")
"""First fault of the plan; worlds change faster, then kinds."""

DIFFICULTIES = ("easy", "medium", "hard")

_TROUBLES: Mapping[str, tuple[Trouble, ...]] = {
    "schema_drift": (obstacles.renamed, obstacles.ticketed),
    "authz": (obstacles.badge_told, obstacles.badge_kept, obstacles.denied),
    "adversarial_error": (obstacles.misreported,),
    "timeout": (obstacles.silent_source,),
}
"""Kind → what is done to the story, in turn."""

_SECOND_TROUBLES: Sequence[Trouble] = (obstacles.renamed, obstacles.ticketed)
"""What hard tasks have besides, where there is room for it."""

_STRIDE = 11
"""Between the numbers of two tasks, because each makes several names of its number."""


@dataclass(frozen=True, slots=True)
class Slot:
    """What the position of a task decides."""

    task_id: str
    kind: str
    difficulty: str
    story: Story
    ways: tuple[Trouble, ...]
    """Troubles of the kind, the one whose turn it is first."""
    number: int
    """From which its names are made; no other task of the split has it."""


def slot_at(split: str, index: int, first_number: int) -> Slot:
    """Return the slot at ``index`` of a split."""
    rest, world_at = divmod(index, len(WORLDS))
    turn, kind_at = divmod(rest, len(KINDS))
    world, kind = WORLDS[world_at], KINDS[kind_at]
    stories, ways = _stories(world, kind), _TROUBLES.get(kind, ())
    # Stories in turn; a story meets its troubles in turn, and each with all difficulties in turn.
    round_of_stories, story = divmod(turn, len(stories))
    way = (story + round_of_stories) % max(1, len(ways))
    difficulty = (story + round_of_stories // max(1, len(ways))) % len(DIFFICULTIES)
    return Slot(
        task_id=f"{split}-{world}-{index:05d}",
        kind=kind,
        difficulty=DIFFICULTIES[difficulty],
        story=stories[story],
        ways=(*ways[way:], *ways[:way]),
        number=first_number + _STRIDE * index,
    )


def make_scene(slot: Slot, draws: Draws) -> Scene:
    """Return the story of a slot with its obstacles."""
    scene = slot.story(draws, slot.number)
    if not scene.faults:
        scene = _with_one_of(scene, slot.ways, slot, draws)
    if slot.difficulty == "hard" and scene.faults:
        scene = _with_one_of(scene, draws.shuffled(_SECOND_TROUBLES), slot, draws)
    return scene


def _stories(world: str, kind: str) -> Sequence[Story]:
    match kind:
        case "clean":
            # As many that end well as are to be left, in turn.
            done, left = TO_BE_DONE[world], TO_BE_LEFT[world]
            return [story for at, each in enumerate(done) for story in (each, left[at % len(left)])]
        case "timeout":
            return (*READ_FROM[world], *SILENT[world])
        case "rate_limit":
            return BUSY[world]
        case _:
            return TO_BE_DONE[world]


def _with_one_of(scene: Scene, ways: Sequence[Trouble], slot: Slot, draws: Draws) -> Scene:
    """Return the scene with the first of the troubles that it has room for; as it is, where there is none."""
    for trouble in ways:
        troubled = trouble(scene, draws, slot.number)
        if troubled is not None:
            return troubled
    return scene
