"""Planned faults as data: which family, when, and with what."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from fumehood.core.json_values import Json, JsonObject
from fumehood.core.tools import FiredFault


@dataclass(frozen=True, slots=True)
class FaultRule:
    """One planned fault, as the task states it; a profile reads trigger and payload in its own terms."""

    index: int
    """Position in the plan, from 0."""
    family: str
    trigger: Mapping[str, Json] = field(default_factory=dict)
    severity: str = "soft"
    payload: Mapping[str, Json] = field(default_factory=dict)

    def event(
        self, *, delivered: Mapping[str, Json] | None = None, code_before: str | None = None
    ) -> FiredFault:
        """Return the record of one delivery of this fault."""
        return FiredFault(
            self.index, self.family, self.severity, self.payload, delivered, code_before
        )

    def to_json(self) -> JsonObject:
        """Return the rule as a JSON object; its position is its place in the plan's list."""
        return {
            "fault_type": self.family,
            "trigger": dict(self.trigger),
            "severity": self.severity,
            "payload": dict(self.payload),
        }


FaultPlan = tuple[FaultRule, ...]
