"""What one task asks for, before anything goes wrong."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from fumehood.benchmarks.toolmisuse.record import Split
from fumehood.core.json_values import Json, JsonObject


@dataclass(frozen=True, slots=True, kw_only=True)
class Entity:
    """Whom or what a task is about: a number from which all its names are made."""

    number: int
    split: Split
    letter: str
    """Stands for the split in ids."""
    rivals: int
    """How many other entries the state has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Goal:
    """One thing to do with one call."""

    instruction: str
    state: JsonObject
    tool_name: str
    arguments: Mapping[str, Json]
    """Of the call that does it."""
    checks: tuple[JsonObject, ...]
    """Success criteria beyond that the tool answered."""
    output: Mapping[str, Json]
    """Output path → value, of the tool's answer; what a look-up can be told by."""
