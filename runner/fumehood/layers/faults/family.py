"""The base of the fault families: triggers, payload descriptions and payload values.

A fault family is a class. Each planned fault rule of an episode becomes one instance, which is a
layer around the tools. Section names refer to ``docs/reference/toolmisuse.md``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from itertools import count
from typing import Any, ClassVar, TypeVar

from fumehood.core.errors import SpecError
from fumehood.core.fault_plan import FaultRule, RandomSource
from fumehood.core.json_values import Json, JsonObject
from fumehood.core.tools import Failure, FailureKind, Forward, ToolCall, ToolResult, ToolSpec
from fumehood.core.virtual_time import KeepsTime

PayloadT = TypeVar("PayloadT")
ResultT = TypeVar("ResultT", bound=ToolResult)


@dataclass(frozen=True, slots=True)
class Trigger:
    """Conditions that must all hold. None means that the condition is absent."""

    on_tool: Json
    on_nth_call: int | None
    """Number of the call within the episode, from 1. Rejected calls count."""
    on_nth_match: int | None
    """Number of the call, from 1, among those for which ``on_tool`` and ``when_arg_matches``
    hold."""
    when_arg_matches: Mapping[str, Json] | None
    """Values of top-level arguments. An absent argument counts as null; 1, 1.0 and true are
    equal."""
    probability: float | None

    @classmethod
    def of(cls, rule: FaultRule) -> Trigger:
        """Read the trigger of a rule. Keys that are not conditions are ignored.

        Raises:
            SpecError: a condition has a value that cannot be evaluated.
        """
        matches = rule.trigger.get("when_arg_matches")
        return cls(
            on_tool=rule.trigger.get("on_tool"),
            on_nth_call=_number(rule, "on_nth_call"),
            on_nth_match=_number(rule, "on_nth_match"),
            when_arg_matches=matches if isinstance(matches, dict) else None,
            probability=_probability(rule),
        )

    def matches(self, call: ToolCall) -> bool:
        """Return whether every condition holds that depends only on the call."""
        if self.on_tool is not None and self.on_tool != call.tool_name:
            return False
        if self.on_nth_call is not None and self.on_nth_call != call.number:
            return False
        if self.when_arg_matches is None:
            return True
        arguments = call.arguments
        return all(arguments.get(name) == value for name, value in self.when_arg_matches.items())


def _number(rule: FaultRule, key: str) -> int | None:
    value = rule.trigger.get(key)
    return None if value is None else to_integer(value, rule.location("trigger", key))


def _probability(rule: FaultRule) -> float | None:
    value = rule.trigger.get("prob")
    if value is None:
        return None
    if isinstance(value, dict):
        return to_number(value.get("p"), rule.location("trigger", "prob", "p"))
    return to_number(value, rule.location("trigger", "prob"))


@dataclass(frozen=True, slots=True)
class BoundFault:
    """A fault rule together with its parsed trigger and its random source."""

    rule: FaultRule
    trigger: Trigger
    random_source: RandomSource
    clock: KeepsTime | None = None
    """Virtual time of the world; None if it keeps no time."""
    _matches: Iterator[int] = field(default_factory=lambda: count(1), compare=False, repr=False)
    """Numbers of the calls that the trigger matches."""

    def fires_on(self, call: ToolCall) -> bool:
        """Return whether the fault fires on this call. May be called once per call.

        The random number is drawn last, and only if every other condition holds, because each draw
        advances the random stream of ToolMisuseBench.
        """
        if not self.trigger.matches(call):
            return False
        if self.trigger.on_nth_match not in (None, next(self._matches)):
            return False
        probability = self.trigger.probability
        return (
            probability is None
            or self.random_source.draw(self.rule.index, call, "fire") < probability
        )


@dataclass(frozen=True, slots=True)
class AnyPayload:
    """A payload whose keys are not checked."""


class FaultFamily(ABC):
    """The layer of one planned fault. Each fault family is a subclass.

    A family calls ``fault.fires_on(call)`` at most once per call. It forwards a call at most once,
    unless ``delivers_again`` states otherwise. A result that the fault changed carries
    ``fault.rule.fired(...)`` in its ``fired_faults``; :meth:`fired` and :meth:`fail` see to it.
    """

    order: ClassVar[int] = 250
    """Position among the fault layers: a smaller number is further out and sees a call earlier.
    Families with equal numbers are sorted by name."""
    rewrites_results: ClassVar[bool] = False
    """Whether the family works on results. Such rules apply from the inside out, in plan order."""
    payload: ClassVar[type[Any]] = AnyPayload
    """Dataclass that describes the payload in task files; see :func:`described`. Keys that it does
    not have are rejected when a task is loaded."""
    example: ClassVar[JsonObject] = {}
    """A payload with which the family fires on any call; the conformance suite uses it."""
    remedy: ClassVar[str] = ""
    """What an agent can do when the fault fires; shown in the table of ``docs/faults.md``."""
    check: ClassVar[str] = ""
    """How the criteria of a task distinguish a careful agent from a lucky one; shown beside the
    remedy."""
    needs_value: ClassVar[bool] = False
    """Whether the family changes values only, so that it does not fire on a failed call."""
    needs_earlier_calls: ClassVar[bool] = False
    """Whether it depends on earlier calls if it fires."""
    delivers_again: ClassVar[bool] = False
    """Whether it may forward a call for a second time, or after another call."""

    def __init__(self, fault: BoundFault) -> None:
        """Read the payload.

        Raises:
            SpecError: the payload cannot be used; the error names the field.
        """
        self.fault = fault

    @abstractmethod
    def around(self, call: ToolCall, forward: Forward) -> ToolResult:
        """Answer the call, forwarding it at most once."""

    def show_tools(self, tools: tuple[ToolSpec, ...]) -> tuple[ToolSpec, ...]:
        """Return the tools as agents see them under this fault."""
        name = self.fault.trigger.on_tool
        return tuple(self.show_tool(tool) if name in (None, tool.name) else tool for tool in tools)

    def show_tool(self, tool: ToolSpec) -> ToolSpec:
        """Return a tool that the trigger admits as agents see it; most families change nothing."""
        return tool

    def fail(self, code: str, message: str, details: JsonObject) -> Failure:
        """Return the error with which the fault answers in place of the tool."""
        return Failure(FailureKind.FAULT, code, message, details, (self.fault.rule.fired(),))

    def unavailable(self, call: ToolCall) -> Failure:
        """Return the error of a tool that does not work for now."""
        details: JsonObject = {"tool_name": call.tool_name}
        return self.fail("unavailable", "The tool is temporarily unavailable.", details)

    def fired(self, result: ResultT) -> ResultT:
        """Return the result with a record that the fault fired."""
        return replace(result, fired_faults=(*result.fired_faults, self.fault.rule.fired()))

    @classmethod  # noqa: B027 - not abstract: most families accept any tools.
    def check_tools(cls, rule: FaultRule, tools: Sequence[ToolSpec]) -> None:
        """Reject a rule that can have no effect on the given tools.

        Args:
            rule: the fault rule.
            tools: the tools that its trigger admits.

        Raises:
            SpecError: names the field.
        """


def described(
    description: str, *, minimum: int | None = None, min_length: int | None = None
) -> dict[str, Any]:
    """Return the metadata of one field of a payload dataclass.

    Args:
        description: the value and its unit; published in the JSON Schema and in the docs.
        minimum: smallest accepted number, inclusive.
        min_length: smallest accepted length of a list.
    """
    return {"description": description, "ge": minimum, "min_length": min_length}


def to_integer(value: Json, field_name: str) -> int:
    """Convert with Python's ``int``: truncates 2.9, accepts true and texts such as " 3 ".

    ToolMisuseBench converts with the same cast, later and without a check.

    Raises:
        SpecError: the value cannot be converted.
    """
    try:
        return int(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        raise SpecError(field_name, f"must be a whole number, not {value!r}") from None


def to_number(value: Json, field_name: str) -> float:
    """Convert to a float with Python's cast, as ToolMisuseBench does.

    Raises:
        SpecError: the value cannot be converted.
    """
    try:
        return float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        raise SpecError(field_name, f"must be a number, not {value!r}") from None


def payload_of(rule: FaultRule, kind: type[PayloadT]) -> PayloadT:
    """Return the payload as an object of its dataclass, with the defaults for absent keys.

    Raises:
        SpecError: a number is expected where there is none.
    """
    values: dict[str, Any] = {}
    for part in fields(kind):  # type: ignore[arg-type]
        if part.name not in rule.payload:
            continue
        value, location = rule.payload[part.name], rule.location("payload", part.name)
        if isinstance(part.default, bool):
            value = bool(value)
        elif isinstance(part.default, int):
            value = to_integer(value, location)
        elif isinstance(part.default, float):
            value = to_number(value, location)
        elif isinstance(part.default, str):
            value = encodable_text(str(value), location)
        values[part.name] = value
    return kind(**values)


def payload_text(rule: FaultRule, key: str, default: str) -> str:
    """Return a text of the payload. Any other value, including null, is converted to text."""
    return str(rule.payload.get(key, default))


def payload_object(rule: FaultRule, key: str) -> JsonObject:
    """Return an object of the payload. Any other value counts as empty."""
    value = rule.payload.get(key)
    return value if isinstance(value, dict) else {}


def encodable_text(text: str, field_name: str) -> str:
    """Return ``text``, which agents will read.

    Raises:
        SpecError: the text contains a lone surrogate, which has no UTF-8 encoding.
    """
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        raise SpecError(field_name, "contains a lone surrogate; UTF-8 cannot encode it") from None
    return text
