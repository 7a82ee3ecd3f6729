"""When a planned fault strikes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from fumehood.core.fault_plan import FaultRule
from fumehood.core.json_values import Json
from fumehood.core.random_source import RandomSource
from fumehood.core.tools import ToolCall
from fumehood.layers.faults.payload import field_name, to_integer, to_number


@dataclass(frozen=True, slots=True)
class Trigger:
    """Conditions that must all hold; None means no such condition (ToolMisuseBench, spec part 4.2)."""

    on_tool: Json
    on_nth_call: int | None
    """Number of the call within the episode, from 1, refused calls included."""
    when_arg_matches: Mapping[str, Json] | None
    """Values of top-level arguments; an absent argument counts as null. 1, 1.0 and true are equal."""
    probability: float | None

    @classmethod
    def of(cls, rule: FaultRule) -> Trigger:
        """Read a rule's trigger; keys that are not conditions are ignored.

        Raises:
            SpecError: a condition has a value that can never be evaluated.
        """
        given = rule.trigger
        nth, matches = given.get("on_nth_call"), given.get("when_arg_matches")
        return cls(
            on_tool=given.get("on_tool"),
            on_nth_call=None
            if nth is None
            else to_integer(nth, field_name(rule, "trigger", "on_nth_call")),
            when_arg_matches=matches if isinstance(matches, dict) else None,
            probability=_probability(rule),
        )

    def matches(self, call: ToolCall) -> bool:
        """Tell whether every condition but chance holds."""
        if self.on_tool is not None and self.on_tool != call.tool_name:
            return False
        if self.on_nth_call is not None and self.on_nth_call != call.number:
            return False
        if self.when_arg_matches is None:
            return True
        arguments = call.arguments
        return all(arguments.get(name) == value for name, value in self.when_arg_matches.items())


def _probability(rule: FaultRule) -> float | None:
    given = rule.trigger.get("prob")
    if given is None:
        return None
    if isinstance(given, dict):
        return to_number(given.get("p"), field_name(rule, "trigger", "prob", "p"))
    return to_number(given, field_name(rule, "trigger", "prob"))


@dataclass(frozen=True, slots=True)
class BoundFault:
    """A planned fault with its trigger read and its chance at hand."""

    rule: FaultRule
    trigger: Trigger
    random_source: RandomSource

    def strikes(self, call: ToolCall) -> bool:
        """Tell whether the fault strikes this call.

        Chance is asked last and only when every other condition holds, because a draw moves the
        reference's random stream.
        """
        if not self.trigger.matches(call):
            return False
        probability = self.trigger.probability
        return (
            probability is None
            or self.random_source.draw(self.rule.index, call, "strike") < probability
        )
