"""Tools, calls and results, and the layers around a toolset.

A :class:`Toolset` lists tools and answers calls. Simulators, toolsets behind layers and clients of
a remote service are toolsets. A :class:`Layer` wraps a call on its way in and the result on its way
out.

A layer never changes a call in place; it forwards a changed copy. A result carries its *fired
faults*, which are recorded in the trace. One layer of the harness mode decides what an agent sees
of them.
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
    """JSON Schema of the arguments, of type ``object``."""
    description: str = ""

    def __hash__(self) -> int:
        # Equal specifications have equal names; a schema is a dict, which is not hashable.
        return hash(self.name)


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One call of one tool."""

    tool_name: str
    arguments: Mapping[str, Json]
    number: int = 0
    """1 for the first call of the episode, rejected ones included; 0 before it is numbered."""
    answer_bytes_max: int | None = None
    """Limit of the result in bytes; None means no limit."""
    held_from: int | None = None
    """Number under which the agent sent the call, if a fault held it back and delivers it during
    the call ``number``."""


class FailureKind(Enum):
    """The true kind of a failure, even if a fault changed its code. Never shown to an agent."""

    INVALID_CALL = "invalid_call"
    """The call does not fit the available tools; no tool received it."""
    WORLD = "world"
    """A tool rejected the call."""
    FAULT = "fault"
    """A fault answered in place of the tool; the tool received nothing."""
    REPLY_LOST = "reply_lost"
    """The tool executed the call, and a fault answered in place of its result."""
    REFUSED = "refused"
    """A gate or a monitor refused the call; no tool received it."""
    WITHHELD = "withheld"
    """The tool executed the call, and a monitor withheld its result."""
    OUT_OF_BUDGET = "out_of_budget"
    """The budget does not admit the call, or this failure exhausted it."""


@dataclass(frozen=True, slots=True)
class FiredFault:
    """A record that a planned fault fired on a call."""

    rule: int
    """Position in the fault plan, from 0."""
    family: str
    severity: str
    payload: Mapping[str, Json]
    arguments_after: Mapping[str, Json] | None = None
    """The arguments that this fault forwarded, if it changed the call."""
    code_before: str | None = None
    """The failure code that this fault replaced, if it rewrote one."""


FiredFaults = tuple[FiredFault, ...]


@dataclass(frozen=True, slots=True)
class Value:
    """The output of a tool."""

    output: JsonObject
    fired_faults: FiredFaults = ()


@dataclass(frozen=True, slots=True)
class Failure:
    """An error that the agent receives. It is not an error of the infrastructure."""

    kind: FailureKind
    code: str
    message: str
    details: Mapping[str, Json] = field(default_factory=dict)
    fired_faults: FiredFaults = ()
    replaced: FailureKind | None = None
    """The kind of the failure that this one replaced, because no retry was left."""

    @property
    def is_executed(self) -> bool:
        """Whether the tool executed the call, although the agent did not get the result."""
        return not EXECUTED.isdisjoint((self.kind, self.replaced))


EXECUTED = frozenset((FailureKind.REPLY_LOST, FailureKind.WITHHELD))
"""Kinds of failures of calls that the tool executed."""

ToolResult = Value | Failure

Forward = Callable[[ToolCall], ToolResult]
"""Passes a call to the next inner layer and returns the result."""

ShowTools = Callable[[tuple[ToolSpec, ...]], tuple[ToolSpec, ...]]
"""Returns tools as agents see them."""


class Toolset(Protocol):
    """Tools that can be listed and called."""

    def list_tools(self) -> tuple[ToolSpec, ...]:
        """Return the tools in the order in which agents see them."""
        ...

    def call(self, call: ToolCall) -> ToolResult:
        """Execute one call. A rejection is a returned :class:`Failure`, never an exception."""
        ...


class Layer(Protocol):
    """A step of call processing, around the inner layers.

    A layer that changes what agents see of the tools also has the method ``show_tools``, a
    :data:`ShowTools`.
    """

    def around(self, call: ToolCall, forward: Forward) -> ToolResult:
        """Answer ``call``, forwarding it at most once."""
        ...


class World(Toolset, Protocol):
    """A simulator: a toolset whose complete state is one JSON object."""

    toolset_id: str
    """Name of the toolset."""
    revision: int
    """Grows by one whenever ``state`` changes."""

    @property
    def state(self) -> JsonObject:
        """The state, which only the tools of this world change."""
        ...


def arguments_after_faults(call: ToolCall, fired_faults: FiredFaults) -> Mapping[str, Json]:
    """Return the arguments after all faults.

    Args:
        call: the call as the agent sent it.
        fired_faults: the faults of its result. A fault of an inner layer comes after those of
            outer layers.
    """
    altered = [fault.arguments_after for fault in fired_faults if fault.arguments_after is not None]
    return altered[-1] if altered else call.arguments


def _step(layer: Layer, forward: Forward) -> Forward:
    """Return a function that calls one layer. Attributes are looked up once, not per call."""
    around = layer.around

    def step(call: ToolCall) -> ToolResult:
        return around(call, forward)

    return step


class LayeredToolset:
    """A toolset behind layers."""

    def __init__(self, toolset: Toolset, layers: Sequence[Layer]) -> None:
        """Compose the layers.

        Args:
            toolset: the inner toolset.
            layers: outermost first, in the order in which a call passes them.
        """
        self._toolset = toolset
        # An instance check of a Protocol would take longer than a call.
        shows = [getattr(layer, "show_tools", None) for layer in reversed(layers)]
        self._shows: list[ShowTools] = [show for show in shows if show is not None]
        forward: Forward = toolset.call
        for layer in reversed(layers):
            forward = _step(layer, forward)
        self.call: Forward = forward

    def list_tools(self) -> tuple[ToolSpec, ...]:
        """Return the tools of the inner toolset, as the layers show them."""
        tools = self._toolset.list_tools()
        for show in self._shows:
            tools = show(tools)
        return tools
