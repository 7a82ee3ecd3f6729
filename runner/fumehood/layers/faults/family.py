"""When a planned fault strikes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from fumehood.core.errors import SpecError
from fumehood.core.fault_plan import FaultRule, RandomSource
from fumehood.core.json_values import Json, JsonObject
from fumehood.core.tools import ToolCall


def field_name(rule: FaultRule, *path: str) -> str:
    """Return where in the task record a value of this rule stands."""
    return ".".join((f"fault_plan[{rule.index}]", *path))


def to_integer(value: Json, field: str) -> int:
    """Cast to an integer as the reference does: truncates 2.9, takes true, and text with blanks and signs.

    Raises:
        SpecError: the value has no integer.
    """
    try:
        return int(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        raise SpecError(field, f"must be a whole number, not {value!r}") from None


def to_number(value: Json, field: str) -> float:
    """Cast to a float as the reference does.

    Raises:
        SpecError: the value has no number.
    """
    try:
        return float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        raise SpecError(field, f"must be a number, not {value!r}") from None


def payload_integer(rule: FaultRule, key: str, default: int) -> int:
    """Return a payload number; an explicit null is refused, absence means ``default``."""
    return to_integer(rule.payload.get(key, default), field_name(rule, "payload", key))


def payload_text(rule: FaultRule, key: str, default: str) -> str:
    """Return a payload text; anything else, null included, counts by its text form."""
    return str(rule.payload.get(key, default))


def speakable(text: str, field: str) -> str:
    """Return ``text``, which an agent is to be told.

    Raises:
        SpecError: it holds half a surrogate pair, which no text on the wire can.
    """
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        raise SpecError(field, "holds half a surrogate pair, which nobody can be told") from None
    return text


def payload_object(rule: FaultRule, key: str) -> JsonObject:
    """Return a payload object; anything that is not an object counts as empty."""
    value = rule.payload.get(key)
    return value if isinstance(value, dict) else {}


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
