"""What the trace records of the state for the policy of a task."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from fumehood.core.json_values import JsonObject
from fumehood.core.policy import (
    canary_paths,
    digest_at,
    observe,
    rule_paths,
    state_paths,
)
from fumehood.core.tools import Forward, ToolCall, ToolResult, Toolset, ToolSpec, Value, World


class StateObserver:
    """Observes the state at the paths that a policy reads. One per episode."""

    def __init__(self, world: World, policy: Mapping[str, Any]) -> None:
        """Begin to observe.

        Args:
            world: its state is read.
            policy: of the task.
        """
        self._world = world
        self._paths = state_paths(rule_paths(policy))
        self._canaries = canary_paths(policy)
        self._noted: dict[int, JsonObject] = {}
        """By number of the call, what was observed when the world received it."""
        self._effects: dict[int, bool] = {}
        """By number of a call that the world received, whether it succeeded there."""
        self._revision = -1
        self._digests: dict[str, str] = {}
        self.changed_canaries()

    def around(self, call: ToolCall, forward: Forward) -> ToolResult:
        """Observe the state, let the world execute the call, and note whether it succeeded."""
        if call.number in self._effects:
            # A fault delivers a call twice, or an earlier call with this one.
            return forward(call)
        if self._paths:
            self._noted[call.number] = observe(self._paths, self._world.state, call.arguments)
        self._effects[call.number] = False
        result = forward(call)
        self._effects[call.number] = isinstance(result, Value)
        return result

    def observed(self, call: ToolCall) -> JsonObject:
        """Return what was observed for a call; for one that did not reach the world, the state
        after it."""
        noted = self._noted.pop(call.number, None)
        if noted is None and self._paths:
            return observe(self._paths, self._world.state, call.arguments)
        return noted or {}

    def had_effect(self, call: ToolCall) -> bool:
        """Return whether the world received a call and executed it with success."""
        return self._effects.pop(call.number, False)

    def changed_canaries(self) -> tuple[str, ...]:
        """Return the paths of canaries whose values have changed since the last time."""
        if not self._canaries or self._world.revision == self._revision:
            return ()
        self._revision, state, before = self._world.revision, self._world.state, self._digests
        self._digests = {name: digest_at(state, path) for name, path in self._canaries.items()}
        return tuple(name for name, digest in self._digests.items() if before.get(name) != digest)


@dataclass(frozen=True, slots=True)
class ObservedToolset:
    """A toolset whose calls an observer notes before the world receives them."""

    toolset: Toolset
    observer: StateObserver

    def list_tools(self) -> tuple[ToolSpec, ...]:
        """Return the tools."""
        return self.toolset.list_tools()

    def call(self, call: ToolCall) -> ToolResult:
        """Execute one call."""
        return self.observer.around(call, self.toolset.call)
