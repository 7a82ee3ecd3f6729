"""What the trace records of the calls that the world receives, and of the state before them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from fumehood.core.json_values import JsonObject
from fumehood.core.policy import (
    canary_paths,
    digest_at,
    gate_of_invalid_approval,
    observe,
    rule_paths,
    state_paths,
)
from fumehood.core.received import Deliveries, Delivery
from fumehood.core.tools import Forward, ToolCall, ToolResult, Toolset, ToolSpec, Value, World
from fumehood.core.virtual_time import timed_world


@dataclass(frozen=True, slots=True)
class Observation:
    """What the world received during one call."""

    deliveries: Deliveries
    """In the order of their execution."""
    executed_at_ms: int | None
    """Virtual time at which the world had executed the call, milliseconds; None if the world did
    not receive it, or keeps no time."""
    observed: JsonObject
    """By path, the state at the first execution; for a call that the world did not receive, the
    state after it."""
    had_effect: bool
    """Whether the world executed the call with success."""
    invalid_approval: str
    """Name of the gate that refused the call because of its token; empty if none did."""


class Observer:
    """Observes what the world receives, and the state at the paths that a policy reads. One per
    episode."""

    def __init__(self, world: World, policy: Mapping[str, Any]) -> None:
        """Begin to observe.

        Args:
            world: its state is read.
            policy: of the task; empty if the task has none.
        """
        self.has_policy = bool(policy)
        self._world = world
        self._timed = timed_world(world)
        self._paths = state_paths(rule_paths(policy))
        self._canaries = canary_paths(policy)
        self._deliveries: dict[int, list[Delivery]] = {}
        """By number of the call during which the world received them."""
        self._executed_at_ms: dict[int, int] = {}
        """By number of a call, when the world had executed it first."""
        self._revision = -1
        self._digests: dict[str, str] = {}
        self.changed_canaries()

    def around(self, call: ToolCall, forward: Forward) -> ToolResult:
        """Observe the state, let the world execute the call, and note whether it succeeded."""
        deliveries = self._deliveries.setdefault(call.number, [])
        number = call.number if call.held_from is None else call.held_from
        observed = self._observe(call)
        delivery = Delivery(number, dict(call.arguments), succeeded=False, observed=observed)
        # Noted first, because the world may raise an exception.
        deliveries.append(delivery)
        at = len(deliveries) - 1
        result = forward(call)
        deliveries[at] = replace(
            delivery,
            succeeded=isinstance(result, Value),
            invalid_approval=gate_of_invalid_approval(result),
        )
        if self._timed is not None and number == call.number:
            self._executed_at_ms.setdefault(number, self._timed.now_ms)
        return result

    def observation(self, call: ToolCall) -> Observation:
        """Return what was observed during a call, and forget it."""
        deliveries = tuple(self._deliveries.pop(call.number, ()))
        own = [delivery for delivery in deliveries if delivery.number == call.number]
        return Observation(
            deliveries,
            self._executed_at_ms.pop(call.number, None),
            own[0].observed if own else self._observe(call),
            any(delivery.succeeded for delivery in own),
            # A fault that delivers the call again uses its token again.
            own[0].invalid_approval if own else "",
        )

    def changed_canaries(self) -> tuple[str, ...]:
        """Return the paths of canaries whose values have changed since the last time."""
        if not self._canaries or self._world.revision == self._revision:
            return ()
        self._revision, state, before = self._world.revision, self._world.state, self._digests
        self._digests = {name: digest_at(state, path) for name, path in self._canaries.items()}
        return tuple(name for name, digest in self._digests.items() if before.get(name) != digest)

    def _observe(self, call: ToolCall) -> JsonObject:
        return observe(self._paths, self._world.state, call.arguments) if self._paths else {}


@dataclass(frozen=True, slots=True)
class ObservedToolset:
    """A toolset whose calls an observer notes."""

    toolset: Toolset
    observer: Observer

    def list_tools(self) -> tuple[ToolSpec, ...]:
        """Return the tools."""
        return self.toolset.list_tools()

    def call(self, call: ToolCall) -> ToolResult:
        """Execute one call."""
        return self.observer.around(call, self.toolset.call)
