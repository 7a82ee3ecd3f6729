"""Tasks, and the suites they are run in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from fumehood.core.conversation import ConversationSpec
from fumehood.core.episode_spec import SeatSpec
from fumehood.core.fault_plan import FaultPlan
from fumehood.core.gold import Gold
from fumehood.core.json_values import Json, JsonObject

SCRIPT = "script"
"""The player that says what a task wrote down for its seat."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """One thing to do, in one world, under one fault plan."""

    task_id: str
    """Unique within its suite."""
    world: str
    harness_mode: str
    initial_state: JsonObject
    fault_plan: FaultPlan
    seed: int
    seats: tuple[SeatSpec, ...]
    tags: JsonObject
    """Labels for tables, such as ``difficulty``; nothing acts on them."""
    conversation: ConversationSpec | None = None
    """How the seats talk to each other; None where each works for itself."""
    counterparts: Mapping[str, str] = field(default_factory=dict)
    """By seat, the agent that sits there unless a run says otherwise; the others are the tested agent's."""
    scripts: Mapping[str, tuple[Mapping[str, Json], ...]] = field(default_factory=dict)
    """By seat, the moves of the player :data:`SCRIPT`, in the oracle's form."""


@dataclass(frozen=True, slots=True)
class Case:
    """A task with the right answer."""

    task: Task
    gold: Gold


@dataclass(frozen=True, slots=True, kw_only=True)
class About:
    """What has to be known of a suite to read its scores; nothing acts on it."""

    licence: str
    """Of the tasks, and whose they are."""
    criterion: str
    """By whose rules an episode succeeds."""
    judged: str
    """What these rules look at."""


@dataclass(frozen=True, slots=True)
class Suite:
    """Tasks that are run together, in order."""

    name: str
    cases: tuple[Case, ...]
    snapshot: Path | None = None
    """Where the snapshot that its tasks name was found; None where they name none."""
    about: About | None = None
    """None where nobody has written it down."""
