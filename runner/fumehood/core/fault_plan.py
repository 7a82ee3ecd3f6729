"""Planned faults as data, and the random draws that decide whether they fire."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Protocol

from fumehood.core.json_values import Json, JsonObject, canonical_json
from fumehood.core.tools import FiredFault, ToolCall


@dataclass(frozen=True, slots=True)
class FaultRule:
    """One planned fault of a task. The fault family interprets the payload."""

    index: int
    """Position in the plan, from 0."""
    family: str
    trigger: Mapping[str, Json] = field(default_factory=dict)
    severity: str = "soft"
    payload: Mapping[str, Json] = field(default_factory=dict)

    def location(self, *path: str) -> str:
        """Return the location of a value of this rule in its task record."""
        return ".".join((f"fault_plan[{self.index}]", *path))

    def fired(
        self, *, arguments_after: Mapping[str, Json] | None = None, code_before: str | None = None
    ) -> FiredFault:
        """Return a record that this fault fired."""
        return FiredFault(
            self.index, self.family, self.severity, self.payload, arguments_after, code_before
        )

    def to_json(self) -> JsonObject:
        """Return the rule without its position."""
        return {
            "family": self.family,
            "trigger": dict(self.trigger),
            "severity": self.severity,
            "payload": dict(self.payload),
        }


FaultPlan = tuple[FaultRule, ...]


class RandomSource(Protocol):
    """A source of random numbers for faults."""

    def draw(self, rule: int, call: ToolCall, purpose: str) -> float:
        """Return a number in [0, 1).

        Args:
            rule: position of the fault in its plan.
            call: the numbered call.
            purpose: of the draw, such as ``"fire"``. A rule draws once per call and purpose.
        """
        ...


class KeyedRandom:
    """Computes each draw from a key, so that draws do not depend on each other.

    The key is (seed, rule, purpose, tool, canonical arguments, occurrence). The occurrence counts
    the draws whose key is otherwise equal. Two agents that make the same call for the same time get
    the same draw.
    """

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._occurrences: dict[str, int] = {}

    def draw(self, rule: int, call: ToolCall, purpose: str) -> float:
        """Return the number of this draw's key."""
        key = canonical_json([str(self._seed), rule, purpose, call.tool_name, dict(call.arguments)])
        occurrence = self._occurrences.get(key, 0)
        self._occurrences[key] = occurrence + 1
        digest = sha256(f"{key}#{occurrence}".encode("ascii")).digest()
        return (int.from_bytes(digest[:7], "big") >> 3) / (1 << 53)
