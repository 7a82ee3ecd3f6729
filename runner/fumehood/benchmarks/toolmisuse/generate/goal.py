"""The goal of one generated task, without faults, and the word lists of all goals."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from fumehood.benchmarks.toolmisuse.records import Split
from fumehood.core.json_values import Json, JsonObject

TIERS = ("basic", "bronze", "silver", "gold", "platinum", "team", "enterprise")
REASONS = (
    "duplicate",
    "churn",
    "fraud_review",
    "merged",
    "inactivity",
    "owner_request",
    "relocation",
)
PLACES = (
    "harbour",
    "lock",
    "quay",
    "depot",
    "mill",
    "archive",
    "ferry",
    "tower",
    "market",
    "signal",
)
THINGS = (
    "tide",
    "wind",
    "crane",
    "cargo",
    "cabin",
    "chart",
    "buoy",
    "pump",
    "ballast",
    "rigging",
    "anchor",
)
TOPICS = (
    "boiler pressure",
    "lost cargo",
    "radio outage",
    "fog signal",
    "oil spill",
    "broken hinge",
    "late pilot",
    "worn cable",
    "flooded cellar",
    "power dip",
)
VERBS = ("sync", "rotate", "purge", "export", "index", "report", "mirror", "check")
ENDINGS = ("txt", "md", "log")


@dataclass(frozen=True, slots=True, kw_only=True)
class Entity:
    """The basis of all names in a task."""

    number: int
    split: Split
    letter: str
    """Represents the split in IDs."""
    rivals: int
    """Number of other entries in the state."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Goal:
    """A goal that one call reaches."""

    instruction: str
    state: JsonObject
    tool_name: str
    arguments: Mapping[str, Json]
    """Arguments of this call."""
    checks: tuple[JsonObject, ...]
    """Success criteria in addition to the successful call."""
    output: Mapping[str, Json]
    """Output path → value in the result of the call."""
