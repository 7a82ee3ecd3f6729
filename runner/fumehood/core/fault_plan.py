"""Planned faults as data: which family, when, and with what."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Protocol

from fumehood.core.json_values import Json, JsonObject, canonical_json
from fumehood.core.tools import FiredFault, ToolCall


@dataclass(frozen=True, slots=True)
class FaultRule:
    """One planned fault, as the task states it; a profile reads trigger and payload in its own terms."""

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
        """Return the record of one delivery of this fault."""
        return FiredFault(
            self.index, self.family, self.severity, self.payload, arguments_after, code_before
        )

    def to_json(self) -> JsonObject:
        """Return the rule as a JSON object; its position is its place in the plan's list."""
        return {
            "family": self.family,
            "trigger": dict(self.trigger),
            "severity": self.severity,
            "payload": dict(self.payload),
        }


FaultPlan = tuple[FaultRule, ...]


class RandomSource(Protocol):
    """Where a fault's chance comes from."""

    def draw(self, rule: int, call: ToolCall, purpose: str) -> float:
        """Return a number in [0, 1).

        Args:
            rule: position of the asking fault in its plan.
            call: the numbered call it is about.
            purpose: what is decided, such as ``"fire"``; a rule asks once per call and purpose.
        """
        ...


class KeyedRandom:
    """Every draw is named by what it decides, so no other draw can move it.

    The name is (seed, rule, purpose, tool, canonical arguments, occurrence), where occurrence counts the
    draws that share the rest of the name. Two agents that make the same call for the same time meet the
    same chance, whatever else they did.
    """

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._occurrences: dict[str, int] = {}

    def draw(self, rule: int, call: ToolCall, purpose: str) -> float:
        """Return the number that the name of this draw stands for."""
        name = canonical_json(
            [str(self._seed), rule, purpose, call.tool_name, dict(call.arguments)]
        )
        occurrence = self._occurrences.get(name, 0)
        self._occurrences[name] = occurrence + 1
        digest = sha256(f"{name}#{occurrence}".encode("ascii")).digest()
        return (int.from_bytes(digest[:7], "big") >> 3) / (1 << 53)
