"""An agent cannot tell a fault from the world.

A world without faults can show it the same bytes, and no word in them names a fault.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fumehood.core.clock import StoppedClock
from fumehood.core.conversation import TurnQueue
from fumehood.core.episode import Episode, Reply, Seat
from fumehood.core.ledger import Budget, Ledger
from fumehood.core.memory_recorder import MemoryRecorder
from fumehood.core.tools import (
    Failure,
    FailureKind,
    LayeredToolset,
    ToolCall,
    ToolResult,
    ToolSpec,
)
from fumehood.harness_modes.native import Native
from fumehood.layers.charge_budget import ChargeBudget
from fumehood.layers.faults.registry import FAMILIES
from fumehood.wire.convert import reply_to_pb, task_to_pb
from fumehood.wire.ports import TaskView
from tests.conformance.worlds.declared_examples import tool
from tests.parts.specs import episode_spec

READ = [{"op": "get", "path": "items", "output": "items"}]
ADD = [{"op": "create", "path": "items", "id": "$id", "fields": {"amount": "$amount"}}]
BUDGET: dict[str, Any] = {"steps": 8, "calls": 8, "retries": 3}
CALLS = st.lists(
    st.sampled_from(
        [
            ("read", {}),
            ("add", {"id": "a", "amount": 1}),
            ("add", {"id": "b", "amount": 2}),
            ("add", {"id": "b"}),
            ("wait", {"seconds": 60}),
            ("now", {}),
            ("absent", {}),
        ]
    ),
    max_size=9,
)
PAYLOADS: Mapping[str, Any] = {
    "schema_change": {"rename_args": {"amount": "number"}},
    "schema_drift": {"rename_args": {"amount": "number"}},
    "wrong_value": {"path": "items.a.amount", "value": 9},
}
REVEALING = {"fault", "fired", *FAMILIES} - {"authz", "timeout", "rate_limit"}
"""Words that no tool says; the error codes of three families are those of real tools."""
FAULTS = st.lists(
    st.tuples(st.sampled_from(sorted(FAMILIES)), st.sampled_from([0.4, 0.8, 1.0])),
    min_size=1,
    max_size=3,
)


def opened(faults: list[tuple[str, float]]) -> Episode:
    """Open an episode in a scenario with these families."""
    parts = {"shop": "declared"}
    time = {"start": "2026-03-02T06:00:00Z", "end_s": 3600, "latency": {"*": {"fixed_ms": 10}}}
    toolset = {"tools": [tool("read", READ), tool("add", ADD, id="string", amount="integer")]}
    state = {
        "scenario": {"parts": parts, "time": time},
        "shop": {"items": {"a": {"amount": 5}}, "toolset": toolset},
    }
    plan = (
        {
            "family": family,
            "trigger": {"prob": probability},
            "payload": PAYLOADS.get(family, FAMILIES.load(family).example),
        }
        for family, probability in faults
    )
    spec = episode_spec(*plan, world="scenario", state=state, **BUDGET)
    return Native().open_episode(spec, MemoryRecorder(), StoppedClock())


class Honest:
    """Tools without faults that answer what the tools with faults answered."""

    def __init__(self, tools: tuple[ToolSpec, ...], results: list[ToolResult]) -> None:
        self._tools = tools
        self._results = deque(results)

    def list_tools(self) -> tuple[ToolSpec, ...]:
        return self._tools

    def call(self, call: ToolCall) -> ToolResult:
        return self._results.popleft()


def without_faults(result: ToolResult) -> ToolResult:
    """Return the result as a tool would give it by itself."""
    if not isinstance(result, Failure):
        return replace(result, fired_faults=())
    code = result.details.get("original_error_code")
    if result.kind is FailureKind.OUT_OF_BUDGET and isinstance(code, str):
        return Failure(FailureKind.WORLD, code, "any")
    return replace(result, kind=FailureKind.WORLD, fired_faults=())


def shown(seat: Seat, replies: list[Reply]) -> list[bytes]:
    """Return all bytes that an agent receives."""
    view = TaskView(seat.instruction, seat.list_tools(), seat.ledger.remaining(), seat.turn)
    return [
        task_to_pb(view).SerializeToString(deterministic=True),
        *(reply_to_pb(reply).SerializeToString(deterministic=True) for reply in replies),
    ]


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(faults=FAULTS, calls=CALLS)
def test_a_world_without_faults_can_show_an_agent_the_same_bytes(
    faults: list[tuple[str, float]], calls: list[tuple[str, dict[str, Any]]]
) -> None:
    (seat,) = opened(faults).seats
    replies: list[Reply] = []
    for name, arguments in calls:
        if seat.end is None:
            replies.append(seat.call(name, arguments))
    admitted = [
        reply.result
        for reply in replies
        if not (isinstance(reply.result, Failure) and reply.result.code == "budget_exceeded")
    ]
    tools = Honest(seat.list_tools(), [without_faults(result) for result in admitted])
    ledger = Ledger(Budget(**BUDGET))
    layers = LayeredToolset(tools, [ChargeBudget(ledger)])
    twin = Seat("agent", TurnQueue(seat.instruction), layers, ledger, MemoryRecorder())
    honest = [
        twin.call(name, arguments) for name, arguments in calls[: len(replies)] if twin.end is None
    ]
    assert shown(twin, honest) == shown(seat, replies)
    text = b"".join(shown(seat, replies))
    assert [word for word in REVEALING if word.encode() in text] == []
