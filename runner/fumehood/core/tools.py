"""The one door: tools behind it, layers around it.

A :class:`Toolset` lists tools and answers calls. A simulator is one, a door is one, a client of a remote
service is one. A :class:`Layer` stands around calls on their way in and results on their way out.

A call moves inward and is never changed in place: a layer that alters it forwards another call. A result
moves outward and carries its *fired_faults*, the faults that touched it. The fired_faults is for the trace; what of it
an agent may see is the decision of one layer of the profile and of nobody else.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Protocol

from fumehood.core.json_values import Json, JsonObject


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """A tool as an agent sees it."""

    name: str
    parameters: JsonObject
    """JSON Schema of the arguments; always of type ``object``."""
    description: str = ""

    def __hash__(self) -> int:
        # Equal specifications share their name, and a schema, being a dict, has no hash of its own.
        return hash(self.name)


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One call of one tool."""

    tool_name: str
    arguments: Mapping[str, Json]
    number: int = 0
    """1 for the first call of the episode, refused ones included; 0 before it is numbered."""
    answer_bytes_max: int | None = None
    """What the budget leaves for the answer; None where it has no bound."""


class FailureKind(Enum):
    """What truly happened, whatever code a fault may make of it. Never shown to an agent."""

    INVALID_CALL = "invalid_call"
    """The call does not fit the tools on offer; no tool saw it."""
    WORLD = "world"
    """A tool looked at the call and said no."""
    FAULT = "fault"
    """A planned fault answered in the tool's place; the tool saw nothing."""
    OUT_OF_BUDGET = "out_of_budget"
    """The budget does not admit the call, or the failure of this call used it up."""


@dataclass(frozen=True, slots=True)
class FiredFault:
    """One delivery of one planned fault."""

    rule: int
    """Position in the fault plan, from 0."""
    family: str
    severity: str
    payload: Mapping[str, Json]
    arguments_after: Mapping[str, Json] | None = None
    """The arguments that this fault passed on, where it altered the call."""
    code_before: str | None = None
    """The failure code that this fault replaced, where it rewrote one."""


FiredFaults = tuple[FiredFault, ...]


@dataclass(frozen=True, slots=True)
class Value:
    """The tool's answer."""

    output: JsonObject
    fired_faults: FiredFaults = ()


@dataclass(frozen=True, slots=True)
class Failure:
    """The tool world's refusal: a reply to read and react to, not an error of the machinery."""

    kind: FailureKind
    code: str
    message: str
    details: Mapping[str, Json] = field(default_factory=dict)
    fired_faults: FiredFaults = ()


ToolResult = Value | Failure

Forward = Callable[[ToolCall], ToolResult]
"""Passes a call one layer further in and returns what comes back."""


class Toolset(Protocol):
    """Tools that can be listed and called."""

    def list_tools(self) -> tuple[ToolSpec, ...]:
        """Return the tools in the order in which agents see them."""
        ...

    def call(self, call: ToolCall) -> ToolResult:
        """Carry out one call; a refusal is a returned :class:`Failure`, never an exception."""
        ...


class Layer(Protocol):
    """Something that happens to a call on its way in and to its result on its way out."""

    def around(self, call: ToolCall, forward: Forward) -> ToolResult:
        """Answer ``call``, forwarding it at most once."""
        ...


class World(Toolset, Protocol):
    """A simulator: a toolset whose whole memory is one JSON object."""

    toolset_id: str
    """What the tools are called together."""
    revision: int
    """Grows by one whenever ``state`` changes."""

    @property
    def state(self) -> JsonObject:
        """Changed by nothing but this world's tools."""
        ...


def arguments_after_faults(call: ToolCall, fired_faults: FiredFaults) -> Mapping[str, Json]:
    """Return the arguments that got past the faults: what was sent, unless a fault altered it.

    Args:
        call: the call as the agent sent it.
        fired_faults: of its result; of two faults that altered the call, the inner one stands later.
    """
    altered = [event.arguments_after for event in fired_faults if event.arguments_after is not None]
    return altered[-1] if altered else call.arguments


def _step(layer: Layer, forward: Forward) -> Forward:
    """Return the way through one layer, its parts looked up once rather than at every call."""
    around = layer.around

    def step(call: ToolCall) -> ToolResult:
        return around(call, forward)

    return step


class LayeredToolset:
    """A toolset reached through layers, itself a toolset.

    Knows nothing about budgets, faults, traces or worlds: those are layers and toolsets.
    """

    def __init__(self, toolset: Toolset, layers: Sequence[Layer]) -> None:
        """Build the way in.

        Args:
            toolset: what stands behind the door.
            layers: outermost first, so that the list reads in the order a call meets them.
        """
        self._toolset = toolset
        forward: Forward = toolset.call
        for layer in reversed(layers):
            forward = _step(layer, forward)
        self.call: Forward = forward

    def list_tools(self) -> tuple[ToolSpec, ...]:
        """Return the tools behind the door, in their order."""
        return self._toolset.list_tools()
