"""Controls of attacks: a setting without the protection, the expected breach, and the result.

A control that does not succeed proves that the attack tries nothing, or that its check sees
nothing. An attack without a successful control never counts as stopped.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from fumehood.core.json_values import JsonObject


class Setting(Enum):
    """The setting of an attack without its protection."""

    NO_BOX = "a plain process of this user"
    ROOT = "a plain process of root"
    OPEN_BOX = "root in a box without a filter and with every capability"
    NAIVE_SERVICE = "a service without checks"
    NO_OUTPUT_LIMIT = "a plain process whose output is kept"
    NO_REFUSAL_LIMIT = "a service that records every refusal"
    PLAIN_READER = "a reader that prints records as they are"
    CARELESS_JUDGE = "a judge with a pattern of quadratic time"


@dataclass(frozen=True, slots=True)
class Control:
    """How an attack succeeds without its protection."""

    setting: Setting
    shows: str
    """Part of the detail with which it must succeed; ``|`` separates alternatives."""

    def shown_in(self, detail: str) -> str:
        """Return the part of a detail that shows the success; empty if there is none."""
        ways = self.shows.split("|")
        parts = (part for part in detail.split("; ") if any(way in part for way in ways))
        return next(parts, "")


class ControlOutcome(Enum):
    """The result of a control."""

    SUCCEEDED = "succeeded"
    """Without the protection, the attack succeeds, and the probe detects it."""
    FAILED = "failed"
    """The attack failed without the protection too, so the attack proves nothing."""
    NOT_POSSIBLE = "not possible here"
    """The setting does not exist on this machine."""


@dataclass(frozen=True, slots=True)
class ControlResult:
    """The result of one control."""

    setting: Setting
    outcome: ControlOutcome
    detail: str

    def to_json(self) -> JsonObject:
        """Return the result as JSON."""
        return {
            "setting": self.setting.value,
            "outcome": self.outcome.value,
            "detail": self.detail,
        }
